"""The k nearest by other libraries: faiss and usearch, one thread, one query a call. See README.md beside this file."""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time
import zlib

import faiss
import numpy as np
import usearch
from best import best
from contenders import K, Shelf, CONTENDERS

PASSES = 5
PLANS = {
    "flat": [("faiss flat", {})],
    "ivf": [("faiss ivf", {"nlist": nlist}) for nlist in (4096, 2048, 8192, 1024)],
    "hnsw": [("faiss hnsw", {"m": m, "ef": ef}) for m, ef in ((16, 200), (16, 40), (32, 40), (32, 200))],
    "usearch": [("usearch", {"m": m, "ef": ef}) for m, ef in ((16, 128), (32, 128), (16, 64), (16, 200))],
}


class Asked:
    """Queries with their true answers."""

    def __init__(self, name, path, count, rows):
        self.name, self.path, self.rows = name, path, rows
        self.queries = np.ascontiguousarray(np.load(path)[:count])
        self.hash = f"{zlib.crc32(self.queries.tobytes()):08x}"
        self.known = {}

    def truth(self, count):
        """The distances of the nearest among the first rows."""
        if count not in self.known:
            index = faiss.IndexBinaryFlat(self.rows.shape[1] * 8)
            index.add(self.rows[:count])
            self.known[count] = np.sort(index.search(self.queries, K)[0], axis=1)
        return self.known[count]

    def score(self, distances, count):
        """Recall, where a row as far as the k-th counts, and cumulative distance ratio."""
        truth = self.truth(count)
        found = np.sort(np.asarray(distances), axis=1)
        recall = (found <= truth[:, -1:]).mean()
        found = np.minimum(found, self.rows.shape[1] * 8)
        sums, true_sums = found.cumsum(axis=1), truth.cumsum(axis=1)
        ratios = np.where(sums == 0, 1.0, true_sums / np.maximum(sums, 1))
        return {"recall": round(float(recall), 5), "cdr": round(float(ratios.mean()), 5)}


def timed(ask, count):
    """Milliseconds a query."""
    start = time.perf_counter()
    for number in range(count):
        ask(number)
    return (time.perf_counter() - start) * 1000 / count


def measure(contender, facts, asked, search, passes=PASSES):
    contender.prepare(**search)
    ask, (distances, _) = contender.asker(asked.queries)
    count = len(asked.queries)
    ms = [timed(ask, count) for _ in range(passes)]
    return {"ms": round(statistics.median(ms), 5), **asked.score(distances, facts["rows"])}


def batched(contender, facts, asked, passes=PASSES):
    """All queries in one call, which only a scan gains much from."""
    ms = []
    for _ in range(passes):
        start = time.perf_counter()
        distances, _ = contender.batch(asked.queries)
        ms.append((time.perf_counter() - start) * 1000 / len(asked.queries))
    return {"ms": round(statistics.median(ms), 5), **asked.score(distances, facts["rows"])}


class Bench:
    """Rows, queries, opponents and our own program, measured into one file."""

    def __init__(self, options):
        self.options = options
        self.rows = np.load(options.rows)
        self.sets = {
            name: Asked(name, path, options.queries, self.rows) for name, path in (("a", options.tune), ("b", options.report))
        }
        self.shelf = Shelf(options.cache, not (options.only_search or options.best))
        self.plan = [one for family in options.peers.split(",") for one in PLANS[family]]

    def line(self, peer, build, search, asked, batch=False, passes=PASSES):
        """One setting measured with one set of queries; nothing if there is no such index."""
        index = self.shelf.index(peer, build, self.rows)
        if index is None:
            return None
        contender, facts = index
        got = batched(contender, facts, asked, passes) if batch else measure(contender, facts, asked, search, passes)
        size = len(asked.queries) if batch else 1
        about = {**self.about(asked), "peer": peer, "build": build, "search": search}
        return {**about, "batch": size, **got, **facts}

    def about(self, asked):
        return {"bits": self.rows.shape[1] * 8, "set": asked.name, "queries": asked.hash}

    def peers(self):
        for peer, build in self.plan:
            for asked in self.sets.values():
                for search in CONTENDERS[peer].searches:
                    yield self.line(peer, build, search, asked)
                if peer == "faiss flat":
                    yield self.line(peer, build, {}, asked, batch=True)
            self.shelf.close()

    def ours(self, asked, setting="all"):
        """What our program prints, line by line: the words of the command in braces are replaced first."""
        words = {"rows": self.options.rows, "queries": asked.path, "count": len(asked.queries), "k": K, "setting": setting}
        command = [word.format(**words) for word in shlex.split(self.options.ours)]
        lines = map(json.loads, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines())
        for line in lines:
            found = line.pop("distances", None)
            scores = {} if found is None else asked.score(found, len(self.rows))
            about = {**self.about(asked), "peer": "ours", "rows": len(self.rows), "batch": 1}
            yield {**about, **line, **scores}

    def all(self):
        if self.options.ours:
            for asked in self.sets.values():
                yield from self.ours(asked)
        yield from self.peers()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", required=True, help=".npy: a row of bytes for each signature")
    parser.add_argument("--tune", required=True, help=".npy: the queries with which settings are chosen (set a)")
    parser.add_argument("--report", required=True, help=".npy: the queries that are reported (set b)")
    parser.add_argument("--queries", type=int, default=500, help="so many of each")
    parser.add_argument("--peers", default="flat,ivf,hnsw,usearch", help="in this order")
    parser.add_argument("--cache", required=True, help="folder of the indexes built so far")
    parser.add_argument("--results", required=True, help="file of JSON lines, appended to")
    parser.add_argument("--only-search", action="store_true", help="nothing is built: indexes not in the cache are skipped")
    parser.add_argument("--ours", help="our program: prints JSON lines with setting, ms, and distances or recall and cdr")
    parser.add_argument("--best", action="store_true", help="only the fastest that reach each goal, in turn, and a table of ratios")
    return parser.parse_args()


def main():
    options = arguments()
    faiss.omp_set_num_threads(1)
    print(f"faiss {faiss.__version__} using {faiss.SIMDConfig.get_level_name()}, usearch {usearch.__version__}", file=sys.stderr)
    bench = Bench(options)
    path = pathlib.Path(options.results)
    if options.best:
        earlier = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return best(bench, earlier)
    with path.open("a") as results:
        for line in filter(None, bench.all()):
            print(json.dumps(line), file=results, flush=True)
            print(json.dumps(line), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
