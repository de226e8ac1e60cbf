"""Texts to signatures."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from .. import _engine
from .._errors import LookalikeError
from .._recipe import Recipe, native_recipe
from ._batches import column_of, use_task_threads


def sign(
    df: DataFrame,
    recipe: str | Recipe = "text",
    *,
    text: str = "text",
    signature: str = "signature",
    terms: str | None = None,
) -> DataFrame:
    """Adds a column of signatures: those that `lookalike.sign` makes of the texts, as bytes. A text without enough features has
    none: it is null. `terms` is the file of term statistics, on the driver, if the recipe weighs by them."""
    if signature.lower() in (name.lower() for name in df.columns):
        raise LookalikeError(f"there is a column `{signature}` already; signature= names another")
    texts = text_column(df, text)
    made = native_recipe(recipe)
    # Whatever is wrong with the recipe is told here, not by an executor.
    _engine.sign([], made, False, terms, None)
    json, file = made.json, shared_file(df, terms)

    def signed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_task_threads()
        recipe, path = _engine.Recipe.from_json(json), file and SparkFiles.get(file)
        for batch in batches:
            *others, texts = batch.columns
            made = _engine.sign(texts, recipe, False, path, None)
            column = column_of(made.array)
            if made.signed is not None:
                column = pc.if_else(pa.array(made.signed), column, None)
            yield pa.RecordBatch.from_arrays([*others, column], names=names)

    # Names of columns may have dots in them: on the way they are numbers.
    names = [str(place) for place in range(len(df.columns) + 1)]
    fields = [*df.schema.fields, StructField(signature, BinaryType())]
    numbered = [StructField(name, field.dataType, True) for name, field in zip(names, fields)]
    with_text = df.select("*", texts).toDF(*names)
    return with_text.mapInArrow(signed, StructType(numbered)).toDF(*(field.name for field in fields))


def column(df: DataFrame, name: str) -> Column:
    """A column by its name, or a field in one: dots lead there, unless a column has them in its name."""
    found = F.col(f"`{name.replace('`', '``')}`") if name in df.columns else F.col(name)
    try:
        df.select(found).schema
    except AnalysisException as error:
        there = ", ".join(df.columns)
        raise LookalikeError(f"there is no column `{name}`; there are {there}") from error
    return found


def kind_of(df: DataFrame, name: str) -> str:
    """The type of a column, in Spark's words."""
    return df.select(column(df, name)).schema[0].dataType.simpleString()


def text_column(df: DataFrame, name: str) -> Column:
    """A column of texts."""
    kind = kind_of(df, name)
    if kind not in ("string", "void") and not kind.startswith(("varchar", "char")):
        raise LookalikeError(f"texts are strings; column `{name}` has {kind}")
    return column(df, name).cast("string")


def shared_file(df: DataFrame, path: str | None) -> str | None:
    """Has a file of the driver sent to the executors; what it is called there. That tells its content: Spark has one file of a
    name, for as long as a session lasts."""
    if path is None:
        return None
    name = f"{print_of(path)}.terms"
    folder = Path(tempfile.mkdtemp(prefix="lookalike-"))
    # Executors may ask for it as long as the session lasts.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copyfile(path, folder / name)
    df.sparkSession.sparkContext.addFile(str(folder / name))
    return name


def print_of(path: str) -> str:
    """A hash of what is in a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
