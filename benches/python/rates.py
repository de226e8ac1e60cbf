"""What the Python package takes of the engine's speed: `sign` on a list of strings and `range_search` on a batch, beside the
native calls on the same data, in turn; and beside FAISS on the same arrays.

    cargo bench --bench python --no-run            makes the native side
    target/python-package/bin/python benches/python/rates.py [CORPUS.jsonl]
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import lookalike

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 7
MEGABYTES = 48
ROWS = 1_000_000
# FAISS scans: so many queries are enough to know its rate.
FAISS_QUERIES = 1000


def texts_of(path):
    """Texts of a corpus; those of the sample are repeated, each a little different."""
    texts = [json.loads(line)["text"] for line in open(path)]
    made, size = [], 0
    for number, text in enumerate(itertools.cycle(texts)):
        if size > MEGABYTES * 1e6:
            return made
        made.append(f"{number} {text}")
        size += len(made[-1])


def rows_of(bits, count):
    """Rows at random, and queries near some of them."""
    random = np.random.default_rng(bits)
    rows = random.integers(0, 256, (ROWS, bits // 8), dtype=np.uint8)
    queries = rows[random.integers(0, ROWS, count)]
    return rows, queries ^ np.packbits(random.random(queries.shape + (8,)) < 2 / bits, axis=2)[..., 0]


class Native:
    """The program on the other side."""

    def __init__(self, *arguments):
        listing = subprocess.run(
            ["cargo", "bench", "--bench", "python", "--no-run", "--message-format=json", "--quiet"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        made = [json.loads(line) for line in listing.stdout.splitlines()]
        program = next(of["executable"] for of in made if of.get("target", {}).get("name") == "python" and of["executable"])
        self.process = subprocess.Popen(
            [program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        return said["seconds"], said["found"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(call):
    started = time.perf_counter()
    found = call()
    return time.perf_counter() - started, found


def in_turn(calls):
    """The median seconds of each call; all have to find the same.

    Each is called once before it counts, and the order turns round by round: whoever comes after another finds the caches and
    the cores as that one left them.
    """
    times = {name: [] for name in calls}
    found = {name: call()[1] for name, call in calls.items()}
    for turn in range(ROUNDS + ROUNDS % 2):
        for name in list(calls)[:: 1 if turn % 2 else -1]:
            seconds, found[name] = calls[name]()
            times[name].append(seconds)
    assert len(set(found.values())) == 1, found
    return {name: float(np.median(of)) for name, of in times.items()}


def main():
    texts = texts_of(sys.argv[1] if len(sys.argv) > 1 else ROOT / "examples/docs.jsonl")
    megabytes = sum(map(len, texts)) / 1e6
    folder = Path(tempfile.mkdtemp())
    (folder / "texts.json").write_text(json.dumps(texts))
    signed = False
    # As many queries as take a good part of a second.
    for bits, radius, kind, count in [(64, 3, "multi-2x4", 400_000), (256, 12, "scan", 4000)]:
        rows, queries = rows_of(bits, count)
        np.save(folder / "rows.npy", rows)
        np.save(folder / "queries.npy", queries)
        native = Native(folder / "texts.json", folder / "rows.npy", folder / "queries.npy", kind)
        if not signed:
            signed = True
            told = in_turn({
                "native": lambda: native.ask("sign"),
                "python": lambda: timed(lambda: int(lookalike.sign(texts).signed.sum())),
            })  # fmt: skip
            for name, seconds in told.items():
                print(f"sign, {len(texts)} texts, {megabytes:.0f} MB: {name:7} {megabytes / seconds:7.1f} MB/s")
            print(f"  python / native: {told['native'] / told['python']:.2f}\n")
        search(native, rows, queries, bits, radius, kind)
        native.close()


def search(native, rows, queries, bits, radius, kind):
    index = lookalike.Index.build(rows, kind)
    calls = {
        "native": lambda: native.ask(f"within {radius}"),
        "python": lambda: timed(lambda: len(index.range_search(queries, radius)[2])),
    }
    told = in_turn(calls)
    title = f"range_search, {bits} bits, radius {radius}, {ROWS} rows"
    for name, seconds in told.items():
        print(f"{title}: {name:7} {len(queries) / seconds:9.0f} queries/s ({kind})")
    print(f"  python / native: {told['native'] / told['python']:.2f}")
    beside_faiss(title, index, rows, queries[:FAISS_QUERIES], radius)


def beside_faiss(title, index, rows, queries, radius):
    """After the others: its threads go on waiting for work when a call is over, on the cores of whoever comes next."""
    try:
        import faiss
    except ImportError:
        print("faiss is not installed\n")
        return
    theirs = faiss.IndexBinaryFlat(rows.shape[1] * 8)
    theirs.add(rows)
    told = in_turn({
        "python": lambda: timed(lambda: len(index.range_search(queries, radius)[2])),
        "faiss": lambda: timed(lambda: len(theirs.range_search(queries, radius + 1)[2])),
    })  # fmt: skip
    for name, seconds in told.items():
        print(f"{title}, {len(queries)} queries at a time: {name:7} {len(queries) / seconds:9.0f} queries/s")
    print()


main()
