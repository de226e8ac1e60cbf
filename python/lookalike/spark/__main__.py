"""The jobs, for `python -m lookalike.spark` and for `spark-submit` with this file.

    dedup INPUT OUTPUT      documents without their near-duplicates
    sign INPUT OUTPUT       signatures of documents
    pairs INPUT OUTPUT      pairs of signatures within a radius
    clusters INPUT OUTPUT   clusters of pairs
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

# Not by dots: spark-submit runs this file as it is.
from lookalike import LookalikeError, Recipe, _engine
from lookalike.spark import clusters, dedup, pairs, sign
from lookalike.spark._batches import batch_of
from lookalike.spark._dedup import NUMBER_OR_TEXT
from lookalike.spark._sign import column
from lookalike.spark._stages import Files

FORMATS = ("jsonl", "parquet")


def main() -> int:
    arguments = _parser().parse_args()
    spark = _session(arguments)
    try:
        _check_output(spark, arguments)
        told = _RUN[arguments.job](spark, arguments)
    except (LookalikeError, PySparkException, Py4JJavaError, OSError) as error:
        print(f"error: {_said(error)}", file=sys.stderr)
        return 2
    finally:
        spark.stop()
    print(json.dumps(told))
    return 0


def _said(error: Exception) -> str:
    """What an error says: that of the engine, if it was raised in an executor."""
    text = str(error)
    inside = re.search(r"LookalikeError: (.*)", text)
    if inside:
        return inside[1]
    if "stages of another job" in text:
        return f"{text}; --restart does that"
    if "No module named 'lookalike'" in text:
        return "the executors do not have the package lookalike; docs/spark.md says how it gets there, for each kind of cluster"
    # Java tells what went wrong last, and why behind it.
    causes = re.findall(r"^Caused by: (.*)", text, re.MULTILINE) or re.findall(r"^: (.*)", text, re.MULTILINE)
    return causes[-1] if causes else text.splitlines()[0]


def _session(arguments: argparse.Namespace) -> SparkSession:
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        # Not under spark-submit: the executors of this machine have what this interpreter has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"lookalike {arguments.job}")
    if arguments.master:
        builder = builder.master(arguments.master)
    for setting in arguments.conf:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    return builder.getOrCreate()


# ---- the jobs


def _dedup(spark: SparkSession, arguments: argparse.Namespace) -> dict[str, Any]:
    work = _work(spark, arguments)
    source = _Source(spark, arguments, keep=arguments.keep)
    result = dedup(
        source.documents,
        arguments.radius,
        arguments.similarity,
        recipe=_recipe(arguments.recipe),
        verify=arguments.verify,
        keep=arguments.keep,
        linkage=arguments.linkage,
        text=_Source.TEXT,
        id=_Source.ID,
        terms=arguments.terms,
        bucket=arguments.bucket,
        most_candidates=arguments.most_candidates,
        most_pairs=arguments.most_pairs,
        in_one_process=arguments.in_one_process,
        work=work,
    )
    told = {**result.counts, "bad": source.bad}
    source.write(result.kept, f"{arguments.output}/kept")
    _write(result.removed.orderBy("id"), f"{arguments.output}/removed", source.format)
    _write(result.clusters.orderBy("cluster", "id"), f"{arguments.output}/clusters", source.format)
    Files(spark).write(f"{arguments.output}/report.json", told)
    return told


def _sign(spark: SparkSession, arguments: argparse.Namespace) -> dict[str, Any]:
    source = _Source(spark, arguments)
    chosen = source.documents.select(F.col(_Source.ID).alias("id"), F.col(_Source.TEXT).alias("text"))
    signed = sign(chosen, _recipe(arguments.recipe) or "text", terms=arguments.terms).select("id", "signature")
    signed.write.mode(_mode(arguments)).parquet(arguments.output)
    counted = spark.read.parquet(arguments.output).agg(F.count("*").alias("all"), F.count("signature").alias("signed")).first()
    assert counted is not None
    return {"documents": counted["all"], "signed": counted.signed, "bad": source.bad}


def _pairs(spark: SparkSession, arguments: argparse.Namespace) -> dict[str, Any]:
    limits = {"bucket": arguments.bucket, "most_candidates": arguments.most_candidates, "most_pairs": arguments.most_pairs}
    found = pairs(spark.read.parquet(arguments.input), arguments.radius, copies=arguments.copies, **limits)
    found.write.mode(_mode(arguments)).parquet(arguments.output)
    return {"pairs": spark.read.parquet(arguments.output).count()}


def _clusters(spark: SparkSession, arguments: argparse.Namespace) -> dict[str, Any]:
    settings = {"linkage": arguments.linkage, "in_one_process": arguments.in_one_process}
    found = clusters(spark.read.parquet(arguments.input), **settings, work=_work(spark, arguments))
    found.write.mode("overwrite").parquet(f"{arguments.output}/clusters")
    read = spark.read.parquet(f"{arguments.output}/clusters")
    counted = read.agg(F.count("*").alias("all"), F.countDistinct("cluster").alias("clusters")).first()
    assert counted is not None
    return {"documents": counted["all"], "clusters": counted.clusters}


_RUN = {"dedup": _dedup, "sign": _sign, "pairs": _pairs, "clusters": _clusters}


# ---- input and output


class _Source:
    """Documents from files, with a column for the id and one for the text. Lines of JSON are kept as they are, so that what is kept is
    written as it came."""

    ID, TEXT, LINE = "lookalike_id", "lookalike_text", "lookalike_line"

    def __init__(self, spark: SparkSession, arguments: argparse.Namespace, keep: str = "first") -> None:
        self.format: str = arguments.input_format or _format_of(spark, arguments.input)
        self._field = _engine.Sketcher(_engine.Recipe.named("text"), None, None, "none", keep).field
        self._prefers = keep.startswith("prefer")
        self.bad = 0
        read = self._lines if self.format == "jsonl" else self._rows
        self.documents = read(spark, arguments)

    def write(self, documents: DataFrame, path: str) -> None:
        """Writes documents as they came."""
        if self.format == "jsonl":
            documents.select(F.col(self.LINE).alias("value")).write.mode("overwrite").text(path)
        else:
            documents.drop(self.ID, self.TEXT).write.mode("overwrite").parquet(path)

    def _rows(self, spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
        rows = spark.read.parquet(arguments.input)
        place = _name(spark, arguments.input), F.col("_metadata.row_index") + 1
        ids = _place(*place) if arguments.by_place else column(rows, arguments.id_field)
        return rows.select("*", ids.alias(self.ID), column(rows, arguments.text_field).alias(self.TEXT))

    def _lines(self, spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
        lines = spark.read.text(arguments.input, lineSep="\n")
        numbered = _numbered(spark, lines, arguments.input) if arguments.by_place else lines.select("value", F.lit(None).alias("place"))
        parse = _Parse(arguments.text_field, None if arguments.by_place else arguments.id_field, self._field)
        schema = f"line string, id string, text string, field {NUMBER_OR_TEXT}, problem string"
        parsed = numbered.where("trim(value) != ''").mapInArrow(parse, schema)
        self._check(parsed.where("problem is not null").select("problem", "line"), arguments)
        field = F.col("field.text") if self._prefers else F.col("field")
        columns = [F.col("id").alias(self.ID), F.col("text").alias(self.TEXT), F.col("line").alias(self.LINE)]
        named = [] if self._field is None else [field.alias(self._field)]
        return parsed.where("problem is null").select(*columns, *named)

    def _check(self, bad: DataFrame, arguments: argparse.Namespace) -> None:
        """Tells of lines that are no documents; skips them only if that was asked for."""
        self.bad = bad.count()
        if not self.bad:
            return
        some = "; ".join(f"{row.problem} in {row.line[:80]!r}" for row in bad.limit(3).collect())
        said = f"{self.bad} lines are no documents: {some}"
        if arguments.on_error == "stop":
            ways = "--on-error skip leaves them out; --text-field and --id-field name fields; --by-place takes file and line as ids"
            raise LookalikeError(f"{said}. {ways}")
        print(f"skipped: {said}", file=sys.stderr)


class _Parse:
    """Reads lines of JSON in an executor."""

    def __init__(self, text: str, id: str | None, field: str | None) -> None:
        self._text = text
        self._id = id
        self._field = field

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = ["line", "id", "text", "number", "of_field", "problem"]
        for batch in batches:
            lines = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist())
            rows = [self._row(line, place) for line, place in lines]
            kinds = [pa.string(), pa.string(), pa.string(), pa.float64(), pa.string(), pa.string()]
            columns = {name: pa.array([row[at] for row in rows], kinds[at]) for at, name in enumerate(names)}
            field = pa.StructArray.from_arrays([columns.pop("number"), columns.pop("of_field")], ["number", "text"])
            problem = columns.pop("problem")
            yield batch_of(**columns, field=field, problem=problem)

    def _row(self, line: str, place: str | None) -> tuple[str, str | None, str | None, float | None, str | None, str | None]:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            return line, None, None, None, None, f"no JSON ({error})"
        text, id = _within(document, self._text), place if self._id is None else _within(document, self._id)
        if not isinstance(text, str):
            return line, None, None, None, None, f"no text in field `{self._text}`"
        if not isinstance(id, (str, int, float)) or isinstance(id, bool):
            return line, None, None, None, None, f"no id in field `{self._id}`"
        value = None if self._field is None else _within(document, self._field)
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        told = value if isinstance(value, str) or value is None else json.dumps(value)
        return line, id if isinstance(id, str) else json.dumps(id), text, number, told, None


def _within(document: Any, path: str) -> Any:
    """A field of an object; dots lead into others."""
    for name in path.split("."):
        if not isinstance(document, dict):
            return None
        document = document.get(name)
    return document


def _place(name: Column, number: Column) -> Column:
    """An id of file and number, in the order of these."""
    return F.concat(name, F.lit(":"), F.lpad(number.cast("string"), 12, "0"))


def _name(spark: SparkSession, path: str) -> Column:
    """The names of files, without the folder that all of them are in."""
    files = [re.sub(LOCAL, "/", file) for file in _files_of(spark, path)]
    folder = os.path.commonprefix([os.path.dirname(file) + "/" for file in files])
    folder = folder[: folder.rfind("/") + 1]
    name = F.regexp_replace("_metadata.file_path", LOCAL, "/")
    return F.when(name.startswith(folder), F.substring(name, len(folder) + 1, 1 << 20)).otherwise(name)


def _numbered(spark: SparkSession, lines: DataFrame, path: str) -> DataFrame:
    """Lines with their places. Files are read in blocks, by several tasks: lines are counted within blocks, then blocks."""
    named = lines.select("value", _name(spark, path).alias("file"), F.col("_metadata.file_block_start").alias("start"))

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        block: tuple[str, int] | None = None
        count = 0
        for batch in batches:
            numbers = []
            for file, start in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist()):
                if (file, start) != block:
                    block, count = (file, start), 0
                count += 1
                numbers.append(count)
            yield batch_of(value=batch.column(0), file=batch.column(1), start=batch.column(2), number=numbers)

    within = named.mapInArrow(counted, "value string, file string, start long, number long")
    blocks = within.groupBy("file", "start").agg(F.max("number").alias("lines"))
    before = Window.partitionBy("file").orderBy("start").rowsBetween(Window.unboundedPreceding, -1)
    before_block = blocks.select("file", "start", F.coalesce(F.sum("lines").over(before), F.lit(0)).alias("before"))
    numbered = within.join(F.broadcast(before_block), ["file", "start"])
    return numbered.select("value", _place(F.col("file"), F.col("before") + F.col("number")).alias("place"))


def _format_of(spark: SparkSession, path: str) -> str:
    """What the names of the files say that they are."""
    files = _files_of(spark, path)
    is_json = [bool(re.search(r"\.(jsonl|json|ndjson)(\.\w+)?$", file)) for file in files]
    is_parquet = [file.endswith(".parquet") for file in files]
    if files and all(is_json):
        return "jsonl"
    if files and all(is_parquet):
        return "parquet"
    raise LookalikeError(f"the names of the files in {path} do not say what they are; --input-format jsonl or parquet does")


def _write(rows: DataFrame, path: str, format: str) -> None:
    writer = rows.write.mode("overwrite")
    writer.json(path) if format == "jsonl" else writer.parquet(path)


def _recipe(name: str | None) -> Recipe | None:
    if name is None:
        return None
    return Recipe.read(name) if name.endswith(".json") else Recipe(name)


def _check_output(spark: SparkSession, arguments: argparse.Namespace) -> None:
    """Refuses to write over what is read, or over what is not ours."""
    files, output = Files(spark), arguments.output.rstrip("/")
    folder = _bare(files.full(output)) + "/"
    inside = [file for file in _files_of(spark, arguments.input) if _bare(file).startswith(folder)]
    if inside:
        raise LookalikeError(f"the input is in the folder to write to: {unquote(inside[0])}. Take another OUTPUT")
    if arguments.job != "dedup" or not files.exists(f"{output}/kept"):
        return
    if not files.exists(f"{output}/report.json") and not files.read(f"{_folder(arguments)}/plan.json"):
        raise LookalikeError(f"{output}/kept is there, and not of a job like this. Remove it, or take another OUTPUT")


def _files_of(spark: SparkSession, path: str) -> list[str]:
    """The addresses of the files of an input."""
    return spark.read.text(path).inputFiles()


# The same file is told as file:/ here and as file:/// there.
LOCAL = "^file:/+"


def _bare(address: str) -> str:
    """An address as it is written everywhere."""
    return re.sub(LOCAL, "/", unquote(address))


def _folder(arguments: argparse.Namespace) -> str:
    return str(arguments.work or f"{arguments.output.rstrip('/')}/_work")


def _work(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """The folder for stages, empty if that is asked for."""
    work, files = _folder(arguments), Files(spark)
    if arguments.restart and files.is_taken(work):
        if "lookalike" not in (files.read(f"{work}/plan.json") or {}):
            raise LookalikeError(f"{work} has no stages of a job, and is not removed for --restart; --work names another folder")
        files.remove(work)
    return work


def _mode(arguments: argparse.Namespace) -> str:
    return "overwrite" if arguments.overwrite else "errorifexists"


# ---- the command line


def _number(text: str) -> int:
    """A whole number, as 1e12 as well."""
    return int(float(text))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lookalike.spark", description="Near-duplicate search on Apache Spark.", allow_abbrev=False
    )
    jobs = parser.add_subparsers(dest="job", required=True, metavar="JOB")

    def job(name: str, help: str, input: str) -> argparse.ArgumentParser:
        made = jobs.add_parser(name, help=help, description=help, allow_abbrev=False)
        made.add_argument("input", metavar="INPUT", help=input)
        made.add_argument("output", metavar="OUTPUT", help="the folder to write to")
        made.add_argument("--master", help="the cluster, as spark-submit has it; local[*] if nothing says otherwise")
        made.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
        return made

    def documents(made: argparse.ArgumentParser) -> None:
        made.add_argument("--text-field", default="text", metavar="FIELD", help="the text; dots reach into fields (%(default)s)")
        made.add_argument("--id-field", default="id", metavar="FIELD", help="the id (%(default)s)")
        made.add_argument("--by-place", action="store_true", help="ids are file and line")
        made.add_argument("--input-format", choices=FORMATS, help="what the files are; their names say it otherwise")
        made.add_argument("--on-error", choices=("stop", "skip"), default="stop", help="lines that are no documents (%(default)s)")
        made.add_argument("--recipe", metavar="NAME|FILE", help="everything between text and signature (text)")
        made.add_argument("--terms", metavar="FILE", help="statistics of terms, if the recipe weighs by them")

    def near(made: argparse.ArgumentParser) -> None:
        made.add_argument("--bucket", type=int, default=20_000, metavar="N", help="larger buckets are cut (%(default)s)")
        limit = "refuse to compare more pairs (%(default)s)"
        made.add_argument("--most-candidates", type=_number, default=10**13, metavar="N", help=limit)
        made.add_argument("--most-pairs", type=_number, default=10**9, metavar="N", help="refuse to list more pairs (%(default)s)")

    def clustering(made: argparse.ArgumentParser, linkage: str) -> None:
        made.add_argument("--linkage", choices=("star", "components"), default=linkage, help="what a cluster is (%(default)s)")
        one = "up to so many pairs, one task makes clusters (%(default)s)"
        made.add_argument("--in-one-process", type=int, default=4_000_000, metavar="N", help=one)
        made.add_argument("--work", metavar="FOLDER", help="where stages are kept, for a rerun (OUTPUT/_work)")
        made.add_argument("--restart", action="store_true", help="drop the stages of an earlier run, and begin again")

    made = job("dedup", "Remove near-duplicates from JSON lines or Parquet.", "files, folders or globs of JSON lines or Parquet")
    how = made.add_mutually_exclusive_group()
    how.add_argument("--similarity", type=float, metavar="S", help="alike from this Jaccard coefficient of word 3-grams on (0.7)")
    how.add_argument("--radius", type=int, metavar="BITS", help="in its place: signatures of --recipe at most so many bits apart")
    made.add_argument("--verify", metavar="CHECK", help="none, jaccard:S, containment:S or cosine:S")
    rules = "first (the least id), longest, newest:FIELD, max:FIELD, min:FIELD, prefer:FIELD=VALUE,VALUE"
    made.add_argument("--keep", default="first", metavar="RULE", help=f"which of a cluster is kept: {rules}")
    documents(made)
    near(made)
    clustering(made, "star")

    made = job("sign", "Make signatures: id and signature, as Parquet.", "files, folders or globs of JSON lines or Parquet")
    documents(made)
    made.add_argument("--overwrite", action="store_true", help="replace what is in OUTPUT")

    made = job("pairs", "Find all pairs of signatures within a radius.", "Parquet with id and signature, as `sign` makes it")
    made.add_argument("--radius", type=int, required=True, metavar="BITS", help="at most so many bits apart")
    all_copies = "of those with the same signature: the first with each other one, or all pairs (%(default)s)"
    made.add_argument("--copies", choices=("star", "all"), default="star", help=all_copies)
    near(made)
    made.add_argument("--overwrite", action="store_true", help="replace what is in OUTPUT")

    made = job("clusters", "Make clusters of pairs.", "Parquet with id_a and id_b, as `pairs` makes it")
    clustering(made, "components")
    return parser


if __name__ == "__main__":
    sys.exit(main())
