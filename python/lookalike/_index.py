"""Indexes: which rows are near a query?"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._progress import Progress, telling
from ._recipe import Path, Recipe, known_recipe
from ._signatures import Signatures, native_signatures

Queries = Any


class Index:
    """Finds rows near queries.

    >>> import numpy as np
    >>> rows = np.packbits(np.tri(5, 64, dtype=bool), axis=1)
    >>> index = Index.build(rows)
    >>> lims, distances, ids = index.range_search(rows[:1], radius=2)
    >>> ids[lims[0]:lims[1]].tolist(), distances.tolist()
    ([0, 1, 2], [0, 1, 2])

    Row numbers are those of the signatures. Answers come nearest first, ties by row, and do not depend on the kind of the
    index as long as `exact` is true.
    """

    __slots__ = ("_native", "_ids")
    _native: _engine.Index
    _ids: list[str] | None

    @classmethod
    def build(
        cls,
        signatures: Signatures | NDArray[np.uint8],
        kind: str = "auto",
        *,
        radius: int | None = None,
        recall: float = 1.0,
    ) -> Index:
        """Builds an index.

        `auto` takes the kind that is predicted to be the fastest for the `radius`, or one that is exact for every radius if
        none is said. Others: `scan`, `pieces`, `blocks`, `multi`, `psm`, or with numbers as `multi-3`; and `graph`, which
        finds most of the nearest: it needs a `recall` below 1. Where tables do not guarantee to find all within a radius, rows
        are scanned, unless `recall` says that less is enough.
        """
        index = cls.__new__(cls)
        index._native = _engine.Index.build(native_signatures(signatures), kind, radius, recall)
        index._ids = signatures.ids if isinstance(signatures, Signatures) else None
        return index

    @classmethod
    def open(cls, path: Path, *, recall: float = 1.0) -> Index:
        """Opens an index file, with its signatures; or a file of signatures, to be scanned. Rows are those of the file."""
        index = cls.__new__(cls)
        index._native = _engine.Index.open(path, recall)
        index._ids = None
        return index

    def save(self, path: Path, signatures: Path | Signatures) -> None:
        """Writes the index. It belongs to signatures in a file: that file, or signatures that are written beside it, under
        its name with `.sig`."""
        if isinstance(signatures, Signatures):
            beside = os.path.splitext(os.fspath(path))[0] + ".sig"
            signatures.save(beside)
            signatures = beside
        self._native.save(path, signatures)

    def range_search(
        self, queries: Queries, radius: int, *, progress: Progress = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """All rows within the radius of each query, as FAISS has it: `lims`, `distances`, `ids`. Those of query `i` are at
        `lims[i]:lims[i+1]`.

        The radius is inclusive: rows at the very radius are found. FAISS leaves them out.
        """
        with telling(progress, "search") as tell:
            return self._native.range_search(self._queries(queries), radius, tell)

    def search(
        self, queries: Queries, k: int, *, progress: Progress = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The `k` nearest rows of each query: `distances` and `ids`, of shape (n, k).

        Only where there are fewer than `k` rows, or the query has no signature, both are padded with -1.
        """
        with telling(progress, "search") as tell:
            return self._native.search(self._queries(queries), k, tell)

    def first(
        self, queries: Queries, radius: int, *, progress: Progress = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """One row within the radius of each query, which is soonest found: `distances` and `ids`, of shape (n,); -1 where
        there is none."""
        with telling(progress, "search") as tell:
            distances, ids = self._native.first(self._queries(queries), radius, tell)
        return distances[:, 0], ids[:, 0]

    def _queries(self, queries: Queries) -> _engine.Signatures:
        return native_signatures(queries, self.bits)

    @property
    def kind(self) -> str:
        """What it is, with its numbers."""
        return self._native.kind

    @property
    def exact(self) -> bool:
        """Whether all that is asked for is found."""
        return self._native.exact

    @property
    def bits(self) -> int:
        """The width of the signatures."""
        return self._native.bits

    @property
    def nbytes(self) -> int:
        """The memory that it takes beside the signatures."""
        return self._native.nbytes

    @property
    def recipe(self) -> Recipe | None:
        """What made the signatures, if it is known."""
        return known_recipe(self._native.recipe)

    @property
    def ids(self) -> list[str] | None:
        """The ids of the rows, if the signatures have any."""
        return self._native.ids if self._ids is None else self._ids

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<Index: {self.kind} over {len(self)} signatures of {self.bits} bits>"
