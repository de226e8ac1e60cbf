"""Other libraries that find near-duplicates, and our program, on labelled sets. See README.md beside this file."""

import argparse
import csv
import gzip
import json
import logging
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# What is measured is one core.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[variable] = "1"


def in_own_environment():
    """Runs this script again in `.venv`, which is made if it is not there."""
    python = ROOT / ".venv" / "bin" / "python"
    if not python.exists():
        venv.create(ROOT / ".venv", with_pip=True)
    install = [python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"]
    subprocess.run(install, check=True)
    os.execv(python, [python, __file__, *sys.argv[1:]])


try:
    import datasketch
    import numpy as np
    import rensa
    import scipy.sparse
    import simhash
except ImportError:
    if pathlib.Path(sys.prefix) == ROOT / ".venv":
        raise
    in_own_environment()

# One core for all.
os.environ["RAYON_NUM_THREADS"] = "1"
try:
    import lookalike
except ImportError:
    lookalike = None

PERMUTATIONS = 128
ROUNDS = 5
# Its index looks at more rows than a scan beyond this radius.
MOST_BITS = 8
THRESHOLDS = [t / 10 for t in range(2, 10)]
WORDS = re.compile(r"\w+")
# name, file, least words of a document, least value of a labelled pair (none: labels are clusters), unlabelled pairs that
# are so alike count neither way (none: they are wrong)
SETS = [
    ("source_versions", "source_versions", 0, None, None),
    ("versioned_docs", "versioned_docs", 0, None, 0.8),
    ("wikisplit", "wikisplit", 0, None, None),
    ("spamassassin J>=.5", "spamassassin", 30, 0.5, None),
    ("spamassassin J>=.8", "spamassassin", 30, 0.8, None),
    ("reuters J>=.5", "reuters21578", 30, 0.5, None),
    ("reuters J>=.8", "reuters21578", 30, 0.8, None),
]
TIMED = ["source_versions", "wikisplit"]


def half(name):
    """Which half something of this name is in: as `lookalike::quality::half` has it."""
    mask = 2**64 - 1
    hashed = 0xCBF29CE484222325
    for byte in name.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 & mask
    hashed = (hashed ^ hashed >> 30) * 0xBF58476D1CE4E5B9 & mask
    hashed = (hashed ^ hashed >> 27) * 0x94D049BB133111EB & mask
    return bool((hashed ^ hashed >> 31) >> 63)


assert [half(name) for name in ["", *"abcdefg"]] == [True, False, False, False, False, True, True, False]


def shingles(text):
    """The set of lower-cased word 3-grams; a shorter text is one shingle."""
    words = WORDS.findall(text.lower())
    if len(words) < 3:
        return {" ".join(words)} if words else set()
    return {" ".join(run) for run in zip(words, words[1:], words[2:])}


def jaccard(a, b):
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


class Documents:
    """Texts, which pairs of them belong together, and which count neither way."""

    def __init__(self, ids, texts, truth, ignore_above):
        self.ids, self.texts, self.truth, self.ignore_above = ids, texts, truth, ignore_above
        self.forget()

    def forget(self):
        self.sets, self.kept = None, {}

    def with_sets(self):
        if self.sets is None:
            self.sets = [shingles(text) for text in self.texts]
        return self

    def keep(self, key, make):
        """What `make` makes; once, as two rows of a peer differ in nothing but their settings."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def f1(self, found):
        """F1 of pairs that were found, with their similarities."""
        right = sum(pair in self.truth for pair in found)
        wrong = [pair for pair in found if pair not in self.truth]
        if self.ignore_above is not None:
            wrong = [(a, b) for a, b in wrong if jaccard(self.sets[a], self.sets[b]) < self.ignore_above]
        total = right + len(wrong) + len(self.truth)
        return 2 * right / total if total else 1.0


def read(path, least_words, least_value, ignore_above):
    """All documents, and two halves: settings are chosen on one and scored on the other, either way."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    documents = [d for d in documents if len(WORDS.findall(d["text"])) >= least_words]
    ids = [d["id"] for d in documents]
    if least_value is None:
        names = [d["cluster"] for d in documents]
        rows = {}
        for row, name in enumerate(names):
            rows.setdefault(name, []).append(row)
        rows.pop(None, None)
        truth = {(a, b) for group in rows.values() for i, a in enumerate(group) for b in group[i + 1 :]}
    else:
        truth, names = read_pairs(path, ids, least_value)
    names = [name if name is not None else id for name, id in zip(names, ids)]
    texts = [d["text"] for d in documents]

    def part(wanted):
        rows = [row for row in range(len(ids)) if wanted is None or half(names[row]) == wanted]
        new = {row: i for i, row in enumerate(rows)}
        pairs = {(new[a], new[b]) for a, b in truth if a in new and b in new}
        return Documents([ids[r] for r in rows], [texts[r] for r in rows], pairs, ignore_above)

    return part(None), part(False), part(True)


def read_pairs(path, ids, least_value):
    """Labelled pairs, and for each document the least id of those that pairs connect it with."""
    rows = {id: row for row, id in enumerate(ids)}
    truth, parent = set(), {id: id for id in ids}

    def root(id):
        while parent[id] != id:
            id = parent[id]
        return id

    with gzip.open(path.with_name(path.name.replace(".jsonl", ".pairs.tsv")), "rt") as lines:
        for line in lines:
            a, b, value = line.rstrip("\n").split("\t")
            if float(value) >= least_value and a in rows and b in rows:
                truth.add((min(rows[a], rows[b]), max(rows[a], rows[b])))
                a, b = root(a), root(b)
                parent[max(a, b)] = min(a, b)
    return truth, [root(id) for id in ids]


# Each peer has `settings` to choose from, what it `prepares` once for all of them, and the pairs that a setting finds.


class Peer:
    timed = True

    def at(self, setting, threshold):
        """The same setting with another threshold, which is the last of it."""
        return (*setting[:-1], threshold)

    def best(self, documents):
        """The setting with the best F1."""
        return max((documents.f1(self.find(documents, setting)), setting) for setting in self.settings)

    def find_in_time(self, documents, setting):
        return self.find(documents, setting)


class Checked(Peer):
    """A peer whose candidates are checked by their true similarity."""

    def checked(self, documents, how):
        sets, minhashes = documents.sets, self.prepare(documents)
        return {(a, b): jaccard(sets[a], sets[b]) for a, b in self.candidates(minhashes, how)}

    def prepare(self, documents):
        return documents.keep(self.kind, lambda: self.sign(documents.sets))

    def find(self, documents, setting):
        how, least = setting
        alike = documents.keep((self.kind, how), lambda: self.checked(documents, how))
        return {pair for pair, similarity in alike.items() if similarity >= least}


class Datasketch(Checked):
    """MinHash and its LSH, with its own choice of bands for a threshold."""

    name, kind = "datasketch + check, one threshold", "datasketch"
    settings = [(t, t) for t in THRESHOLDS]

    def at(self, setting, threshold):
        return (threshold, threshold)

    def sign(self, sets):
        encoded = ([shingle.encode() for shingle in shingles] for shingles in sets)
        return list(datasketch.MinHash.generator(encoded, num_perm=PERMUTATIONS))

    def candidates(self, minhashes, threshold):
        index = datasketch.MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
        for row, minhash in enumerate(minhashes):
            yield from ((other, row) for other in index.query(minhash))
            index.insert(row, minhash, check_duplication=False)


class DatasketchWide(Datasketch):
    name = "datasketch + check, two thresholds"
    settings = [(t, least) for t in THRESHOLDS for least in THRESHOLDS if least >= t]


class Rensa(Checked):
    """R-MinHash and its LSH."""

    name, kind = "rensa + check, 16 or 32 bands", "rensa"
    settings = [(bands, least) for bands in (16, 32) for least in THRESHOLDS]

    def sign(self, sets):
        return rensa.RMinHash.from_token_sets([list(s) for s in sets], PERMUTATIONS, 42)

    def candidates(self, minhashes, bands):
        index = rensa.RMinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, num_bands=bands)
        for row, minhash in enumerate(minhashes):
            yield from ((other, row) for other in index.query(minhash))
            index.insert(row, minhash)


class RensaWide(Rensa):
    name = "rensa + check, up to 64 bands"
    settings = [(bands, least) for bands in (16, 32, 64) for least in THRESHOLDS]


class SimHash(Peer):
    """64-bit SimHash. Its index finds all within k bits, so settings are chosen and scored on all distances at once; the
    index itself is asked where time is measured."""

    name = "simhash, k = 3"
    settings = [(3,)]

    def at(self, setting, threshold):
        return setting

    def prepare(self, documents):
        sign = lambda: [simhash.Simhash(list(shingles) or [""]) for shingles in documents.sets]
        return documents.keep("simhash", sign)

    def find(self, documents, setting):
        near = documents.keep("distances", lambda: self.compare(self.prepare(documents)))
        return {pair for pair, distance in near.items() if distance <= setting[0]}

    def compare(self, hashes):
        values = np.array([hashed.value for hashed in hashes], dtype=np.uint64)
        near = {}
        for row in range(len(values)):
            distances = np.bitwise_count(values[row + 1 :] ^ values[row])
            for other in np.flatnonzero(distances <= MOST_BITS).tolist():
                near[row, row + 1 + other] = int(distances[other])
        return near

    def find_in_time(self, documents, setting):
        hashes = self.prepare(documents)
        # It warns of every large bucket that it looks at.
        log = logging.getLogger("simhash")
        log.setLevel(logging.ERROR)
        rows = [(str(row), hashed) for row, hashed in enumerate(hashes)]
        index = simhash.SimhashIndex(rows, k=setting[0], log=log)
        near = ((int(other), row) for row, hashed in enumerate(hashes) for other in index.get_near_dups(hashed))
        return {(a, b) for a, b in near if a < b}


class SimHashAny(SimHash):
    # Its index takes minutes for what its hashes tell in seconds.
    timed = False
    name = f"simhash, best k up to {MOST_BITS}"
    settings = [(k,) for k in range(1, MOST_BITS + 1)]


class Exact(Peer):
    """Every pair's true similarity: what any method with this check can reach."""

    name = "exact Jaccard, all pairs"
    settings = [(t / 20,) for t in range(4, 20)]

    def prepare(self, documents):
        return documents.keep("exact", lambda: self.compare(documents))

    def compare(self, documents):
        numbers, columns, ends = {}, [], [0]
        for shingles in documents.sets:
            columns.extend(numbers.setdefault(shingle, len(numbers)) for shingle in shingles)
            ends.append(len(columns))
        shape = (len(documents.sets), len(numbers))
        matrix = scipy.sparse.csr_matrix((np.ones(len(columns), np.int32), columns, ends), shape=shape)
        sizes, alike = np.diff(ends), {}
        for start in range(0, shape[0], 500):
            shared = (matrix[start : start + 500] @ matrix.T).tocoo()
            rows, others = shared.row + start, shared.col
            similarity = shared.data / (sizes[rows] + sizes[others] - shared.data)
            keep = (rows < others) & (similarity >= self.settings[0][0])
            alike.update(zip(zip(rows[keep].tolist(), others[keep].tolist()), similarity[keep].tolist()))
        return alike

    def find(self, documents, setting):
        return {pair for pair, j in self.prepare(documents).items() if j >= setting[0]}


class Ours(Peer):
    """Our program: `lookalike dedup`, which does all from the file to the pairs."""

    settings = [(t,) for t in THRESHOLDS]

    def __init__(self, program):
        self.name, self.program = "lookalike dedup", program

    def prepare(self, documents):
        return documents.keep("file", lambda: self.write(documents))

    def write(self, documents):
        folder = tempfile.TemporaryDirectory(prefix="peers-")
        with open(pathlib.Path(folder.name) / "documents.jsonl", "w", encoding="utf-8") as file:
            for row, text in enumerate(documents.texts):
                file.write(json.dumps({"id": str(row), "text": text}) + "\n")
        return folder

    def find(self, documents, setting):
        folder = pathlib.Path(self.prepare(documents).name)
        pairs = folder / "pairs.csv"
        command = [self.program, "dedup", folder / "documents.jsonl", "--similarity", str(setting[0])]
        # Without `-o`: only pairs are compared here, and it rightly refuses to drop nine documents of ten.
        command += ["--pairs", pairs, "--threads", "1", "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(pairs, newline="") as file:
            rows = [(int(row["id_a"]), int(row["id_b"])) for row in csv.DictReader(file)]
        return {(min(pair), max(pair)) for pair in rows}


class OursInPython(Peer):
    """The same from Python: texts that are in memory, as all others have them."""

    name = "lookalike.dedup in Python"
    settings = Ours.settings

    def find(self, documents, setting):
        pairs = lookalike.dedup(documents.texts, setting[0], pairs=True).pairs()
        return set(zip(pairs.rows_a.tolist(), pairs.rows_b.tolist()))


def cpu():
    """CPU seconds of this process and of those that it ran."""
    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(t.ru_utime + t.ru_stime for t in times)


def seconds(peer, documents, setting):
    """CPU seconds from texts to checked pairs, the median of a few rounds; our program reads a file, too, and has no shingles
    made for it."""
    rounds = [once(peer, documents, setting) for _ in range(ROUNDS)]
    return statistics.median(took for took, _ in rounds), rounds[0][1]


def once(peer, documents, setting):
    documents.forget()
    ours = isinstance(peer, (Ours, OursInPython))
    if isinstance(peer, Ours):
        peer.prepare(documents)
    started = cpu()
    found = peer.find_in_time(documents if ours else documents.with_sets(), setting)
    return cpu() - started, len(found)


def table(header, lines):
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *lines]) + "\n"


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--lookalike", type=pathlib.Path, help="our program, for a row of its own")
    parser.add_argument("--sets", help="only sets whose names have this in them")
    parser.add_argument("--peers", help="only peers whose names have this in them")
    parser.add_argument("--at", type=float, help="time all with this threshold, not with the best of each")
    arguments = parser.parse_args()
    peers = [Datasketch(), DatasketchWide(), Rensa(), RensaWide(), SimHash(), SimHashAny(), Exact()]
    peers += [Ours(arguments.lookalike.resolve())] if arguments.lookalike else []
    peers += [OursInPython()] if lookalike else []
    peers = [peer for peer in peers if (arguments.peers or "") in peer.name]
    scores = {peer.name: {} for peer in peers}
    speeds = {peer.name: {} for peer in peers}
    names = []
    for name, file, *how in SETS:
        path = arguments.data / f"{file}.jsonl.gz"
        if (arguments.sets or "") not in name:
            continue
        if not path.exists():
            say(f"skipped: {name}, as {path} is not there")
            continue
        names.append(name)
        whole, *halves = read(path, *how)
        megabytes = sum(len(text.encode()) for text in whole.texts) / 1e6
        say(f"{name}: {len(whole.ids)} documents, {megabytes:.1f} MB, {len(whole.truth)} pairs")
        for peer in peers:
            started = time.time()
            best = [peer.best(half.with_sets())[1] for half in halves]
            f1s = [half.f1(peer.find(half, setting)) for half, setting in zip(halves, reversed(best))]
            f1, setting = statistics.mean(f1s), best[0]
            told = "; ".join(dict.fromkeys(", ".join(map(str, one)) for one in best))
            scores[peer.name][name] = f"{f1:.3f} ({told})"
            text = f"  {peer.name}: {f1:.4f} with {told}, of {f1s[0]:.4f} and {f1s[1]:.4f}"
            if name in TIMED and peer.timed:
                timed = peer.at(setting, arguments.at) if arguments.at else setting
                took, found = seconds(peer, whole, timed)
                speeds[peer.name][name] = [f"{took:.3f}", f"{megabytes / took:.1f}", str(found)]
                text += f"; {took:.3f} s with {timed}, {megabytes / took:.1f} MB/s"
            say(f"{text} [{time.time() - started:.0f} s]")
    if not names:
        sys.exit("there is no set to measure: say where they are with --data")
    print("F1 on the half that the setting was not chosen on, the mean of both directions (settings in brackets):\n")
    print(table(["", *names], [[peer, *(row.get(n, "-") for n in names)] for peer, row in scores.items()]))
    timed = [name for name in TIMED if name in names]
    header = ["", *(f"{name} {what}" for name in timed for what in ("CPU s", "MB/s", "pairs"))]
    lines = [[peer, *(cell for n in timed for cell in row[n])] for peer, row in speeds.items() if row]
    if lines:
        print("From texts to checked pairs, the whole set with that setting (or the threshold of --at), one core:\n")
        print(table(header, lines))


if __name__ == "__main__":
    main()
