"""Documents of all kinds, the same ones every time: floods of copies, near-copies, templates, and what has no signature."""

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np

SYLLABLES = "ba be bi bo da de di do fa fe ka ke ki ko la le li lo ma me mi mo na ne no pa pe po ra re ri ro sa se ta te to".split()
SCRIPTS = ["абвгдежзиклмнопрстуфхцчшэюя", "αβγδεζηθικλμνξοπρστυφχψω", "äöüßéèçñåøłčšžőű", "日本語中文字漢字東京都市場港船"]
UNSIGNED = ["", "   ", " . - !", "\n\n", None]


@dataclass
class Corpus:
    """Ids are in the order of the documents."""

    texts: list[str | None]
    stars: np.ndarray

    def __len__(self):
        return len(self.texts)

    @property
    def ids(self):
        return [f"d{row:07}" for row in range(len(self))]

    def documents(self):
        return [{"id": id, "text": text, "stars": int(stars)} for id, text, stars in zip(self.ids, self.texts, self.stars)]

    def write_lines(self, path):
        """JSON lines; those that have no text are left out, as the program wants texts."""
        with Path(path).open("w") as file:
            file.writelines(json.dumps(document) + "\n" for document in self.documents() if document["text"] is not None)
        return path

    def write_parquet(self, folder, files=4):
        """A folder of files, each a share of the rows: `id`, `row`, `text`, `stars`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"id": self.ids, "row": np.arange(len(self)), "text": pa.array(self.texts, pa.string()), "stars": self.stars}
        return write_parquet(pa.table(columns), folder, files)


def write_parquet(table, folder, files=4):
    import pyarrow.parquet as pq

    Path(folder).mkdir()
    for file in range(files):
        start, end = len(table) * file // files, len(table) * (file + 1) // files
        pq.write_table(table.slice(start, end - start), Path(folder) / f"{file:03}.parquet")
    return folder


def made(flood=20_000, singles=24_000, families=2_600, templates=6, of_template=800, small=1500, seed=1):
    """A corpus: so many copies of one text, texts of their own, families of near-copies, texts of each of some templates, and so
    many that are short, empty, or in other scripts. All in one random order."""
    random = np.random.default_rng(seed)
    vocabulary = np.array(["".join(random.choice(SYLLABLES, random.integers(1, 5))) for _ in range(5000)], dtype=object)

    def words(number):
        return vocabulary[random.integers(0, len(vocabulary), number)]

    def changed(base, number):
        other = base.copy()
        other[random.integers(0, len(base), number)] = words(number)
        return " ".join(other)

    texts = [" ".join(words(60))] * flood
    texts += [" ".join(words(number)) for number in random.integers(10, 90, singles)]
    for length, number in zip(random.integers(40, 250, families), random.integers(2, 9, families)):
        base = words(length)
        texts += [changed(base, changes) for changes in random.integers(0, 5, number)]
    for length in random.integers(120, 300, templates):
        base = words(length)
        texts += [changed(base, changes) for changes in random.integers(0, 4, of_template)]
    few = vocabulary[:12]
    texts += [" ".join(random.choice(few, number)) for number in random.integers(1, 5, small)]
    texts += [UNSIGNED[kind] for kind in random.integers(0, len(UNSIGNED), small)]
    letters = [np.array(list(script)) for script in SCRIPTS]
    for kind in random.integers(0, len(SCRIPTS), small // 3):
        base = np.array(["".join(random.choice(letters[kind], 4)) for _ in range(30)], dtype=object)
        other = base.copy()
        other[7] = "🙂"
        text = " ".join(base)
        texts += [text, unicodedata.normalize("NFD", text).upper(), " ".join(other)]
    order = random.permutation(len(texts))
    return Corpus([texts[row] for row in order], random.integers(0, 50, len(texts)))


# A sum that does not depend on the order of the pairs. Factors and what they are applied to have at most 31 bits, so that no step
# leaves 63 bits: Spark and numpy compute the same.
MASK = (1 << 31) - 1
FACTORS = [
    (0x2545F491, 0x51ED270B, 0x1B873593, 0x45D9F3B5, 0x3C6EF35F),
    (0x7FEB352D, 0x19660D01, 0x6C078965, 0x2C1B3C6D, 0x297A2D39),
]


def mixed(a, b, distance, factors, shifted, both, differing):
    """A number of a pair, for columns of any kind."""
    number = both(a * factors[0] + b * factors[1] + distance * factors[2], MASK)
    number = both(differing(number, shifted(number, 15)) * factors[3], MASK)
    number = both(differing(number, shifted(number, 13)) * factors[4], MASK)
    return differing(number, shifted(number, 16))


def sums_of_arrays(a, b, distance):
    """By distance: how many pairs there are, and their sums."""
    sums = {}
    # What fits into the cache is computed in a fraction of the time.
    for start in range(0, len(a), 1 << 15):
        some = slice(start, start + (1 << 15))
        for near in np.flatnonzero(np.bincount(distance[some])).tolist():
            of = distance[some] == near
            operations = (np.right_shift, np.bitwise_and, np.bitwise_xor)
            numbers = [mixed(a[some][of], b[some][of], near, factors, *operations) for factors in FACTORS]
            counted = np.array([of.sum(), *(number.sum() for number in numbers)], dtype=np.int64)
            sums[near] = sums.get(near, 0) + counted
    return sums


def sums_of_frame(pairs):
    """The same of a DataFrame whose ids are numbers."""
    from pyspark.sql import functions as F

    a, b, distance = (F.col(name).cast("long") for name in ["id_a", "id_b", "distance"])
    operations = (F.shiftright, lambda x, y: x.bitwiseAND(y), lambda x, y: x.bitwiseXOR(y))
    numbers = [F.sum(mixed(a, b, distance, factors, *operations)) for factors in FACTORS]
    backwards = F.sum((F.col("id_a") >= F.col("id_b")).cast("long"))
    rows = pairs.groupBy("distance").agg(F.count("*"), *numbers, backwards).collect()
    assert all(row[-1] == 0 for row in rows), "the lesser id comes first"
    return {row[0]: np.array(row[1:-1], dtype=np.int64) for row in rows}
