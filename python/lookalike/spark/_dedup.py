"""Deduplication: which documents are kept, and what the others are near-duplicates of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from .. import _engine
from .._errors import LookalikeError
from .._recipe import Recipe, native_recipe
from ._batches import batch_of, buffers_of, column_of, last_two_as, rows_of, use_task_threads
from ._clusters import keepers_of
from ._pairs import (
    Near,
    check_ids,
    compared,
    expected_pairs,
    histogram,
    kind_of_ids,
    near_pairs,
    refuse,
    sortable,
    whole,
    with_ids,
)
from ._sign import column, kind_of, print_of, shared_file, text_column
from ._stages import Stages

# How a field of JSON comes that may be a number or a text.
NUMBER_OR_TEXT = "struct<number:double,text:string>"


@dataclass(frozen=True)
class _Settings:
    """Everything that the result depends on."""

    recipe: str
    radius: int
    similarity: float | None
    """If it is given, documents meet by their keys, and otherwise by the bits of their signatures."""
    verify: str
    keep: str
    linkage: str
    text: str
    id: str

    @property
    def bits(self) -> int:
        return _engine.Recipe.from_json(self.recipe).bits

    @property
    def verifies(self) -> bool:
        return self.verify != "none"


class Deduplicated:
    """What becomes of the documents."""

    def __init__(self, df: DataFrame, id: str, stages: Stages, steps: _Steps) -> None:
        self._df = df
        self._id = id
        self._stages = stages
        self._steps = steps

    @property
    def kept(self) -> DataFrame:
        """The documents that are kept, as they came."""
        # Under a name that no column has.
        gone = self.removed.select(F.col("id").alias(f"not {' '.join(self._df.columns)}"))
        return self._df.join(gone, column(self._df, self._id) == gone[gone.columns[0]], "left_anti")

    @property
    def removed(self) -> DataFrame:
        """The others: `id`, the `keeper` that stays in its place, and how near they are: `distance` in bits, `similarity`."""
        return self._steps.removed

    @property
    def clusters(self) -> DataFrame:
        """All documents of clusters of two or more: `id`, `cluster` (its keeper's id), `keeper`, `distance`, `similarity`."""
        keepers = self.removed.select(F.col("keeper").alias("id")).distinct()
        kept = keepers.select("id", F.col("id").alias("keeper"), F.lit(0).alias("distance"), _one())
        members = self.removed.unionByName(kept)
        return members.select("id", F.col("keeper").alias("cluster"), "keeper", "distance", "similarity")

    @property
    def pairs(self) -> DataFrame:
        """The pairs that were found alike: `id_a`, `id_b`, `distance`, `similarity`. Copies are one document here: the one
        that is rather kept."""
        return with_ids(self._steps.alike, self._steps.entries, by="node")

    @property
    def counts(self) -> dict[str, Any]:
        """What was done, in numbers."""

        def counted() -> dict[str, Any]:
            removed = self.removed.agg(F.count("*").alias("all"), F.countDistinct("keeper").alias("clusters")).first()
            documents = self._steps.sketches.agg(F.count("*").alias("all"), F.count("entry").alias("signed")).first()
            assert removed is not None and documents is not None
            return {
                "documents": documents["all"],
                "signed": documents.signed,
                "entries": self._steps.entries.count(),
                "candidates": self._steps.candidates,
                "alike": self._steps.alike.count(),
                "removed": removed["all"],
                "kept": documents["all"] - removed["all"],
                "clusters": removed.clusters,
            }

        return self._stages.note("counts", counted)


def dedup(
    df: DataFrame,
    radius: int | None = None,
    similarity: float | None = None,
    *,
    recipe: str | Recipe | None = None,
    verify: str | None = None,
    keep: str = "first",
    linkage: str = "star",
    text: str = "text",
    id: str = "id",
    terms: str | None = None,
    bucket: int = 20_000,
    most_candidates: int = 10**13,
    most_pairs: int = 10**9,
    in_one_process: int = 4_000_000,
    work: str | None = None,
) -> Deduplicated:
    """Finds near-duplicates, in one of two ways.

    By `similarity`, 0.7 if nothing is said: documents that have at least that share of their word 3-grams in common, by Jaccard.
    What is kept, and which documents go in favor of which, is what `lookalike.dedup` and the program say, if ids are in the
    order of their input.

    By `radius`: documents whose signatures of a `recipe` (`text` if it is not said) are at most so many bits apart, every one of
    them; and, with `verify`, whose features are alike: jaccard:S, containment:S or cosine:S.

    `keep` says which of a cluster is kept: first (the least id), longest, newest:FIELD, max:FIELD, min:FIELD,
    prefer:FIELD=VALUE,VALUE. `linkage`: those alike the keeper (star), or connected (components). The other settings are those of
    `pairs` and `clusters`. Ids are strings, bytes or whole numbers, each once.
    """
    settings = _settings(radius, similarity, recipe, verify, keep, linkage, text, id)
    # Whatever is wrong with a setting is told here, not by an executor.
    sketcher = _sketcher(settings, terms)
    near = Near(settings.bits, sketcher.width, settings.radius, bucket, most_candidates, most_pairs)
    plan = {"job": "dedup", **asdict(settings), "recipe": _engine.Recipe.from_json(settings.recipe).hash, "bucket": bucket}
    plan["terms"] = None if terms is None else print_of(terms)
    of_keepers = [] if sketcher.field is None else [column(df, sketcher.field)]
    stages = Stages(df, work, plan, [column(df, id), *of_keepers], [text_column(df, text)])
    sketches = stages.keep("sketches", lambda: _sketch(df, settings, sketcher.field, shared_file(df, terms)))
    return Deduplicated(df, id, stages, _Steps(sketches, settings, near, in_one_process, stages))


def _settings(
    radius: int | None,
    similarity: float | None,
    recipe: str | Recipe | None,
    verify: str | None,
    keep: str,
    linkage: str,
    text: str,
    id: str,
) -> _Settings:
    if radius is not None and similarity is not None:
        raise LookalikeError("a radius, or a similarity: not both")
    if linkage not in ("star", "components"):
        raise LookalikeError(f"linkage is {linkage!r}; `star` or `components` is wanted")
    if radius is not None:
        made, radius = native_recipe(recipe or "text"), whole("radius", radius)
        return _Settings(made.json, radius, None, verify or "none", keep, linkage, text, id)
    if recipe is not None:
        raise LookalikeError("a recipe is for a radius: what a similarity is measured by follows from it")
    similarity = 0.7 if similarity is None else float(similarity)
    dial = _engine.dial(similarity, verify)
    return _Settings(dial["recipe"], dial["radius"], similarity, dial["verify"], keep, linkage, text, id)


def _sketcher(settings: _Settings, terms: str | None) -> _engine.Sketcher:
    recipe = _engine.Recipe.from_json(settings.recipe)
    return _engine.Sketcher(recipe, terms, settings.similarity, settings.verify, settings.keep)


def _one() -> Column:
    return F.lit(1.0).cast("float").alias("similarity")


class _Steps:
    """The steps, one after the other: sketches of documents to entries, which are those that differ; entries to pairs, pairs to
    clusters, and clusters to what is removed."""

    def __init__(
        self, sketches: DataFrame, settings: _Settings, near: Near, in_one_process: int, stages: Stages
    ) -> None:
        self._settings = settings
        self._stages = stages
        self._near = near
        self.sketches = sketches
        stages.note("checked", lambda: _check(sketches, settings))
        self.entries = stages.keep("entries", lambda: _entries(sketches))
        found = stages.keep("near", self._candidates)
        self.alike = stages.keep("alike", lambda: self._verified(found))
        edges = self.alike.select("a", "b")
        keepers = stages.keep("keepers", lambda: keepers_of(edges, settings.linkage, in_one_process, stages))
        self.removed = stages.keep("removed", lambda: self._removed(keepers))

    @property
    def candidates(self) -> int | None:
        """How many pairs of entries had a key in common, counted as often as they had, if that is still known."""
        noted = self._stages.noted("keys")
        return None if noted is None else int(noted["candidates"])

    def _candidates(self) -> DataFrame:
        """Pairs of entries that are near each other."""
        similarity, near = self._settings.similarity, self._near
        if similarity is None:
            return near_pairs(self.entries.select("entry"), near, self._stages)
        dial, rows = _engine.dial(similarity, self._settings.verify), self.entries.count()
        # A few are all compared with all, as one machine does. A key of one band is not one of another.
        few = rows <= dial["small"]
        keys = F.array(F.lit(0)) if few else F.col("keys")
        each = self.entries.select("entry", F.posexplode(keys).alias("band", "of_band"))
        keyed = each.select(F.xxhash64("band", "of_band").alias("key"), F.lit(0).alias("path"), "entry")
        counts = keyed.groupBy("key").count()

        def chosen() -> dict[str, Any]:
            candidates, large = histogram(counts, near.bucket)
            # A pair of near-copies has many keys in common, and is listed once.
            most = [max(large, key=lambda bucket: bucket[1])] if large else []
            return {"candidates": candidates, "expected": expected_pairs(keyed, near, None, most)}

        noted = self._stages.note("keys", chosen)
        refuse(noted["candidates"], noted["expected"], near)
        return compared(keyed, rows * (1 if few else dial["bands"]), near, None).distinct()

    def _verified(self, near: DataFrame) -> DataFrame:
        """Pairs that are alike, by the nodes of their entries: `a` before `b`, with distance and similarity."""
        nodes = self.entries.select("entry", "node", "id")
        one = nodes.select(F.col("entry").alias("a"), F.col("node").alias("node_a"), F.col("id").alias("id_a"))
        other = nodes.select(F.col("entry").alias("b"), F.col("node").alias("node_b"), F.col("id").alias("id_b"))
        both = near.join(one, "a").join(other, "b")
        swapped = F.col("node_a") > F.col("node_b")
        ordered = both.select(
            F.least("node_a", "node_b").alias("a"),
            F.greatest("node_a", "node_b").alias("b"),
            F.when(swapped, F.col("id_b")).otherwise(F.col("id_a")).alias("id_a"),
            F.when(swapped, F.col("id_a")).otherwise(F.col("id_b")).alias("id_b"),
            "distance",
        )
        if not self._settings.verifies:
            return ordered.select("a", "b", "distance", self._estimate())
        alike = self._with_similarity(ordered, all=False)
        return alike.where("not isnan(similarity)").select("a", "b", "distance", "similarity")

    def _estimate(self) -> Column:
        """How alike documents are at a distance, from nothing but that."""
        recipe = _engine.Recipe.from_json(self._settings.recipe)
        known = [recipe.similarity(distance) for distance in range(recipe.bits + 1)]
        table = F.array(*[F.lit(similarity).cast("float") for similarity in known])
        return F.element_at(table, F.col("distance") + 1).alias("similarity")

    def _with_similarity(self, pairs: DataFrame, all: bool) -> DataFrame:
        """Adds the similarity of documents `id_a` and `id_b` by their features; NaN if it is too small, unless all are wanted."""
        verify = self._settings.verify

        def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            use_task_threads()
            for batch in batches:
                yield last_two_as("similarity", batch, lambda a, b: _engine.alike(buffers_of(a), buffers_of(b), verify, all))

        features = self.sketches.select("id", "features")
        for side in ("a", "b"):
            of_side = features.select(F.col("id").alias(f"id_{side}"), F.col("features").alias(f"features_{side}"))
            pairs = pairs.join(of_side, f"id_{side}")
        columns = [name for name in pairs.columns if not name.startswith("features_")]
        ordered = pairs.select(*columns, "features_a", "features_b")
        schema = ordered.drop("features_a", "features_b").withColumn("similarity", F.lit(0.0).cast("float")).schema
        return ordered.mapInArrow(measured, schema)

    def _removed(self, keepers: DataFrame) -> DataFrame:
        """The documents that are not kept: those of entries that are not, and copies."""
        entries = self.entries.select("node", F.col("id").alias("first"))
        gone = keepers.where("node != keeper")
        keeper_ids = entries.select(F.col("node").alias("keeper"), F.col("first").alias("keeper_id"))
        decided = self._measured(gone).join(keeper_ids, "keeper").drop("keeper")
        of_entry = self.entries.select("entry", "node", "copies", F.col("id").alias("first")).join(decided, "node", "left")
        # Nothing is removed of the others, and they are most.
        of_entry = of_entry.where("keeper_id is not null or copies > 1")
        documents = self.sketches.where("entry is not null").select("id", "entry").join(of_entry, "entry")
        keeper = F.coalesce("keeper_id", "first")
        return documents.where(F.col("id") != keeper).select(
            "id",
            keeper.alias("keeper"),
            F.coalesce("distance", F.lit(0)).alias("distance"),
            F.coalesce("similarity", F.lit(1.0).cast("float")).alias("similarity"),
        )

    def _measured(self, gone: DataFrame) -> DataFrame:
        """Entries that are not kept, and how near they are to their keepers."""
        if self._settings.linkage == "star":
            edges = self.alike.select(F.col("a").alias("keeper"), F.col("b").alias("node"), "distance", "similarity")
            return gone.join(edges, ["node", "keeper"])
        # Members of a component may be joined through others.
        width, bits = self._near.width, self._near.bits
        kind = self.entries.schema["id"].dataType.simpleString()

        def apart(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield last_two_as("distance", batch, lambda a, b: _engine.distances(rows_of(a, width), rows_of(b, width), bits))

        nodes = self.entries.select("node", F.col("id").alias("id_a"), F.col("entry").alias("of_node"))
        kept = nodes.toDF("keeper", "id_b", "of_keeper")
        both = gone.join(nodes, "node").join(kept, "keeper")
        both = both.select("node", "keeper", "id_a", "id_b", "of_node", "of_keeper")
        schema = f"node binary, keeper binary, id_a {kind}, id_b {kind}, distance int"
        with_distance = both.mapInArrow(apart, schema)
        if not self._settings.verifies:
            return with_distance.select("node", "keeper", "distance", self._estimate())
        return self._with_similarity(with_distance, all=True).drop("id_a", "id_b")


def _sketch(df: DataFrame, settings: _Settings, field: str | None, terms: str | None) -> DataFrame:
    """What is needed of each document: its entry (null if it has too few features), how much it is preferred, its keys and its
    features."""
    kind = kind_of_ids(df, settings.id)

    def sketched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_task_threads()
        sketcher = _sketcher(settings, terms and SparkFiles.get(terms))
        for batch in batches:
            values = batch.column(2).to_pylist() if field else []
            # JSON has both kinds in one field.
            values = [_number_or_text(value) if isinstance(value, dict) else value for value in values]
            signed, entries, preferences, applies, keys, ends, features = sketcher.sketch(batch.column(1), values)
            entry = pc.if_else(pa.array(signed), column_of(entries), None)
            count = keys.shape[1]
            key_ends = pa.array(np.arange(len(keys) + 1, dtype=np.int32) * count)
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(features)]
            yield batch_of(
                id=batch.column(0),
                entry=entry,
                preference=preferences,
                applies=applies,
                keys=pa.ListArray.from_arrays(key_ends, pa.array(keys.reshape(-1))),
                features=pa.Array.from_buffers(pa.binary(), len(keys), buffers),
            )

    columns = [column(df, settings.id).alias("id"), text_column(df, settings.text).alias("text")]
    if field:
        columns.append(_value(df, field).alias("value"))
    schema = f"id {kind}, entry binary, preference long, applies boolean, keys array<int>, features binary"
    return df.select(*columns).mapInArrow(sketched, schema)


def _number_or_text(value: dict[str, Any]) -> Any:
    return value["text"] if value["number"] is None else value["number"]


def _value(df: DataFrame, field: str) -> Column:
    """A field to choose keepers by: a number, a string, or either. Dates are told as strings."""
    kind, found = kind_of(df, field), column(df, field)
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return found.cast("long")
    if kind in ("float", "double") or kind.startswith("decimal"):
        return found.cast("double")
    return found if kind == NUMBER_OR_TEXT else found.cast("string")


def _check(sketches: DataFrame, settings: _Settings) -> dict[str, Any]:
    """Complains about ids that are missing or there twice, and a rule for keepers that never applies."""
    checked = check_ids(sketches, settings.id)
    applies = sketches.agg(F.max("applies").alias("any")).first()
    if applies is not None and applies["any"] is False:
        problem = "numbers are wanted for max and min, numbers or dates for newest"
        raise LookalikeError(f"no document has a field to choose by, for keep={settings.keep}; {problem}")
    return checked


def _entries(sketches: DataFrame) -> DataFrame:
    """Documents with the same features are one: the one that is rather kept. Its `node` is in the order of preference."""
    best = F.min(F.struct("preference", "id")).alias("best")
    grouped = sketches.where("entry is not null").groupBy("entry").agg(
        best, F.first("keys").alias("keys"), F.count("*").alias("copies")
    )
    kind = sketches.schema["id"].dataType.simpleString()
    # Preferences are of both signs.
    node = F.concat(sortable(F.col("best.preference"), "bigint"), sortable(F.col("best.id"), kind))
    return grouped.select("entry", "keys", "copies", F.col("best.id").alias("id"), node.alias("node"))
