"""Clusters of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from .. import _engine
from .._errors import LookalikeError
from ._batches import batch_of, use_task_threads
from ._pairs import NUMBERS, kind_of_ids
from ._sign import column
from ._stages import Stages


def clusters(
    pairs: DataFrame,
    *,
    linkage: str = "components",
    id_a: str = "id_a",
    id_b: str = "id_b",
    in_one_process: int = 4_000_000,
    work: str | None = None,
) -> DataFrame:
    """Clusters of pairs: `id` and `cluster` of everybody who is in a pair. A cluster is called by the least id in it.

    `linkage` is `components`, all that are connected, through others if need be; or `star`: in the order of ids, each joins the
    first one that it is paired with and that leads a cluster, or leads one itself. Up to `in_one_process` pairs, one task does
    it; more are made into clusters by all executors in some ten rounds, with results written to the folder `work` in between.
    """
    a, b, kinds = column(pairs, id_a), column(pairs, id_b), [kind_of_ids(pairs, name) for name in (id_a, id_b)]
    if kinds[0] != kinds[1]:
        if not all(kind in NUMBERS for kind in kinds):
            raise LookalikeError(f"ids are of one type; those of `{id_a}` are {kinds[0]}, those of `{id_b}` {kinds[1]}")
        a, b = a.cast("long"), b.cast("long")
    stages = Stages(pairs, work, {"job": "clusters", "linkage": linkage, "id_a": id_a, "id_b": id_b}, [a, b], [])
    edges = stages.keep("pairs", lambda: pairs.select(a.alias("a"), b.alias("b")))
    if edges.where("a is null or b is null").head(1):
        raise LookalikeError(f"there are pairs with an id missing in `{id_a}` or `{id_b}`; id_a= and id_b= name other columns")
    found = keepers_of(edges, linkage, in_one_process, stages)
    return found.select(F.col("node").alias("id"), F.col("keeper").alias("cluster"))


def keepers_of(edges: DataFrame, linkage: str, in_one_process: int, stages: Stages) -> DataFrame:
    """The keeper of each node that is in an edge `a`, `b`: `node` and `keeper`, in the order of nodes."""
    if linkage not in ("components", "star"):
        raise LookalikeError(f"linkage is {linkage!r}; `components` or `star` is wanted")
    # Nobody is paired with oneself.
    edges, kind = edges.where("a != b"), edges.schema["a"].dataType
    if edges.count() <= in_one_process:
        one = edges.withColumn("component", F.lit(0)).coalesce(1)
        return one.mapInArrow(_keepers_in(linkage), _keepers_schema(kind))
    components = stages.keep("components", lambda: _components(edges, stages))
    if linkage == "components":
        return components
    # Each component is a matter of its own, and small enough for one task.
    of_a = components.select(F.col("node").alias("a"), F.col("keeper").alias("component"))
    by_component = edges.join(of_a, "a").select("a", "b", "component")
    sorted_edges = by_component.repartition("component").sortWithinPartitions("component")
    return sorted_edges.mapInArrow(_keepers_in(linkage), _keepers_schema(kind))


def _keepers_schema(kind: DataType) -> StructType:
    return StructType([StructField("node", kind), StructField("keeper", kind)])


def _keepers_in(linkage: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What finds the keepers of edges that come one component behind the other."""

    def keepers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_task_threads()
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            if batch.num_rows == 0:
                continue
            # All but the last component of a batch are complete; it is decided together with them.
            last = batch.column(2)[batch.num_rows - 1]
            starts = pc.index(batch.column(2), last).as_py()
            if starts > 0 or (waiting and waiting[-1].column(2)[0] != last):
                yield from _decide([*waiting, batch.slice(0, starts)], linkage)
                waiting = []
            waiting.append(batch.slice(starts))
        yield from _decide(waiting, linkage)

    return keepers


def _decide(batches: list[pa.RecordBatch], linkage: str) -> Iterator[pa.RecordBatch]:
    """The keepers of some edges. Components do not meddle with each other."""
    if not batches or not any(batch.num_rows for batch in batches):
        return
    table = pa.Table.from_batches(batches)
    a, b = table.column(0).combine_chunks(), table.column(1).combine_chunks()
    nodes = pc.unique(pa.chunked_array([a, b]))
    nodes = nodes.take(pc.sort_indices(nodes))
    ranks = [pc.index_in(side, value_set=nodes).to_numpy(zero_copy_only=False) for side in (a, b)]
    kept = _engine.keepers(len(nodes), linkage, *(side.astype(np.int64) for side in ranks))
    yield batch_of(node=nodes, keeper=nodes.take(pa.array(kept)))


def _components(edges: DataFrame, stages: Stages) -> DataFrame:
    """The least node of each component, by large-star and small-star (Kiveris et al., Connected Components in MapReduce and
    Beyond, 2014): edges are replaced by edges to ever smaller nodes, until nothing changes."""
    if stages.folder is None:
        raise LookalikeError(
            "so many pairs are made into clusters step by step, and steps need a folder that all executors reach: work=FOLDER"
        )
    here = edges.select(F.least("a", "b").alias("a"), F.greatest("a", "b").alias("b")).distinct()
    before, step = None, 0
    while True:
        # Two folders are enough: one is read while the other is written.
        here = stages.replace(f"steps/{step % 2}", _small_star(_large_star(here)))
        print_of = F.sum(F.xxhash64("a", "b").cast("decimal(38,0)"))
        now = here.agg(F.count("*").alias("edges"), print_of.alias("print")).first()
        if now == before:
            break
        before, step = now, step + 1
    leaves = here.select(F.col("b").alias("node"), F.col("a").alias("keeper"))
    roots = here.select(F.col("a").alias("node"), F.col("a").alias("keeper")).distinct()
    return leaves.unionByName(roots)


def _large_star(edges: DataFrame) -> DataFrame:
    """Connects the larger neighbors of each node to the least of all its neighbors and itself."""
    both = edges.unionByName(edges.select(F.col("b").alias("a"), F.col("a").alias("b")))
    least = both.groupBy("a").agg(F.least(F.min("b"), F.col("a")).alias("least"))
    larger = both.where("b > a").join(least, "a")
    return larger.select(F.col("least").alias("a"), "b").where("a != b").distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Connects each node and its smaller neighbors to the least of these. Edges lead from the smaller node to the larger."""
    least = edges.groupBy("b").agg(F.min("a").alias("least"))
    smaller = edges.join(least, "b").select(F.col("least").alias("a"), F.col("a").alias("b")).where("a != b")
    own = least.select(F.col("least").alias("a"), "b")
    return smaller.unionByName(own).distinct()
