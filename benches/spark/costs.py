"""What a job on Spark costs, stage by stage, and what that comes to for 1e9 and 8e9 documents; and the pairs of signatures beside
two others on the same rows: the same plan in Spark's own SQL (slices as join keys, `bit_count` of the difference), and the native
join of one machine.

    target/python-package/bin/python benches/spark/costs.py CORPUS.jsonl [DOCUMENTS] [ROWS]

Times are those of tasks as Spark's event log has them, so they are core-seconds whatever the number of cores. Everything runs in
one session of `local[2]`; data that is read and written is on the disk of this machine.
"""

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import lookalike
from lookalike import _engine
from lookalike import spark as on_spark

CORES = 2
# Seconds to compare two rows of a bucket of hundreds: see `pair_cost`.
A_PAIR = 0.0
RECIPE = {"name": "simhash-64", "signature": {"kind": "simhash", "bits": 64}}


class Log:
    """What the event log says of the stages that ran since it was looked at last."""

    def __init__(self, folder):
        self.folder = folder
        self.seen = 0

    def stages(self):
        lines = []
        for path in sorted(Path(self.folder).rglob("*")):
            if path.is_file() and not path.name.startswith(".") and "appstatus" not in path.name:
                lines += path.open().read().splitlines()
        new, self.seen = lines[self.seen :], len(lines)
        stage_of, found = {}, defaultdict(lambda: defaultdict(float))
        for line in new:
            event = json.loads(line)
            if event["Event"] == "SparkListenerJobStart":
                name = (event.get("Properties") or {}).get("spark.job.description") or ""
                stage_of.update({stage: name for stage in event["Stage IDs"]})
            elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                to, metrics = found[stage_of.get(event["Stage ID"], "")], event["Task Metrics"]
                to["seconds"] += metrics["Executor Run Time"] / 1e3
                to["shuffled"] += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                to["written"] += metrics["Output Metrics"]["Bytes Written"]
        return {name: dict(of) for name, of in found.items()}


def documents_of(corpus, count, path):
    texts = []
    with open(corpus) as lines:
        for _, line in zip(range(count), lines):
            texts.append(json.loads(line)["text"])
    table = pa.table({"id": [f"{i:012}" for i in range(len(texts))], "text": texts})
    pq.write_table(table, path, row_group_size=10_000)
    return len(texts), sum(map(len, texts)) / len(texts)


def told(title, stages, rows):
    print(f"\n{title}\n")
    print("| stage | core µs a document | bytes shuffled | bytes written |")
    print("|---|---:|---:|---:|")
    for name, of in stages.items():
        name = name.removeprefix("lookalike: ") or "other"
        print(f"| {name} | {1e6 * of['seconds'] / rows:.1f} | {of['shuffled'] / rows:.0f} | {of['written'] / rows:.0f} |")
    total = {key: sum(of[key] for of in stages.values()) / rows for key in ("seconds", "shuffled", "written")}
    print(f"| all | {1e6 * total['seconds']:.1f} | {total['shuffled']:.0f} | {total['written']:.0f} |", flush=True)
    return total


def in_sql(signed, radius):
    """The same by Spark alone: the slices of signatures as join keys."""
    slices = F.expr("transform(sequence(0, 3), i -> struct(i as slice, shiftright(word, 16 * i) & 65535 as value))")
    keyed = signed.select("id", "word", F.explode(slices).alias("key"))
    a, b = keyed.alias("a"), keyed.alias("b")
    near = (F.col("a.key") == F.col("b.key")) & (F.col("a.id") < F.col("b.id"))
    near &= F.bit_count(F.col("a.word").bitwiseXOR(F.col("b.word"))) <= radius
    return a.join(b, near).select("a.id", "b.id").distinct()


def timed(work):
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def main():
    corpus = sys.argv[1]
    count = int(float(sys.argv[2])) if len(sys.argv) > 2 else 200_000
    rows = int(float(sys.argv[3])) if len(sys.argv) > 3 else 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        events = Path(folder, "events")
        events.mkdir()
        spark = (
            SparkSession.builder.master(f"local[{CORES}]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.eventLog.enabled", "true")
            .config("spark.eventLog.dir", events.as_uri())
            .config("spark.eventLog.rolling.enabled", "false")
            .config("spark.eventLog.compress", "false")
            .config("spark.local.dir", folder)
            .config("spark.sql.shuffle.partitions", "16")
            .config("spark.driver.memory", "6g")
            .getOrCreate()
        )
        log = Log(events)
        count, length = documents_of(corpus, count, f"{folder}/documents.parquet")
        documents = spark.read.parquet(f"{folder}/documents.parquet")
        documents.count()
        on_spark.sign(documents.limit(1000)).count()
        log.stages()
        print(f"{count} documents of {length:.0f} characters; local[{CORES}]; times of tasks, medians are not taken")

        recipe = lookalike.Recipe.from_json(RECIPE)
        on_spark.dedup(documents, 3, recipe=recipe, verify="jaccard:0.8", work=f"{folder}/radius").counts
        told("dedup(radius=3, verify='jaccard:0.8'), 64 bits", log.stages(), count)
        by_similarity = on_spark.dedup(documents, similarity=0.7, work=f"{folder}/similarity").counts
        told("dedup(similarity=0.7)", log.stages(), count)
        _, native = timed(lambda: lookalike.dedup(documents.toPandas(), 0.7))
        print(f"\n{by_similarity}\nthe package on one machine, all cores: {1e6 * native / count:.1f} µs a document")

        global A_PAIR
        A_PAIR = pair_cost()
        print(f"a pair of a bucket of 250 rows: {1e9 * A_PAIR:.2f} ns")
        pairs_of_rows(spark, folder, rows, log)
        spark.stop()


def pair_cost():
    """Seconds of one core for each pair of a bucket that is compared."""
    rows = np.random.default_rng(2).integers(0, 256, (200_000, 8), dtype=np.uint8)
    keys = np.repeat(np.arange(len(rows) // 250), 250)
    paths, plan = np.zeros(len(rows), np.int32), _engine.KeyPlan(64, 3, [5], np.empty(0, np.int64))

    def compare():
        buckets = _engine.Buckets(8, 64, 3, plan)
        buckets.push(keys, paths, rows)
        buckets.finish()

    seconds = sorted(timed(compare)[1] for _ in range(5))[2]
    return seconds / (len(rows) * 249 / 2)


def pairs_of_rows(spark, folder, rows, log):
    random = np.random.default_rng(1)
    words = random.integers(0, 1 << 63, rows, dtype=np.uint64)
    copied = rows // 10
    # One in ten is one to three bits from another.
    flips = np.zeros(copied, np.uint64)
    for _ in range(3):
        flips |= np.uint64(1) << random.integers(0, 64, copied, dtype=np.uint64)
    words[:copied] = words[copied : 2 * copied] ^ flips
    array = words.astype(">u8").view(np.uint8).reshape(rows, 8)
    table = {"id": np.arange(rows), "word": words.view(np.int64), "signature": pa.array([row.tobytes() for row in array], pa.binary())}
    pq.write_table(pa.table(table), f"{folder}/rows.parquet", row_group_size=100_000)
    signed = spark.read.parquet(f"{folder}/rows.parquet")
    print(f"\n{rows} random rows of 64 bits, one in ten within 3 of another; pairs within 3; wall-clock seconds, in turn, 3 rounds")

    def noop(frame):
        frame.write.format("noop").mode("overwrite").save()

    seconds = defaultdict(list)
    for round in range(3):
        _, taken = timed(lambda: lookalike.join(lookalike.Signatures(array), 3))
        seconds["one machine (lookalike.join)"].append(taken)
        _, taken = timed(lambda: noop(on_spark.pairs(signed, 3)))
        seconds["lookalike.spark.pairs"].append(taken)
        spark.catalog.clearCache()
        if round == 0 or rows <= 1_000_000:
            _, taken = timed(lambda: noop(in_sql(signed, 3)))
            seconds["the same plan in Spark SQL"].append(taken)
    ours = np.median(seconds["lookalike.spark.pairs"])
    print("\n| | seconds | times ours |\n|---|---:|---:|")
    for name, of in seconds.items():
        print(f"| {name} | {np.median(of):.1f} | {np.median(of) / ours:.2f} |", flush=True)
    log.stages()

    costs = {blocks: cost_of_keys(signed, rows, blocks, f"{folder}/{blocks}", log) for blocks in (4, 5, 6)}
    print("\nkeys and pairs of very many rows of 64 bits, radius 3, spread evenly\n")
    print("| rows | keys | core hours to count, sort and compare | pairs compared | core hours for these | TB shuffled |")
    print("|---:|---:|---:|---:|---:|---:|")
    for many in (1e8, 1e9, 8e9):
        for blocks, (count, bits, seconds, shuffled) in costs.items():
            pairs = count * many**2 / 2 / 2**bits
            chosen = " (chosen)" if _engine.KeyPlan.blocks_for(64, 3, int(many)) == blocks else ""
            hours, of_pairs = many * count * seconds / 3600, pairs * A_PAIR / 3600
            print(f"| {many:.0e} | {count} of {bits} bits{chosen} | {hours:,.1f} | {pairs:.1e} | {of_pairs:,.1f} | {many * count * shuffled / 1e12:.1f} |")


def cost_of_keys(signed, rows, blocks, work, log):
    from lookalike.spark import _pairs

    near = _pairs.Near(64, 8, 3, 20_000, 10**18, 10**18)
    entries = signed.select(F.col("signature").alias("entry"))
    keys = _pairs.Keys([blocks], np.empty(0, np.int64))
    count = keys.plan(near).count
    context = signed.sparkSession.sparkContext
    context.setJobDescription(f"count, {count} keys")
    _pairs.histogram(_pairs.keyed(entries, near, keys).groupBy("key").count(), 20_000)
    context.setJobDescription(f"sort and compare, {count} keys")
    _pairs.compared(_pairs.keyed(entries, near, keys), rows * count, near, keys).write.parquet(work)
    context.setJobDescription("")
    total = told(f"keys of {rows} rows, {count} each", log.stages(), rows * count)
    return count, {4: 16, 5: 26, 6: 32}[blocks], total["seconds"], total["shuffled"]


main()
