"""Pairs within a radius."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import index

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from .. import _engine
from .._errors import LookalikeError
from ._batches import batch_of, column_of, rows_of, use_task_threads
from ._sign import column, kind_of
from ._stages import Stages

KEYED = "key long, path int, entry binary"
PAIRS = "a binary, b binary, distance int"
# So many rows are handed out at a time, or a few more.
BATCH = 1 << 17
# A task has so many entries to find the keys of, or so many rows with keys to sort and compare.
ROWS_A_PART, KEYS_A_PART = 100_000, 500_000
# Large buckets are cut so often, at most.
LEVELS = 4
# Rows of buckets that are cut may have so many times the keys of all rows; of a few rows, more.
MOST_TIMES, FEW = 16, 1_000_000
# Of buckets that are large and cannot be cut, so many are looked at before they are compared, and so many rows of each.
LOOKED_AT = 50
SAMPLE = 1000


@dataclass(frozen=True)
class Near:
    """What is near: entries begin with a signature of so many bits."""

    bits: int
    width: int
    """The bytes of an entry."""
    radius: int
    bucket: int
    """A bucket of more rows is cut by further bits."""
    most_candidates: int
    """More pairs than this are not compared."""
    most_pairs: int
    """More pairs than this are not listed."""

    def __post_init__(self) -> None:
        if not 0 <= self.radius:
            raise LookalikeError(f"the radius is {self.radius}; it is a number of bits, 0 or more")
        if self.bucket < 2:
            raise LookalikeError(f"bucket is {self.bucket}; a bucket has 2 rows or more")


@dataclass(frozen=True)
class Keys:
    """Which keys entries have: which bits, and of which keys the buckets are too large."""

    blocks: list[int]
    large: NDArray[np.int64]

    def is_worth_it(self, near: Near, rows: int, large: int) -> bool:
        """Whether cutting buckets of so many rows in all does not make far more rows with keys than there are anyway."""
        try:
            before, after = Keys(self.blocks[:-1], self.large).plan(near), self.plan(near)
        except LookalikeError:
            # So many levels of so wide a radius are too many keys.
            return False
        return large * after.most // before.most <= MOST_TIMES * (rows * before.count + FEW)

    def plan(self, near: Near) -> _engine.KeyPlan:
        return _engine.KeyPlan(near.bits, near.radius, self.blocks, self.large)


Large = list[tuple[int, int]]
"""The keys of buckets, and how many rows these have."""


def pairs(
    df: DataFrame,
    radius: int,
    *,
    id: str = "id",
    signature: str = "signature",
    copies: str = "star",
    bucket: int = 20_000,
    most_candidates: int = 10**13,
    most_pairs: int = 10**9,
    work: str | None = None,
) -> DataFrame:
    """All pairs of documents whose signatures are at most `radius` bits apart, exactly: `id_a`, `id_b`, `distance`, each once,
    `id_a` before `id_b` in the order of ids. Documents without a signature (null) are near nothing.

    Documents with the same signature are one until the end. With `copies="star"`, the first of them (the one with the least id)
    is paired with each of the others, and stands for them in all other pairs; with `copies="all"`, every pair is listed, as
    `lookalike join` does: of 20,000 copies, 200 million.

    Documents meet by keys, some bits of their signatures, longer ones for more documents. How many documents meet in each bucket
    is counted first: buckets of more than `bucket` are cut by further bits, and if more than `most_candidates` pairs would be
    compared, or samples of large buckets promise more than `most_pairs`, nothing is. Stages are kept in the folder `work`, if it is
    given: a rerun goes on where it was.
    """
    ids, signatures = column(df, id), column(df, signature)
    kind_of_ids(df, id)
    if copies not in ("star", "all"):
        raise LookalikeError(f"copies is {copies!r}; `star` or `all` is wanted")
    if kind_of(df, signature) != "binary":
        raise LookalikeError(f"signatures are bytes; column `{signature}` has {kind_of(df, signature)}")
    radius = whole("radius", radius)
    plan = {"job": "pairs", "radius": radius, "id": id, "signature": signature, "copies": copies, "bucket": bucket}
    stages = Stages(df, work, plan, [ids, signatures], [])
    chosen = df.select(ids.alias("id"), signatures.alias("entry"))
    signed = stages.keep("signatures", lambda: chosen.where("entry is not null"))
    stages.note("checked", lambda: check_ids(signed, id))
    width = stages.note("width", lambda: {"bytes": width_of(signed)})["bytes"]
    least = signed.groupBy("entry").agg(F.min("id").alias("id"), F.count("*").alias("copies"))
    first = stages.keep("first", lambda: least)
    near = Near(8 * width, width, radius, bucket, most_candidates, most_pairs)
    found = stages.keep("near", lambda: near_pairs(first.select("entry"), near, stages))
    if copies == "all":
        return all_pairs(signed, found)
    # Of each signature the others are paired with the first; most have no others.
    firsts = first.where("copies > 1").withColumnRenamed("id", "id_a")
    others = signed.withColumnRenamed("id", "id_b").join(firsts, "entry").where("id_a != id_b")
    same = others.select("id_a", "id_b", F.lit(0).alias("distance"))
    return same.unionByName(with_ids(found, first))


def check_ids(documents: DataFrame, id: str) -> dict[str, str]:
    """Complains about ids that are missing or there more than once."""
    twice = documents.groupBy("id").count().where("id is null or count > 1").orderBy("id").limit(3).collect()
    if any(row.id is None for row in twice):
        raise LookalikeError(f"there are documents without an id in column `{id}`; id= names another")
    if twice:
        said = ", ".join(f"{row.id!r} ({row['count']} times)" for row in twice)
        raise LookalikeError(f"ids are there more than once: {said}. id= names a column that tells documents apart")
    return {"ids": "unique"}


def whole(name: str, value: object) -> int:
    """A whole number, whatever kind of it."""
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise LookalikeError(f"{name} is {value!r}; it is a whole number") from error


def width_of(signed: DataFrame) -> int:
    """How many bytes the signatures have."""
    length = F.length("entry")
    found = signed.agg(F.min(length).alias("least"), F.max(length).alias("most")).first()
    if found is None or found.least is None:
        return 8
    if found.least != found.most:
        said = f"{8 * found.least} bits ({found.least} bytes) and {8 * found.most} bits ({found.most} bytes)"
        raise LookalikeError(f"the signatures are of different widths: {said}; one recipe makes one width")
    if not 4 <= found.least <= 512:
        raise LookalikeError(f"signatures have 32 to 4096 bits; these have {8 * found.least} ({found.least} bytes)")
    return int(found.least)


def with_ids(found: DataFrame, ids: DataFrame, by: str = "entry") -> DataFrame:
    """Pairs `a`, `b` of what ids go by, as pairs of the documents that have them."""
    one = ids.select(F.col(by).alias("a"), F.col("id").alias("one"))
    other = ids.select(F.col(by).alias("b"), F.col("id").alias("other"))
    both = found.join(one, "a").join(other, "b")
    ordered = (F.least("one", "other").alias("id_a"), F.greatest("one", "other").alias("id_b"))
    return both.select(*ordered, *(name for name in found.columns if name not in ("a", "b")))


def all_pairs(signed: DataFrame, found: DataFrame) -> DataFrame:
    """Pairs of entries as pairs of all documents that have them, and those that have the same one."""
    one = signed.select("entry", F.col("id").alias("id_a"))
    other = signed.select("entry", F.col("id").alias("id_b"))
    same = one.join(other, "entry").where("id_a < id_b")
    return same.select("id_a", "id_b", F.lit(0).alias("distance")).unionByName(with_ids(found, signed))


def near_pairs(entries: DataFrame, near: Near, stages: Stages) -> DataFrame:
    """All pairs of different entries that are near each other: `a`, `b` and their distance, each once."""
    spark, rows = entries.sparkSession, entries.count()
    entries = entries.repartition(parts_for(spark, rows, ROWS_A_PART), "entry")

    def chosen() -> dict[str, object]:
        keys, candidates, large = choose_keys(entries, rows, near)
        expected = expected_pairs(keyed(entries, near, keys), near, keys, large)
        return {"blocks": keys.blocks, "large": keys.large.tolist(), "candidates": candidates, "expected": expected}

    noted = stages.note("keys", chosen)
    refuse(noted["candidates"], noted["expected"], near)
    keys = Keys(noted["blocks"], np.array(noted["large"], np.int64))
    return compared(keyed(entries, near, keys), rows * keys.plan(near).count, near, keys)


def parts_for(spark: SparkSession, rows: int, rows_a_part: int) -> int:
    """Into how many tasks rows go: they are few bytes and much work, so Spark, which goes by bytes, would take too few."""
    most, least = int(spark.conf.get("spark.sql.shuffle.partitions") or 200), spark.sparkContext.defaultParallelism
    return max(least, min(most, rows // rows_a_part + 1))


def refuse(candidates: float, expected: float, near: Near) -> None:
    """Refuses to compare, or to list, more pairs than was allowed."""
    if candidates > near.most_candidates:
        raise LookalikeError(
            f"{candidates:.3g} pairs of rows would be compared within a radius of {near.radius} of {near.bits} bits, and "
            f"most_candidates is {near.most_candidates:.3g}. A smaller radius or wider signatures meet fewer; or allow more"
        )
    if expected > near.most_pairs:
        raise LookalikeError(
            f"about {expected:.3g} pairs are within a radius of {near.radius} of {near.bits} bits, in buckets of near-copies that "
            f"nothing tells apart, and most_pairs is {near.most_pairs:.3g}. A smaller radius, or a higher similarity, has fewer; a "
            "template that many documents share can be taken out of their texts; or allow more"
        )


def choose_keys(entries: DataFrame, rows: int, near: Near) -> tuple[Keys, float, Large]:
    """Counts the entries of each bucket, cuts those that are too large, and says how many pairs meet in the end, and which
    buckets are still too large."""
    bits = near.bits
    keys = Keys([_engine.KeyPlan.blocks_for(bits, near.radius, rows)], np.empty(0, np.int64))
    candidates, large = histogram(keyed(entries, near, keys).groupBy("key").count(), near.bucket)
    while large and len(keys.blocks) < LEVELS:
        # What a key leaves out is cut next.
        bits = bits * near.radius // keys.blocks[-1]
        if bits <= near.radius:
            break
        blocks = _engine.KeyPlan.blocks_for(bits, near.radius, max(count for _, count in large))
        larger = np.array([key for key, _ in large], np.int64)
        cut = Keys([*keys.blocks, blocks], np.concatenate([keys.large, larger]))
        if not cut.is_worth_it(near, rows, sum(count for _, count in large)):
            break
        fewer, still_large = histogram(keyed(entries, near, cut).groupBy("key").count(), near.bucket)
        # Near-copies have their further bits in common, too: cutting them only makes them meet more often.
        if fewer > candidates / 2:
            break
        keys, candidates, large = cut, fewer, still_large
    return keys, candidates, large


def histogram(counts: DataFrame, bucket: int) -> tuple[float, Large]:
    """How many pairs meet in buckets of these sizes, and the buckets that are too large."""
    meeting = F.col("count").cast("double") * (F.col("count") - 1) / 2
    large = F.collect_list(F.when(F.col("count") > bucket, F.struct("key", "count")))
    found = counts.where("count > 1").agg(F.sum(meeting).alias("pairs"), large.alias("large")).first()
    if found is None or found.pairs is None:
        return 0.0, []
    return float(found.pairs), [(row.key, row["count"]) for row in found.large]


def expected_pairs(keyed: DataFrame, near: Near, keys: Keys | None, large: Large) -> float:
    """About how many pairs the largest buckets have, by a sample of each: near-copies are all near each other, and so many that
    they cannot be listed."""
    looked_at = sorted(large, key=lambda bucket: -bucket[1])[:LOOKED_AT]
    if not looked_at:
        return 0.0
    rates = [(key, min(1.0, SAMPLE / count)) for key, count in looked_at]
    of_key = keyed.sparkSession.createDataFrame(rates, "key long, rate double")
    # By the row and not by chance: the same sample every time.
    drawn = F.pmod(F.xxhash64("entry"), F.lit(1 << 30)) < F.col("rate") * (1 << 30)
    sample = keyed.join(F.broadcast(of_key), "key").where(drawn).select("key", "path", "entry").toArrow()
    found, paths = sample["key"].to_numpy(), sample["path"].to_numpy()
    rows = rows_of(sample["entry"].combine_chunks(), near.width)
    expected = 0.0
    for key, count in looked_at:
        some = np.flatnonzero(found == key)
        if len(some) > 1:
            # A pair counts in the bucket that it belongs to, and in no other.
            buckets = _engine.Buckets(near.width, near.bits, near.radius, None if keys is None else keys.plan(near))
            buckets.push(np.zeros(len(some), np.int64), paths[some], rows[some])
            expected += len(buckets.finish()[2]) / (len(some) * (len(some) - 1)) * count * (count - 1)
    return expected


def keyed(entries: DataFrame, near: Near, keys: Keys) -> DataFrame:
    """Each entry with all its keys."""

    def with_keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_task_threads()
        plan = keys.plan(near)
        step = max(1, BATCH // plan.most)
        for batch in batches:
            rows = rows_of(batch.column(0), near.width)
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                at, paths, found = plan.keys(some)
                yield batch_of(key=found, path=paths, entry=column_of(some[at]))

    return entries.select("entry").mapInArrow(with_keys, KEYED)


def compared(keyed: DataFrame, rows: int, near: Near, keys: Keys | None) -> DataFrame:
    """The pairs of those that have the same key, of about so many, if they are near. Without a plan for the keys, a pair may be
    there several times."""

    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_task_threads()
        plan = None if keys is None else keys.plan(near)
        buckets = _engine.Buckets(near.width, near.bits, near.radius, plan)
        for batch in batches:
            rows = rows_of(batch.column(2), near.width)
            yield from pair_batches(buckets.push(batch.column(0).to_numpy(), batch.column(1).to_numpy(), rows))
        yield from pair_batches(buckets.finish())

    # Rows with the same key come to one task, one behind the other.
    parts = parts_for(keyed.sparkSession, rows, KEYS_A_PART)
    return keyed.repartition(parts, "key").sortWithinPartitions("key").mapInArrow(compare, PAIRS)


def pair_batches(
    found: tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.int32]],
) -> Iterator[pa.RecordBatch]:
    """Pairs as batches; none if there are none."""
    a, b, distances = found
    for start in range(0, len(distances), BATCH):
        some = slice(start, start + BATCH)
        yield batch_of(a=column_of(a[some]), b=column_of(b[some]), distance=distances[some])


NUMBERS = ("tinyint", "smallint", "int", "bigint")


def kind_of_ids(df: DataFrame, name: str) -> str:
    """The type of a column of ids, if it is one that ids may have."""
    kind = kind_of(df, name)
    if kind not in ("string", "binary", *NUMBERS):
        raise LookalikeError(f"ids are strings, bytes or whole numbers; column `{name}` has {kind}")
    return kind


def sortable(ids: Column, kind: str) -> Column:
    """Ids as bytes that are in the order of the ids."""
    if kind in NUMBERS:
        # The sign is flipped: negative numbers come first.
        flipped = ids.cast("long").bitwiseXOR(F.lit(-(1 << 63)))
        return F.unhex(F.lpad(F.hex(flipped), 16, "0"))
    return F.encode(ids, "utf-8") if kind == "string" else ids
