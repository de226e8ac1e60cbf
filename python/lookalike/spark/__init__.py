"""Near-duplicate search on Apache Spark: DataFrames in, DataFrames out, and the engine inside the executors.

The signatures, pairs and clusters are those that the program and the package give on one machine, bit for bit:

    from lookalike import spark as lookalike_spark

    result = lookalike_spark.dedup(documents, similarity=0.7, work="hdfs:///tmp/dedup")
    result.kept.write.parquet("hdfs:///clean")

It needs PySpark 4 (`pip install lookalike[spark]`), and this package where the executors run.
"""

from ._clusters import clusters
from ._dedup import Deduplicated, dedup
from ._pairs import pairs
from ._sign import sign

__all__ = ["Deduplicated", "clusters", "dedup", "pairs", "sign"]
