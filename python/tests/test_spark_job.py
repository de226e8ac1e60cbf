"""The job for Spark says what the program says."""

import json
import os
import re
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from conftest import ROOT, documents_of

pytest.importorskip("pyspark")
DOCS = ROOT / "examples/docs.jsonl"
PATIENCE = 900


@pytest.fixture(scope="module")
def job(spark_environment, tmp_path_factory):
    """Runs the job, as a module or with `spark-submit`, in a folder in which nothing is left behind."""

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


@pytest.fixture
def quick_job(session, monkeypatch, capsys):
    """Runs the job with the Spark that the tests have: it need not be started for each."""
    from pyspark.sql import SparkSession

    from lookalike.spark import __main__

    # It goes on when the job has ended.
    monkeypatch.setattr(SparkSession, "stop", lambda _: None)

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["lookalike.spark", *map(str, arguments)])
        try:
            ended = __main__.main()
        except SystemExit as end:
            ended = end.code or 0
        said = capsys.readouterr()
        assert ended == code, said.err
        return said

    return run


def rows_in(folder):
    """The rows of a folder that Spark wrote."""
    rows = []
    for path in sorted(Path(folder).iterdir()):
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows += pq.read_table(path).to_pylist()
        elif path.suffix in [".json", ".jsonl", ".txt"]:
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


def written_in(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_job_says_what_the_program_says(job, theirs, tmp_path):
    output = tmp_path / "out"
    job("dedup", DOCS, output)
    check_output(output, theirs)
    # Another run finds everything done.
    before = written_in(output / "_work")
    job("dedup", DOCS, output)
    check_output(output, theirs)
    assert written_in(output / "_work") == before
    # One with other settings does not mix its results with those.
    refused = job("dedup", DOCS, output, "--similarity", "0.8", code=2)
    assert re.search("^error: .*similarity was 0.7, is 0.8", refused.stderr, re.MULTILINE)
    assert "\tat " not in refused.stderr, refused.stderr
    check_output(output, theirs)


def test_the_job_is_submitted(job, theirs, tmp_path):
    job("dedup", DOCS, tmp_path / "out", submit=True)
    check_output(tmp_path / "out", theirs)


def test_another_beginning(quick_job, theirs, tmp_path):
    quick_job("dedup", DOCS, tmp_path / "out")
    assert "--restart" in quick_job("dedup", DOCS, tmp_path / "out", "--similarity", "0.9", code=2).err
    quick_job("dedup", DOCS, tmp_path / "out", "--similarity", "0.9", "--restart")
    assert len(rows_in(tmp_path / "out/kept")) > len(theirs[0])


def test_the_report(quick_job, theirs, tmp_path):
    quick_job("dedup", DOCS, tmp_path / "out")
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["documents"] == len(documents_of("docs.jsonl")) and report["kept"] == len(theirs[0])


def test_a_radius(quick_job, program, tmp_path):
    """Parquet stays Parquet, and the fields are called what they are called."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lookalike import join, sign

    texts = [document["text"] for document in documents_of("docs.jsonl")]
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"number": range(len(texts)), "body": texts}), tmp_path / "in/docs.parquet")
    fields = ["--text-field", "body", "--id-field", "number", "--recipe", "minhash-256"]
    quick_job("dedup", tmp_path / "in", tmp_path / "out", "--radius", 40, "--linkage", "components", *fields)
    a, b, _ = join(sign(texts, "minhash-256"), 40)
    # The least of each component, from neighbor to neighbor.
    above = list(range(len(texts)))
    for _ in texts:
        for x, y in zip(a.tolist(), b.tolist()):
            above[x] = above[y] = min(above[x], above[y])
    kept = [row for row in range(len(texts)) if above[row] == row]
    rows = sorted(pq.read_table(tmp_path / "out/kept").to_pylist(), key=lambda row: row["number"])
    assert rows == [{"number": row, "body": texts[row]} for row in kept] and len(kept) < len(texts)


def test_step_by_step(quick_job, program, tmp_path):
    import pyarrow.parquet as pq

    quick_job("sign", DOCS, tmp_path / "signed")
    quick_job("pairs", tmp_path / "signed", tmp_path / "pairs", "--radius", "20", "--copies", "all")
    quick_job("clusters", tmp_path / "pairs", tmp_path / "clusters")
    program("sign", DOCS, "-o", tmp_path / "docs.sig")
    lines = program("join", tmp_path / "docs.sig", "--radius", 20, "--exact").splitlines()
    wanted = sorted(tuple(line.split(",")) for line in lines[1:])
    found = pq.read_table(tmp_path / "pairs").to_pylist()
    assert sorted((row["id_a"], row["id_b"], str(row["distance"])) for row in found) == wanted
    clusters = pq.read_table(tmp_path / "clusters/clusters").to_pylist()
    cluster_of = {row["id"]: row["cluster"] for row in clusters}
    assert set(cluster_of) == {id for pair in wanted for id in pair[:2]}
    assert all(cluster_of[a] == cluster_of[b] <= a for a, b, _ in wanted)


def test_what_is_wrong_is_said(quick_job, tmp_path):
    assert "nowhere" in quick_job("dedup", tmp_path / "nowhere.jsonl", tmp_path / "out", code=2).err
    assert "body" in quick_job("dedup", DOCS, tmp_path / "out", "--text-field", "body", code=2).err
    assert "usage" in quick_job("dedup", code=2).err
    assert "dedup" in quick_job("--help").out


def test_nothing_is_lost(quick_job, tmp_path):
    """Neither what is read nor what is not ours."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "data.txt").write_text("precious")
    said = quick_job("dedup", DOCS, tmp_path / "out", "--work", precious, "--restart", code=2)
    assert "not removed" in said.err and (precious / "data.txt").exists()
    inside = tmp_path / "all/kept"
    inside.mkdir(parents=True)
    (inside / "docs.jsonl").write_bytes(DOCS.read_bytes())
    assert "folder to write to" in quick_job("dedup", inside, tmp_path / "all", code=2).err
    assert (inside / "docs.jsonl").read_bytes() == DOCS.read_bytes()
    assert "not of a job" in quick_job("dedup", DOCS, tmp_path / "all", code=2).err


def test_lines_are_kept_as_they_are(quick_job, tmp_path):
    lines = ['{"text": "one text of some more words than a few, so that it has features", "n": 9999}\r', '{"n": 100000, "text":  "one text of some more words than a few, so that it has features"}', "", "[1]", '{"text": 5}',
             '{"text": "two"} {"text": "three"}', '{"text": "four"']  # fmt: skip
    (tmp_path / "in.jsonl").write_bytes("\n".join(lines).encode())
    said = quick_job("dedup", tmp_path / "in.jsonl", tmp_path / "out", "--by-place", code=2)
    assert "4 lines are no documents" in said.err and "--on-error skip" in said.err
    how = ["--by-place", "--on-error", "skip", "--keep", "newest n"]
    counts = json.loads(quick_job("dedup", tmp_path / "in.jsonl", tmp_path / "out", *how).out)
    assert (counts["documents"], counts["kept"], counts["bad"]) == (2, 1, 4)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "out/kept").glob("part-*"))
    # Numbers are seconds, not years.
    assert kept.decode() == lines[1] + "\n"
    assert rows_in(tmp_path / "out/removed")[0]["id"] == "in.jsonl:000000000001"
