"""Stages: results between the steps of a job, each written once."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from .._engine import __version__
from .._errors import LookalikeError

# What Spark raises of a file that is missing or damaged, when a plan is made and when it is run.
_UNREADABLE = (AnalysisException, Py4JJavaError)


class Files:
    """Small files, wherever Spark reads and writes."""

    def __init__(self, spark: SparkSession) -> None:
        # The file systems are Java's; what is asked of them here, every one of them has.
        self._jvm: Any = spark._jvm
        self._settings: Any = spark._jsc.hadoopConfiguration()

    def _at(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where.getFileSystem(self._settings), where

    def read(self, path: str) -> dict[str, Any] | None:
        """What was written; nothing if that is not there or not whole."""
        system, where = self._at(path)
        try:
            stream = system.open(where)
            found = json.loads(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            stream.close()
        except (Py4JJavaError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write(self, path: str, what: dict[str, Any]) -> None:
        """Writes something that is there as a whole or not at all."""
        system, where = self._at(path)
        _, unfinished = self._at(f"{path}.unfinished")
        stream = system.create(unfinished, True)
        stream.write(bytearray(json.dumps(what, sort_keys=True).encode() + b"\n"))
        stream.close()
        system.delete(where, False)
        if not system.rename(unfinished, where):
            raise LookalikeError(f"{path} cannot be written")

    def full(self, path: str) -> str:
        """The whole address of a path."""
        system, where = self._at(path)
        return str(system.makeQualified(where).toString())

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        system, where = self._at(path)
        return bool(system.exists(where))

    def is_taken(self, folder: str) -> bool:
        """Whether there is anything in a folder."""
        system, where = self._at(folder)
        return bool(system.exists(where) and len(system.listStatus(where)) > 0)

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""
        system, where = self._at(path)
        system.delete(where, True)


class Stages:
    """Keeps the result of each step in a folder that all executors reach, with a fingerprint of what it was made from; a
    rerun reads what is there. Without a folder, results are cached in the executors, and made again if one is lost."""

    def __init__(
        self, frame: DataFrame, folder: str | None, plan: dict[str, Any], columns: list[Column], texts: list[Column]
    ) -> None:
        spark = frame.sparkSession
        self._spark = spark
        self.folder = None if folder is None else str(folder).rstrip("/")
        self._plan = {"lookalike": __version__, **plan}
        self._files = Files(spark)
        self._noted: dict[str, dict[str, Any]] = {}
        if self.folder is not None:
            told = input_of(frame, columns, texts)
            self._plan.update({f"input's {name}": value for name, value in told.items()})
            self._claim()

    def _claim(self) -> None:
        """Makes the folder ours, or refuses if something else was done there."""
        assert self.folder is not None
        found = self._read("plan.json")
        if found is None:
            if self._files.is_taken(self.folder):
                raise LookalikeError(
                    f"{self.folder} has files of no job, or its plan is damaged; take another folder, or remove this one"
                )
            self._write("plan.json", self._plan)
            return
        names = sorted({*found, *self._plan})
        other = [name for name in names if found.get(name) != self._plan.get(name)]
        if other:
            said = "; ".join(f"{name} was {_short(found.get(name))}, is {_short(self._plan.get(name))}" for name in other)
            raise LookalikeError(
                f"{self.folder} has the stages of another job: {said}. Take another folder, or remove this one"
            )

    def keep(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """The result of a step: read if it is there, otherwise made."""
        if self.folder is None:
            return make().persist(StorageLevel.DISK_ONLY)
        path = f"{self.folder}/{name}"
        mark = self._read(f"{name}.done")
        if mark is None or not self._is_whole(path, mark):
            self._describe(name)
            made = make()
            self._describe(name)
            made.write.mode("overwrite").option("parquet.page.write-checksum.enabled", "true").parquet(path)
            self._write(f"{name}.done", {"rows": self._stored(path).count()})
            self._describe(None)
        return self._stored(path)

    def note(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The same for what is only told."""
        found = self._noted.get(name)
        if found is None and self.folder is not None:
            found = self._read(f"{name}.json")
        if found is None:
            self._describe(name)
            found = make()
            self._describe(None)
            if self.folder is not None:
                self._write(f"{name}.json", found)
        self._noted[name] = found
        return found

    def noted(self, name: str) -> dict[str, Any] | None:
        """What was told, if it was."""
        return self._noted.get(name) or (None if self.folder is None else self._read(f"{name}.json"))

    def replace(self, name: str, frame: DataFrame) -> DataFrame:
        """Writes a result that is of no use to a rerun, over what is there."""
        path = f"{self.folder}/{name}"
        frame.write.mode("overwrite").parquet(path)
        return self._spark.read.parquet(path)

    def _read(self, name: str) -> dict[str, Any] | None:
        """What was written under a name, if it is still the same."""
        found = self._files.read(f"{self.folder}/{name}")
        if found is None or found.pop("check", None) != _check_of(found):
            return None
        return found

    def _write(self, name: str, what: dict[str, Any]) -> None:
        self._files.write(f"{self.folder}/{name}", {**what, "check": _check_of(what)})

    def _describe(self, name: str | None) -> None:
        """What Spark's pages say that is done."""
        self._spark.sparkContext.setJobDescription("" if name is None else f"lookalike: {name}")

    def _stored(self, path: str) -> DataFrame:
        """What is stored of a stage. A damaged page is an error, not a result."""
        return self._spark.read.option("parquet.page.verify-checksum.enabled", "true").parquet(path)

    def _is_whole(self, path: str, mark: dict[str, Any]) -> bool:
        """Whether a stage has the rows that it had: files have come to nothing before."""
        try:
            return self._stored(path).count() == mark.get("rows")
        except _UNREADABLE:
            return False


def _check_of(what: dict[str, Any]) -> str:
    return _hash(json.dumps(what, sort_keys=True))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def input_of(frame: DataFrame, columns: list[Column], texts: list[Column]) -> dict[str, Any]:
    """What tells one input from another: what is in these columns, and in its texts. Where those are in files, the names, sizes
    and times of the files stand for them, and what is done to them on the way: they are long to read."""
    files = frame.inputFiles() if texts else []
    hashed = F.sum(F.xxhash64(*columns, *([] if files else texts)).cast("decimal(38,0)"))
    counted = frame.agg(F.count("*").alias("rows"), hashed.alias("hash")).first()
    assert counted is not None
    told = {"columns": frame.schema.simpleString(), "rows": counted.rows, "content": str(counted["hash"])}
    if files:
        # They are told as addresses, and taken as patterns.
        names = [re.sub(r"([\[\]{}*?\\])", r"\\\1", unquote(file)) for file in files]
        about = frame.sparkSession.read.format("binaryFile").load(names)
        facts = F.sum(F.xxhash64("path", "length", "modificationTime").cast("decimal(38,0)"))
        found = about.agg(F.count("*").alias("files"), facts.alias("facts")).first()
        assert found is not None
        told["files"], told["plan"] = f"{found.files}, {found.facts}", _plan_of(frame)
    return told


def _plan_of(frame: DataFrame) -> str:
    """A hash of what is done to the input, as far as Spark's plan tells: names of functions, not what is in them."""
    plan = frame._jdf.queryExecution().analyzed().canonicalized().toString()
    # Addresses of objects are others every time.
    return _hash(re.sub(r"@[0-9a-f]+", "", plan))
