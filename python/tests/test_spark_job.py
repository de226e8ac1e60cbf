"""The job for Spark says what the program says."""

import json
import subprocess
import sys
import time
from importlib import util
from pathlib import Path

import pytest

from conftest import ROOT, documents_of

pytest.importorskip("pyspark")
DOCS = ROOT / "examples/docs.jsonl"
PATIENCE = 240


@pytest.fixture(scope="module")
def job(spark_environment, tmp_path_factory):
    """Runs the job, as a module or with `spark-submit`, in a folder in which nothing is left behind."""
    import os

    def run(*arguments, submit=False, code=0):
        words = [sys.executable, "-m", "lookalike.spark"]
        if submit:
            program = Path(sys.executable).parent / "spark-submit"
            words = [program, "--master", "local-cluster[2,1,1024]", util.find_spec("lookalike.spark.__main__").origin]
        folder = tmp_path_factory.mktemp("empty")
        environment = {**os.environ, **spark_environment}
        words = [str(word) for word in [*words, *arguments]]
        said = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment, timeout=PATIENCE)
        assert said.returncode == code, said.stderr
        assert "Traceback" not in said.stderr and not list(folder.iterdir())
        return said

    return run


def rows_in(folder):
    """The rows of a folder that Spark wrote."""
    rows = []
    for path in sorted(Path(folder).iterdir()):
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows += pq.read_table(path).to_pylist()
        elif path.suffix in [".json", ".jsonl"]:
            rows += [json.loads(line) for line in path.open()]
    return sorted(rows, key=lambda row: row["id"])


@pytest.fixture(scope="module")
def theirs(program, tmp_path_factory):
    """What the program says of the same file: ids that are kept, and the clusters, by member."""
    folder = tmp_path_factory.mktemp("program")
    program("dedup", DOCS, "-o", folder / "out", "--clusters", folder / "clusters.jsonl", "--force")
    kept = sorted(json.loads(line)["id"] for line in (folder / "out/kept/docs.jsonl").open())
    members = [json.loads(line) for line in (folder / "clusters.jsonl").open()]
    return kept, {member["id"]: member for member in members}


def check_output(output, theirs):
    kept, members = theirs
    texts = {document["id"]: document["text"] for document in documents_of("docs.jsonl")}
    assert [(row["id"], row["text"]) for row in rows_in(output / "kept")] == [(id, texts[id]) for id in kept]
    removed = rows_in(output / "removed")
    assert [row["id"] for row in removed] == sorted(set(texts) - set(kept))
    clustered = rows_in(output / "clusters")
    assert [row["id"] for row in clustered] == sorted(members)
    for row in removed + clustered:
        member = members[row["id"]]
        assert (row["keeper"], row["distance"]) == (member["keeper"], member["distance"])
        assert row["similarity"] == pytest.approx(member["similarity"], abs=1e-3)
    together = {(row["cluster"], members[row["id"]]["cluster"]) for row in clustered}
    assert len(together) == len({ours for ours, _ in together}) == len({theirs for _, theirs in together})
    json.loads((output / "report.json").read_text())


def test_the_job_says_what_the_program_says(job, theirs, tmp_path):
    output = tmp_path / "out"
    started = time.monotonic()
    job("dedup", DOCS, output)
    took = time.monotonic() - started
    check_output(output, theirs)
    # Another run finds everything done.
    before = {path: path.stat().st_mtime_ns for path in (output / "_work").rglob("*") if path.is_file()}
    started = time.monotonic()
    job("dedup", DOCS, output)
    assert time.monotonic() - started < max(took, 10)
    check_output(output, theirs)
    assert {path: path.stat().st_mtime_ns for path in (output / "_work").rglob("*") if path.is_file()} == before
    # One with other settings does not mix its results with those.
    refused = job("dedup", DOCS, output, "--similarity", "0.8", code=2)
    assert "similarity" in refused.stderr and "--restart" in refused.stderr
    check_output(output, theirs)
    job("dedup", DOCS, output, "--similarity", "0.8", "--restart")
    assert len(rows_in(output / "kept")) > len(theirs[0])


def test_the_job_is_submitted(job, theirs, tmp_path):
    job("dedup", DOCS, tmp_path / "out", submit=True)
    check_output(tmp_path / "out", theirs)


def test_step_by_step(job, program, tmp_path):
    job("sign", DOCS, tmp_path / "signed")
    job("pairs", tmp_path / "signed", tmp_path / "pairs", "--radius", "20", submit=True)
    job("clusters", tmp_path / "pairs", tmp_path / "clusters")
    program("sign", DOCS, "-o", tmp_path / "docs.sig")
    lines = program("join", tmp_path / "docs.sig", "--radius", 20, "--exact").splitlines()
    pairs = {tuple(line.split(",")) for line in lines[1:]}
    import pyarrow.parquet as pq

    found = pq.read_table(tmp_path / "pairs").to_pylist()
    ours = {(row["id_a"], row["id_b"], str(row["distance"])) for row in found}
    # Of copies, the first stands for all.
    assert ours <= pairs and {id for pair in ours for id in pair[:2]} == {id for pair in pairs for id in pair[:2]}
    clusters = pq.read_table(tmp_path / "clusters").to_pylist()
    assert {row["id"] for row in clusters} == {id for pair in pairs for id in pair[:2]}


def test_what_is_wrong_is_said(job, tmp_path):
    assert "nowhere" in job("dedup", tmp_path / "nowhere.jsonl", tmp_path / "out", code=2).stderr
    assert "body" in job("dedup", DOCS, tmp_path / "out", "--text-field", "body", code=2).stderr
    assert "usage" in job("dedup", code=2).stderr
    assert "dedup" in job("--help").stdout
