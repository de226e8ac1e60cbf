"""Our scan beside faiss IndexBinaryFlat: same rows, same queries, one thread, in turn. See README.md beside this file."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import faiss
import numpy as np

K = 10
QUERIES = 256
SINGLES = 16
PLANTED = 4
ROOT = pathlib.Path(__file__).resolve().parents[2]


def data(bits, mib, seed):
    """Random rows and queries; near each query a few rows, at distances up to the small radius."""
    random = np.random.default_rng([seed, bits])
    width = bits // 8
    rows = random.integers(0, 256, (mib * 2**20 // width, width), dtype=np.uint8)
    queries = random.integers(0, 256, (QUERIES, width), dtype=np.uint8)
    for query in queries:
        for row in random.integers(0, len(rows), PLANTED):
            rows[row] = query
            for bit in random.integers(0, bits, random.integers(0, bits * 3 // 64 + 1)):
                rows[row, bit // 8] ^= 1 << (bit % 8)
    return rows, queries


class Ours:
    """Our program, asked line by line: a scan, or the tables of a method."""

    def __init__(self, program, folder, *method):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        paths = [folder / "rows.npy", folder / "queries.npy"]
        self.process = subprocess.Popen([program, *paths, *method], **pipes)
        about = json.loads(self.process.stdout.readline())
        self.kernel, self.build = about["kernel"], about["build"]

    def ask(self, question, number, first, count):
        print(question, number, first, count, file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        return answer["seconds"], [[tuple(pair) for pair in one] for one in answer["answers"]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Faiss:
    """IndexBinaryFlat on one thread."""

    def __init__(self, rows, queries):
        faiss.omp_set_num_threads(1)
        self.queries = queries
        self.index = faiss.IndexBinaryFlat(rows.shape[1] * 8)
        self.index.add(rows)

    def ask(self, question, number, first, count):
        queries = self.queries[first : first + count]
        start = time.perf_counter()
        if question == "nearest":
            distances, rows = self.index.search(queries, number)
            limits = np.arange(count + 1) * number
        else:
            limits, distances, rows = self.index.range_search(queries, number + 1)
        seconds = time.perf_counter() - start
        pairs = list(zip(distances.ravel().astype(int).tolist(), rows.ravel().tolist()))
        return seconds, [sorted(pairs[limits[i] : limits[i + 1]]) for i in range(count)]


def same(question, ours, theirs):
    """Whether answers agree. At the edge of the k nearest, faiss may take another of several rows as far."""
    if question == "within":
        return ours == theirs
    return all(
        [distance for distance, _ in a] == [distance for distance, _ in b]
        and {pair for pair in a if pair[0] < a[-1][0]} == {pair for pair in b if pair[0] < b[-1][0]}
        for a, b in zip(ours, theirs)
    )


def compare(rows, queries, options, program, folder):
    bits = rows.shape[1] * 8
    for name, array in ("rows.npy", rows), ("queries.npy", queries):
        np.save(folder / name, array)
    ours, theirs = Ours(program, folder), Faiss(rows, queries)
    questions = [("within", bits * 3 // 64), ("within", bits * 10 // 64), ("nearest", K)]
    jobs = [(*q, size) for q in questions for size in (1, QUERIES)]
    seconds = {job: [] for job in jobs}
    matches = {}
    for repeat in range(options.repeats):
        for job in jobs:
            question, number, size = job
            asked = range(SINGLES) if size == 1 else [0]
            times = np.empty((len(asked), 2))
            for first in asked:
                times[first, 0], answers = ours.ask(question, number, first, size)
                times[first, 1], their_answers = theirs.ask(question, number, first, size)
                assert same(question, answers, their_answers), (bits, job, first)
            seconds[job].append(times)
            matches[job] = sum(map(len, answers))
    ours.close()
    gigabytes = rows.nbytes / 1e9
    for job, times in seconds.items():
        question, number, size = job
        # The median of each query, and the mean of these: some queries are quicker than others.
        mine, other = size * gigabytes / np.median(times, axis=0).mean(axis=0)
        print(
            f"| {bits} | {question} {number} | {size} | {ours.kernel} | {mine:.1f} | {other:.1f} "
            f"| {mine / other:.2f} | {matches[job]} |",
            flush=True,
        )


def our_program():
    build = ["cargo", "bench", "--bench", "faiss", "--no-run"]
    built = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True).stderr
    return ROOT / re.search(r"Executable .*\((.*)\)", built).group(1)


def print_faiss():
    print(f"faiss {faiss.__version__}, options {faiss.get_compile_options().strip()}", end="")
    level = getattr(getattr(faiss, "SIMDConfig", None), "get_level_name", None)
    print(f", using {level()}" if level else f", library {os.path.basename(faiss.swigfaiss.__file__)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--bits", default="64,1024")
    parser.add_argument("--files", nargs=2, metavar=("ROWS.npy", "QUERIES.npy"), help="in place of random rows")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    program = our_program()
    print_faiss()
    about = "rows of a file" if options.files else f"{options.mib} MiB of random rows, seed {options.seed}"
    print(f"{about}, one thread, medians of {options.repeats}")
    print("rates in GB/s of rows compared\n")
    print("| bits | question | queries | our kernel | ours | faiss | ours / faiss | matches |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        if options.files:
            rows, queries = map(np.load, options.files)
            compare(rows, queries[:QUERIES], options, program, pathlib.Path(folder))
            return
        for bits in options.bits.split(","):
            rows, queries = data(int(bits), options.mib, options.seed)
            compare(rows, queries, options, program, pathlib.Path(folder))


if __name__ == "__main__":
    main()
