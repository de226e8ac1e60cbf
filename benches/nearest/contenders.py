"""The opponents: each is built on one thread, kept in a folder, and asked one query a call."""

import json
import pathlib
import time

import faiss
import numpy as np
from usearch.index import Index, MetricKind, ScalarKind

K = 10
LIMIT = 20 * 60  # seconds of a build
FEW = 250_000  # rows, where all would take longer
CHUNK = 50_000
TRAIN = 50  # rows for each list's centroid: faiss asks for 39 to 256


def chunks(rows, add):
    """Adds rows piece by piece: all of them, or the first `FEW` if all would take longer than the limit."""
    start = time.perf_counter()
    for first in range(0, len(rows), CHUNK):
        if first == FEW and (time.perf_counter() - start) * len(rows) / FEW > LIMIT:
            return first
        add(first, rows[first : first + CHUNK])
    return len(rows)


class FaissIndex:
    """What the indexes of faiss have in common. The calls are those beneath the wrapper for arrays, which costs microseconds."""

    def __init__(self, index):
        self.index = index

    @classmethod
    def load(cls, path):
        return cls(faiss.read_index_binary(str(path)))

    def save(self, path):
        faiss.write_index_binary(self.index, str(path))

    def asker(self, queries):
        """A function that answers the query of a number: distances and rows."""
        found = np.empty((len(queries), K), dtype=np.int32), np.empty((len(queries), K), dtype=np.int64)
        each = [[faiss.swig_ptr(part[i]) for part in (queries, *found)] for i in range(len(queries))]
        search = self.index.search_c

        def ask(number):
            query, distances, rows = each[number]
            search(1, query, K, distances, rows)

        # Pointers keep nothing alive.
        ask.arrays = queries, found
        return ask, found

    def batch(self, queries):
        return self.index.search(queries, K)


class Flat(FaissIndex):
    name = "faiss flat"
    searches = [{}]

    @classmethod
    def build(cls, rows):
        index = faiss.IndexBinaryFlat(rows.shape[1] * 8)
        index.add(rows)
        return cls(index), len(rows)

    def prepare(self):
        pass


class Ivf(FaissIndex):
    name = "faiss ivf"
    searches = [{"nprobe": n} for i in range(10) for n in ([2**i, 3 * 2 ** (i - 1)] if 4 <= i < 9 else [2**i])]

    @classmethod
    def build(cls, rows, nlist):
        bits = rows.shape[1] * 8
        quantizer = faiss.IndexBinaryFlat(bits)
        index = faiss.IndexBinaryIVF(quantizer, bits, nlist)
        index.own_fields = True
        quantizer.this.disown()
        some = np.random.default_rng(1).choice(len(rows), min(len(rows), TRAIN * nlist), replace=False)
        index.train(rows[np.sort(some)])
        index.add(rows)
        return cls(index), len(rows)

    def prepare(self, nprobe):
        self.index.nprobe = nprobe


class Hnsw(FaissIndex):
    name = "faiss hnsw"
    searches = [{"ef": 2**i} for i in range(4, 11)]

    @classmethod
    def build(cls, rows, m, ef):
        index = faiss.IndexBinaryHNSW(rows.shape[1] * 8, m)
        index.hnsw.efConstruction = ef
        return cls(index), chunks(rows, lambda _, part: index.add(part))

    def prepare(self, ef):
        self.index.hnsw.efSearch = ef


class Usearch:
    name = "usearch"
    searches = [{"expansion": 2**i} for i in range(4, 11)]

    def __init__(self, index):
        self.index = index

    @classmethod
    def build(cls, rows, m, ef):
        bits = rows.shape[1] * 8
        index = Index(
            ndim=bits, metric=MetricKind.Hamming, dtype=ScalarKind.B1, connectivity=m, expansion_add=ef, expansion_search=64
        )
        add = lambda first, part: index.add(np.arange(first, first + len(part)), part, threads=1)
        return cls(index), chunks(rows, add)

    @classmethod
    def load(cls, path):
        return cls(Index.restore(str(path)))

    def save(self, path):
        self.index.save(str(path))

    def prepare(self, expansion):
        self.index.expansion_search = expansion

    def asker(self, queries):
        found = np.full((len(queries), K), 2**30, dtype=np.int32), np.full((len(queries), K), -1, dtype=np.int64)
        each = [queries[i : i + 1] for i in range(len(queries))]
        # Beneath the wrapper, as with faiss.
        search, kind = self.index._compiled.search_many, ScalarKind.B1

        def ask(number):
            rows, distances, counts, *_ = search(each[number], count=K, exact=False, threads=1, dtype=kind)
            count = counts[0]
            found[0][number, :count] = distances[0, :count]
            found[1][number, :count] = rows[0, :count]

        return ask, found


CONTENDERS = {kind.name: kind for kind in (Flat, Ivf, Hnsw, Usearch)}


class Shelf:
    """Indexes on disk, and how long their builds took."""

    def __init__(self, folder, builds):
        self.folder, self.builds = pathlib.Path(folder), builds
        self.folder.mkdir(parents=True, exist_ok=True)
        self.open = {}

    def index(self, name, build, rows):
        """The index and its facts; nothing if it is to be built but may not be."""
        bits = rows.shape[1] * 8
        stem = "-".join([name.replace(" ", "-"), str(bits), str(len(rows)), *map(str, build.values())])
        path, facts = self.folder / f"{stem}.index", self.folder / f"{stem}.json"
        if stem in self.open:
            return self.open[stem]
        if facts.exists():
            index = CONTENDERS[name].load(path)
        elif self.builds:
            index = self.make(name, build, rows, path, facts)
        else:
            return None
        self.open[stem] = index, json.loads(facts.read_text())
        return self.open[stem]

    def make(self, name, build, rows, path, facts):
        wall, cpu = time.perf_counter(), time.process_time()
        index, count = CONTENDERS[name].build(rows, **build)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        index.save(path)
        about = {"rows": count, "build_wall": round(wall, 1), "build_cpu": round(cpu, 1), "bytes": path.stat().st_size}
        if count < len(rows):
            about["note"] = f"all {len(rows)} rows would take longer than {LIMIT} s to build"
        facts.write_text(json.dumps(about))
        return index

    def close(self):
        self.open.clear()
