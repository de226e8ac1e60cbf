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
ROWS, QUERIES = 1_000_000, 2000


def texts_of(path):
    """Texts of a corpus; those of the sample are repeated, each a little different."""
    texts = [json.loads(line)["text"] for line in open(path)]
    made, size = [], 0
    for number, text in enumerate(itertools.cycle(texts)):
        if size > MEGABYTES * 1e6:
            return made
        made.append(f"{number} {text}")
        size += len(made[-1])


def rows_of(bits):
    """Rows at random, and queries near some of them."""
    random = np.random.default_rng(bits)
    rows = random.integers(0, 256, (ROWS, bits // 8), dtype=np.uint8)
    queries = rows[random.integers(0, ROWS, QUERIES)]
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
    """The median seconds of each call; all have to find the same."""
    times = {name: [] for name in calls}
    found = {}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            seconds, found[name] = call()
            times[name].append(seconds)
    assert len(set(found.values())) == 1, found
    return {name: float(np.median(of)) for name, of in times.items()}


def main():
    texts = texts_of(sys.argv[1] if len(sys.argv) > 1 else ROOT / "examples/docs.jsonl")
    megabytes = sum(map(len, texts)) / 1e6
    folder = Path(tempfile.mkdtemp())
    (folder / "texts.json").write_text(json.dumps(texts))
    signed = False
    for bits, radius, kind in [(64, 3, "multi-2x4"), (256, 12, "scan")]:
        rows, queries = rows_of(bits)
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
    try:
        import faiss
    except ImportError:
        print("faiss is not installed")
    else:
        theirs = faiss.IndexBinaryFlat(bits)
        theirs.add(rows)
        calls["faiss"] = lambda: timed(lambda: len(theirs.range_search(queries, radius + 1)[2]))
    told = in_turn(calls)
    for name, seconds in told.items():
        what = "IndexBinaryFlat" if name == "faiss" else kind
        print(f"range_search, {bits} bits, radius {radius}, {ROWS} rows, {QUERIES} queries: "
              f"{name:7} {QUERIES / seconds:9.0f} queries/s ({what})")  # fmt: skip
    print(f"  python / native: {told['native'] / told['python']:.2f}\n")


main()
