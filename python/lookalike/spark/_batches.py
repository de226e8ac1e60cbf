"""What the functions that run in executors share: between Arrow batches and the engine's arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from .._errors import LookalikeError


def use_task_threads() -> None:
    """Has the engine use as many threads as the task has cores: there are other tasks on the machine. To be called first."""
    task = TaskContext.get()
    if task is not None:
        os.environ.setdefault("RAYON_NUM_THREADS", str(task.cpus()))


def buffers_of(column: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Where the values of a column of bytes start and end, and the bytes. Nothing is copied."""
    if not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return ends, np.frombuffer(data if data is not None else b"", np.uint8)


def rows_of(column: pa.Array, width: int) -> NDArray[np.uint8]:
    """A column of bytes, all of one length, as rows of an array."""
    if len(column) == 0:
        return np.empty((0, width), np.uint8)
    ends, data = buffers_of(column)
    if column.null_count or bool((np.diff(ends) != width).any()):
        raise LookalikeError(f"signatures of one width are wanted, {8 * width} bits ({width} bytes)")
    return data[ends[0] : ends[-1]].reshape(-1, width)


def column_of(rows: NDArray[np.uint8]) -> pa.Array:
    """Rows of an array as a column of bytes."""
    count, width = rows.shape
    ends = np.arange(count + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def last_two_as(name: str, batch: pa.RecordBatch, found: Callable[[pa.Array, pa.Array], Any]) -> pa.RecordBatch:
    """A batch whose last two columns are replaced by what is found of them."""
    *others, a, b = batch.columns
    return pa.RecordBatch.from_arrays([*others, pa.array(found(a, b))], names=[*batch.schema.names[:-2], name])


def batch_of(**columns: Any) -> pa.RecordBatch:
    """A batch of columns: arrays of Arrow or of numpy."""
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns.values()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
