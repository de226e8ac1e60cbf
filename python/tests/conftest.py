"""What the tests share."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("LOOKALIKE") or str(ROOT / "target/debug/lookalike")


@pytest.fixture(scope="session")
def program():
    """Runs the program; what it says on standard output."""

    def run(*arguments, **more):
        words = [PROGRAM, *map(str, arguments)]
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT, **more).stdout

    return run


def documents_of(*names):
    return [json.loads(line) for name in names for line in (ROOT / "examples" / name).open()]


@pytest.fixture(scope="session")
def docs():
    return documents_of("docs.jsonl")


@pytest.fixture(scope="session")
def manual():
    return documents_of("manual/3.0.jsonl", "manual/4.0.jsonl")


def clustered(rows, bits, seed=1):
    """Rows that have near neighbors, and copies."""
    random = np.random.default_rng(seed)
    centres = random.integers(0, 256, (rows // 10 + 1, bits // 8), dtype=np.uint8)
    made = centres[random.integers(0, len(centres), rows)]
    flips = np.packbits(random.random((rows, bits)) < 4 / bits, axis=1)
    flips[random.random(rows) < 0.2] = 0
    return made ^ flips


def distances_of(a, b):
    """Every row of one with every row of the other."""
    return np.unpackbits(a[:, None, :] ^ b[None, :, :], axis=2).sum(axis=2, dtype=np.int32)


# Two executors in processes of their own, as on two machines; little is said, and nothing of the network is needed.
SPARK = """
spark.master                     local-cluster[2,1,1024]
spark.driver.memory              1g
spark.executor.memory            1g
spark.driver.extraJavaOptions    -Djava.io.tmpdir={folder}/tmp {java}
spark.executor.extraJavaOptions  -Djava.io.tmpdir={folder}/tmp {java}
spark.local.dir                  {folder}/tmp
spark.sql.warehouse.dir          {folder}/tmp/warehouse
spark.sql.shuffle.partitions     4
spark.ui.enabled                 false
spark.ui.showConsoleProgress     false
"""
# What runs for a minute is not worth being compiled for long.
SPARK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
SPARK_LOG = """
status = error
rootLogger.level = error
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = %p %c{1}: %m%n%ex
"""


@pytest.fixture(scope="session")
def spark_environment():
    """What processes must have in their environment to run Spark as the tests do. Such a cluster writes the logs of its executors
    to `work` in the home of Spark: that is a folder for a time, in which there are links to the package."""
    pyspark = pytest.importorskip("pyspark")
    installed = Path(pyspark.__file__).parent
    with tempfile.TemporaryDirectory(prefix="lookalike-spark-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        for made in [home / "conf", Path(folder) / "tmp"]:
            made.mkdir(parents=True)
        for entry in installed.iterdir():
            if entry.name not in ["conf", "work"]:
                (home / entry.name).symlink_to(entry)
        (home / "conf/spark-defaults.conf").write_text(SPARK.format(folder=folder, java=SPARK_JAVA))
        (home / "conf/log4j2.properties").write_text(SPARK_LOG)
        yield {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": f"{folder}/tmp",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_HOSTNAME": "localhost",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        assert not (installed / "work").exists()


@pytest.fixture(scope="session")
def session(spark_environment):
    """Spark, started once."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        for name, value in spark_environment.items():
            patch.setenv(name, value)
        session = SparkSession.builder.appName("lookalike").getOrCreate()
        gateway = session.sparkContext._gateway
        yield session
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        # Whoever wants Spark after this starts it anew.
        SparkContext._gateway = SparkContext._jvm = None
