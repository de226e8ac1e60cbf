"""Deduplicates a large corpus with `lookalike dedup` and prints a table: speed, memory, recall; the same with a footer and a
template planted; and whether threads, memory and a kill change the result.

    python3 benches/dedup/corpus.py corpus.jsonl [--program target/release/lookalike] [--only plain,planted,same]

The corpus is JSON lines with `id` and `text`, as `make_corpus.py` makes it. Nothing but Python is needed.
"""

import argparse
import hashlib
import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

FOOTER = (
    "This page is part of the reference manual and is provided as it is without any warranty of fitness for a purpose. "
    "Copyright of the text belongs to its authors and contributors who have asked to be named in the list at the end. "
    "You may copy and change it under the terms of the licence that came with it if you keep this notice in place. "
    "Questions and corrections are welcome at the address below which is read by several people every working day."
)


def run(program, corpus, output, *flags, keep=False):
    """Runs it; gives the report, with wall and CPU seconds and the peak of resident memory."""
    shutil.rmtree(output, ignore_errors=True)
    command = [program, "dedup", corpus, "-o", output, "--force", "--quiet", *flags]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    process = subprocess.Popen([str(part) for part in command])
    _, status, usage = __import__("os").wait4(process.pid, 0)
    assert status == 0, status
    report = json.loads((output / "report.json").read_text())
    report["wall"] = time.time() - started
    report["cpu"] = usage.ru_utime + usage.ru_stime
    report["rss"] = usage.ru_maxrss * 1024
    report["digest"] = digest(output)
    if not keep:
        shutil.rmtree(output)
    return report


def digest(output):
    """A hash of all that was kept and removed."""
    files = sorted(path for folder in ("kept", "removed") for path in (output / folder).rglob("*") if path.is_file())
    hashed = hashlib.blake2b()
    for path in files:
        with open(path, "rb") as file:
            while block := file.read(1 << 24):
                hashed.update(block)
    return hashed.hexdigest()[:16]


def row(name, report):
    checked = report["checked"]
    stages = ", ".join(f"{stage['name']} {stage['seconds']:.1f}" for stage in report["stages"])
    recall = checked["recall"] if checked["recall"] is not None else float("nan")
    print(
        f"| {name} | {report['documents']} | {report['kept']} | {report['wall']:.1f} ({stages}) | {report['cpu']:.1f} "
        f"| {report['documents'] / report['wall']:.0f} | {report['rss'] / 2**30:.2f} | {recall:.4f} "
        f"| {checked['left_behind']} of {checked['kept']} |",
        flush=True,
    )


def header():
    print("| run | documents | kept | wall s | CPU s | documents/s | RSS GiB | recall | left with one |")
    print("|---|---|---|---|---|---|---|---|---|")


def plant_footer(corpus, planted, words=85):
    """Every tenth document gets the same footer of so many words."""
    footer = " ".join(FOOTER.split()[:words])
    with open(corpus) as lines, open(planted, "w") as out:
        for number, line in enumerate(lines):
            if number % 10 == 0:
                document = json.loads(line)
                document["text"] += "\n" + footer
                line = json.dumps(document, ensure_ascii=False) + "\n"
            out.write(line)


def plant_template(corpus, planted, copies=200_000):
    """So many near-copies of one text, each with two words of its own, spread over the corpus."""
    chance = random.Random(1)
    words = [f"template{chance.randrange(10**9)}" for _ in range(120)]
    with open(corpus) as lines, open(planted, "w") as out:
        for number, line in enumerate(lines):
            out.write(line)
            if number % 9 == 0 and number // 9 < copies:
                copy = list(words)
                for place in chance.sample(range(120), 2):
                    copy[place] = f"own{chance.randrange(10**12)}"
                document = {"id": f"template:{number // 9}", "text": " ".join(copy), "source": "template"}
                out.write(json.dumps(document) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--program", type=pathlib.Path, default=pathlib.Path("target/release/lookalike"))
    parser.add_argument("--folder", type=pathlib.Path, help="where there is room for copies of the corpus")
    parser.add_argument("--only", default="plain,planted,same")
    parser.add_argument("--check", default="1000", help="documents that are compared with all others")
    arguments = parser.parse_args()
    program, only = arguments.program.resolve(), arguments.only.split(",")
    folder = pathlib.Path(tempfile.mkdtemp(dir=arguments.folder))
    output = folder / "out"
    flags = ["--memory", "2G", "--check", arguments.check]
    header()
    if "plain" in only:
        for similarity in ("0.8", "0.7", "0.5"):
            row(similarity, run(program, arguments.corpus, output, "--similarity", similarity, *flags))
    if "planted" in only:
        for name, plant in (
            ("a footer of 40 words in a tenth", lambda *paths: plant_footer(*paths, words=40)),
            ("a footer of 85 words in a tenth", plant_footer),
            ("200,000 near-copies", plant_template),
        ):
            planted = folder / "planted.jsonl"
            plant(arguments.corpus, planted)
            for similarity in ("0.8", "0.7"):
                report = run(program, planted, output, "--similarity", similarity, *flags, keep=True)
                row(f"{similarity}, {name}", report)
                kept = [source for source in report["sources"] if source["source"] == "template"]
                if kept:
                    print(f"  of the template: {kept[0]['documents'] - kept[0]['removed']} kept", flush=True)
    if "same" in only:
        reports = {}
        for name, more in (("2G", []), ("8G", ["--memory", "8G"]), ("1 thread", ["--threads", "1"])):
            given = flags if not more or more[0] != "--memory" else flags[2:]
            reports[name] = run(program, arguments.corpus, output, "--similarity", "0.7", *given, *more)
            row(f"0.7, {name}", reports[name])
        reports["killed"] = killed(program, arguments.corpus, output, reports["2G"]["wall"], flags)
        row("0.7, killed and resumed", reports["killed"])
        digests = {name: report["digest"] for name, report in reports.items()}
        print("the same result" if len(set(digests.values())) == 1 else f"DIFFERENT RESULTS: {digests}")
    shutil.rmtree(folder)


def killed(program, corpus, output, wall, flags):
    """Kills it again and again, in one stage after the other, then lets it finish."""
    shutil.rmtree(output, ignore_errors=True)
    command = [program, "dedup", corpus, "-o", output, "--force", "--quiet", "--similarity", "0.7", *flags]
    for share in (0.2, 0.5, 0.4):
        process = subprocess.Popen([str(part) for part in command])
        time.sleep(wall * share)
        if process.poll() == 0:
            raise SystemExit("it was done before it could be killed: the corpus is too small")
        process.send_signal(signal.SIGKILL)
        process.wait()
    started = time.time()
    subprocess.run([str(part) for part in command], check=True)
    report = json.loads((output / "report.json").read_text())
    report.update(wall=time.time() - started, cpu=0, rss=0, digest=digest(output))
    return report


if __name__ == "__main__":
    main()
