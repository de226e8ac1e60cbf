"""Texts and documents, in whatever they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from ._errors import LookalikeError

BATCH = 1000


def texts_of(texts: Any) -> Any:
    """Texts as the engine takes them: something with an Arrow interface, or something to iterate over."""
    if isinstance(texts, np.ndarray):
        if texts.ndim != 1 or texts.dtype.kind not in "UOT":
            raise LookalikeError(f"texts are an array of str (n,); this is {texts.dtype} {texts.shape}")
        return texts.tolist()
    if _is_of(texts, "pandas") and hasattr(texts, "array"):
        return _texts_of_series(texts)
    if _is_of(texts, "datasets") and hasattr(texts, "column_name") and hasattr(texts, "__len__"):
        source = getattr(texts, "source", None)
        return column_of(source, texts.column_name) if _is_table(source) else texts
    return texts


def _texts_of_series(series: Any) -> Any:
    if hasattr(series.array, "__arrow_array__"):
        # An Arrow column of pandas: its buffers are read where they are.
        return series.array.__arrow_array__()
    return series.astype(object).where(series.notna(), None).tolist()


def _is_of(value: Any, package: str) -> bool:
    return type(value).__module__.split(".")[0] == package


def _is_table(documents: Any) -> bool:
    """Whether something has columns with names."""
    if isinstance(documents, (list, tuple, Mapping, np.ndarray)):
        return False
    return hasattr(documents, "column_names") or hasattr(documents, "columns")


def _names(table: Any) -> list[str]:
    names = table.column_names if hasattr(table, "column_names") else table.columns
    return [] if names is None else [str(name) for name in names]


def column_of(table: Any, name: str) -> Any:
    """A column of a table: pyarrow, polars, pandas, datasets."""
    if name not in _names(table):
        raise LookalikeError(f"there is no column `{name}`; there are {', '.join(_names(table))}")
    if _is_of(table, "datasets"):
        return table.select_columns([name]).with_format("arrow")[:][name]
    return table[name]


def _list_of(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


class Documents:
    """Documents to be read once: their texts for the engine, and what is noted of each on the way."""

    def __init__(self, documents: Any, text: str, id: str, field: str | None) -> None:
        self.names = (text, id, field)
        self.ids: list[Any] | None = None
        self.values: list[Any] = []
        if isinstance(documents, str):
            raise LookalikeError("this is one text; documents are wanted")
        if isinstance(documents, Mapping):
            self.ids = list(documents.keys())
            documents = list(documents.values())
        elif _is_table(documents) and not _is_stream(documents):
            self._take_table(documents)
            return
        else:
            documents = texts_of(documents)
        self.texts = self._texts(documents)

    def _take_table(self, table: Any) -> None:
        text, id, field = self.names
        self.texts = texts_of(column_of(table, text))
        if id in _names(table):
            self.ids = _list_of(column_of(table, id))
        if field is not None:
            self.values = [plain(value) for value in _list_of(column_of(table, field))]

    def _texts(self, documents: Any) -> Any:
        if hasattr(documents, "__arrow_c_stream__") or hasattr(documents, "__arrow_c_array__"):
            return documents
        if isinstance(documents, (list, tuple)):
            is_mapping = bool(documents) and isinstance(documents[0], Mapping)
            rest: Iterable[Any] = documents
        else:
            reader = iter(documents)
            first = _take(reader, 1)
            is_mapping = bool(first) and isinstance(first[0], Mapping)
            rest = chain(first, reader)
        if not is_mapping:
            if self.names[2] is not None:
                raise LookalikeError(f"texts have no field `{self.names[2]}` to choose keepers by")
            return rest
        return _Sized(self._read(rest), len(documents) if hasattr(documents, "__len__") else None)

    def _read(self, documents: Iterable[Any]) -> Iterator[Any]:
        text, id, field = self.names
        ids: list[Any] = []
        for row, document in enumerate(documents):
            if not isinstance(document, Mapping) or text not in document:
                raise LookalikeError(f"document {row} has no field `{text}`")
            ids.append(document.get(id, row))
            self.ids = ids
            if field is not None:
                self.values.append(plain(value_at(document, field)))
            yield document[text]


class _Sized:
    """Something to iterate over, which knows how much there is."""

    def __init__(self, values: Iterator[Any], size: int | None) -> None:
        self.values = values
        self.size = size

    def __iter__(self) -> Iterator[Any]:
        return self.values

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError("the number of documents is not known")
        return self.size


def _take(reader: Iterator[Any], count: int) -> list[Any]:
    return [value for _, value in zip(range(count), reader)]


def _is_stream(documents: Any) -> bool:
    """Whether a dataset is read row by row."""
    return _is_of(documents, "datasets") and not hasattr(documents, "__len__")


def value_at(document: Mapping[str, Any], path: str) -> Any:
    """The value of a field, or of one inside of others, with dots between their names."""
    if path in document:
        return document[path]
    value: Any = document
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value


def plain(value: Any) -> Any:
    """Dates as text, numbers of numpy as Python's."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.item() if isinstance(value, np.generic) else value


def rows_of(documents: Any, text: str, id: str) -> Iterator[Mapping[str, Any]]:
    """Documents as mappings, one by one."""
    if isinstance(documents, Mapping):
        yield from ({id: key, text: value} for key, value in documents.items())
    elif hasattr(documents, "to_batches"):
        for batch in documents.to_batches(max_chunksize=BATCH):
            yield from batch.to_pylist()
    elif hasattr(documents, "iter_rows"):
        yield from documents.iter_rows(named=True)
    elif hasattr(documents, "itertuples"):
        for start in range(0, len(documents), BATCH):
            some = documents.iloc[start : start + BATCH].astype(object)
            yield from some.where(some.notna(), None).to_dict("records")
    else:
        yield from documents
