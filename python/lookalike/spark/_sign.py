"""Texts to signatures."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkFiles
from pyspark.sql import DataFrame
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
    need_columns(df, text)
    if signature in df.columns:
        raise LookalikeError(f"there is a column `{signature}` already; signature= names another")
    made = native_recipe(recipe)
    # Whatever is wrong with the recipe is told here, not by an executor.
    _engine.sign([], made, False, terms, None)
    json, file = made.json, shared_file(df, terms)

    def signed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        use_task_threads()
        recipe, path = _engine.Recipe.from_json(json), file and SparkFiles.get(file)
        for batch in batches:
            texts = batch.column(batch.num_columns - 1)
            made = _engine.sign(texts, recipe, False, path, None)
            column = column_of(made.array)
            if made.signed is not None:
                column = pc.if_else(pa.array(made.signed), column, None)
            columns = [*batch.columns[:-1], column]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names[:-1], signature])

    # Names may have dots in them, and be there twice: columns are told by their places.
    schema = StructType([*df.schema.fields, StructField(signature, BinaryType())])
    with_text = df.select("*", F.col(text).cast("string").alias(signature))
    return with_text.mapInArrow(signed, schema)


def need_columns(df: DataFrame, *names: str) -> None:
    """Complains about a column that is not there."""
    for name in names:
        try:
            df.select(F.col(name)).schema
        except Exception as error:
            there = ", ".join(df.columns)
            raise LookalikeError(f"there is no column `{name}`; there are {there}") from error


def shared_file(df: DataFrame, path: str | None) -> str | None:
    """Has a file of the driver sent to the executors; what it is called there."""
    if path is None:
        return None
    df.sparkSession.sparkContext.addFile(str(path))
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]
