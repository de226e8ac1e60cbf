"""Our tables beside faiss IndexBinaryMultiHash: same rows, same queries, one thread, in turn. See README.md beside this file."""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

import faiss
import numpy as np
from scan import ROOT, Ours, our_program, print_faiss

BITS = 64


def data(folder, options):
    """Rows and queries by the program of benches/rivals: those with which the other libraries are measured."""
    run = ["cargo", "run", "--release", "--quiet", "--manifest-path", "benches/rivals/Cargo.toml", "--", "data"]
    flags = {"--rows": options.rows, "--queries": options.queries, "--seed": options.seed, "--to": folder}
    run += [str(word) for flag in flags.items() for word in flag] + ["--uniform"] * options.uniform
    subprocess.run(run, cwd=ROOT, check=True)
    return np.load(folder / "rows.npy"), np.load(folder / "queries.npy")


class MultiHash:
    """Exact: if `hashes` slices have at most `radius` errors, one of them has at most radius // hashes."""

    def __init__(self, rows, queries, hashes, radius):
        self.queries, self.radius = queries, radius
        self.index = faiss.IndexBinaryMultiHash(BITS, hashes, BITS // hashes)
        self.index.nflip = radius // hashes
        start = time.perf_counter()
        self.index.add(rows)
        self.build = time.perf_counter() - start

    def ask(self):
        start = time.perf_counter()
        limits, distances, rows = self.index.range_search(self.queries, self.radius + 1)
        seconds = time.perf_counter() - start
        pairs = list(zip(distances.astype(int).tolist(), rows.tolist()))
        answers = [sorted(pairs[i:j]) for i, j in zip(limits[:-1], limits[1:])]
        return len(self.queries) / seconds, answers


class Tables(Ours):
    """All queries as a batch; the answers that faiss gives, too."""

    def __init__(self, program, folder, method, options):
        super().__init__(program, folder, method)
        self.options = options

    def ask(self):
        seconds, answers = super().ask("within", self.options.radius, 0, self.options.queries)
        return self.options.queries / seconds, answers[: self.options.faiss_queries]


def compare(options, program, folder):
    rows, queries = data(folder, options)
    few = queries[: options.faiss_queries]
    ours = {method: Tables(program, folder, method, options) for method in options.methods.split(",")}
    theirs = {}
    for hashes in map(int, options.hashes.split(",")):
        name = f"{hashes} hashes of {BITS // hashes} bits, {options.radius // hashes} flipped"
        theirs[name] = MultiHash(rows, few, hashes, options.radius)

    rates, answers = {}, {}
    for _ in range(options.repeats):
        for pair in [(a, b) for b in theirs.items() for a in ours.items()]:
            for name, contender in pair:
                rate, answers[name] = contender.ask()
                rates.setdefault(name, []).append(rate)
    for contender in ours.values():
        contender.close()

    for method in ours:
        for name in theirs:
            mine, other = (statistics.median(rates[who]) for who in (method, name))
            same = answers[method] == answers[name]
            print(
                f"| {method} | {name} | {ours[method].build:.1f} | {theirs[name].build:.1f} | {mine:.0f} | {other:.0f} "
                f"| {f'{mine / other:.1f}' if same else 'NOT THE SAME'} | {sum(map(len, answers[name]))} |"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--faiss-queries", type=int, default=2000, help="so many of the queries are for faiss, too")
    parser.add_argument("--radius", type=int, default=3)
    parser.add_argument("--methods", default="multi-2x3:lines,multi-2x3,multi-2x4")
    parser.add_argument("--hashes", default="4,3")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--uniform", action="store_true", help="random signatures in place of documents")
    options = parser.parse_args()

    program = our_program()
    faiss.omp_set_num_threads(1)
    print_faiss()
    kind = "random signatures" if options.uniform else "workload of the thesis"
    print(f"{options.rows} rows, {kind}, seed {options.seed}, within {options.radius}, one thread, all neighbors")
    print(f"{options.queries} queries for ours, {options.faiss_queries} of them for faiss, medians of {options.repeats} or more")
    print("build in seconds, rates in queries a second, matches of the queries that both answer\n")
    print("| ours | faiss | our build | faiss build | ours | faiss | ours / faiss | matches |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        compare(options, program, pathlib.Path(folder))


if __name__ == "__main__":
    main()
