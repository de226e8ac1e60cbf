"""Deduplication: which documents are kept, and what the others are near-duplicates of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._errors import LookalikeError
from ._inputs import Documents
from ._progress import Progress, Tell, telling


@dataclass(frozen=True)
class Removed:
    """A document that is not kept."""

    row: int
    id: Any
    keeper_row: int
    """The document that is kept in its place."""
    keeper: Any
    distance: int
    """How many bits their signatures differ in."""
    similarity: float
    """How alike they are."""


@dataclass(frozen=True)
class DuplicateCluster:
    """Documents of which one is kept."""

    rows: list[int]
    """The keeper first, the others in the order of the input."""
    ids: list[Any]

    @property
    def keeper(self) -> Any:
        """The id of the one that is kept."""
        return self.ids[0]

    def __len__(self) -> int:
        return len(self.rows)


class AlikePairs(NamedTuple):
    """All pairs of documents that are alike, each once, in the order of their rows."""

    rows_a: NDArray[np.int64]
    """The row of the one document of each pair."""
    rows_b: NDArray[np.int64]
    """The row of the other, which is larger."""
    distances: NDArray[np.int32]
    """How many bits their signatures differ in."""
    similarities: NDArray[np.float32]
    """How alike they are."""


_Decided = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True)
class _Settings:
    similarity: float | None
    radius: int | None
    verify: str | None
    linkage: str
    memory: int

    def decide(self, sketches: _engine.Sketches, pairs: bool, tell: Tell | None) -> tuple[_Decided, AlikePairs | None]:
        how = (self.similarity, self.radius, self.verify, self.linkage, self.memory)
        decided, listed = sketches.decide(*how, pairs, tell)
        return decided, None if listed is None else AlikePairs(*listed)


class Deduplicated:
    """What becomes of each document. Nothing is lost: other thresholds can be tried without reading a text again."""

    def __init__(
        self,
        sketches: _engine.Sketches,
        ids: list[Any] | None,
        settings: _Settings,
        pairs: bool = False,
        progress: Progress = None,
    ) -> None:
        self._sketches = sketches
        self._ids = ids
        self._settings = settings
        with telling(progress, "decide") as tell:
            decided, self._pairs = settings.decide(sketches, pairs, tell)
        self.keepers, self.distances, self.similarities = decided

    keepers: NDArray[np.int64]
    """Of each document the row of the one that is kept: its own if it is."""
    distances: NDArray[np.int32]
    """How many bits each is apart from its keeper."""
    similarities: NDArray[np.float32]
    """How alike each is to its keeper."""

    @property
    def similarity(self) -> float | None:
        """From which similarity on documents are near-duplicates; None if a radius decides."""
        return self._settings.similarity

    @property
    def signed(self) -> NDArray[np.bool_]:
        """Which documents have features to compare. The others are kept."""
        return self._sketches.signed

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """The rows of the documents that are kept, ascending."""
        return np.flatnonzero(self.keepers == np.arange(len(self)))

    @cached_property
    def removed_rows(self) -> NDArray[np.int64]:
        """The rows of those that are not, ascending."""
        return np.flatnonzero(self.keepers != np.arange(len(self)))

    @cached_property
    def removed(self) -> list[Removed]:
        """The documents that are not kept, each with what it is a near-duplicate of, and how near."""
        return [self._removed(row) for row in self.removed_rows.tolist()]

    @property
    def kept_ids(self) -> list[Any]:
        """The ids of the documents that are kept."""
        return [self.id_of(row) for row in self.kept.tolist()]

    @cached_property
    def clusters(self) -> list[DuplicateCluster]:
        """The clusters of two or more documents, in the order of their keepers."""
        rows: dict[int, list[int]] = {}
        for row in self.removed_rows.tolist():
            keeper = int(self.keepers[row])
            rows.setdefault(keeper, [keeper]).append(row)
        return [DuplicateCluster(of, [self.id_of(row) for row in of]) for _, of in sorted(rows.items())]

    def id_of(self, row: int) -> Any:
        """The id of a document: its number if it has none."""
        return row if self._ids is None else self._ids[row]

    def least_similar(self, n: int = 10) -> list[Removed]:
        """The removed documents that are the least like their keepers: those to look at before trusting a threshold."""
        rows = self.removed_rows
        order = np.argsort(self.similarities[rows], kind="stable")[:n]
        return [self._removed(row) for row in rows[order].tolist()]

    def rethreshold(
        self, similarity: float | None = None, *, radius: int | None = None, progress: Progress = None
    ) -> Deduplicated:
        """The same documents with another similarity, without reading a text again: what `dedup` would say. With a radius in
        its place, documents are near-duplicates if their signatures are at most so many of 256 bits apart."""
        if (similarity is None) == (radius is None):
            raise LookalikeError("rethreshold takes a similarity or a radius")
        old = self._settings
        verify = old.verify
        if verify is not None and similarity is not None and ":" in verify:
            verify = f"{verify.split(':')[0]}:{similarity}"
        settings = _Settings(similarity, radius, verify if radius is None else None, old.linkage, old.memory)
        return Deduplicated(self._sketches, self._ids, settings, progress=progress)

    def pairs(self, progress: Progress = None) -> AlikePairs:
        """All pairs of documents that are alike, also those that the clusters are not made of. Near-copies of one template are
        very many: of 10,000 there are 50 million pairs. They are looked for now, unless `dedup` was told to list them."""
        if self._pairs is not None:
            return self._pairs
        with telling(progress, "pairs") as tell:
            pairs = self._settings.decide(self._sketches, True, tell)[1]
        assert pairs is not None
        return pairs

    def _removed(self, row: int) -> Removed:
        keeper = int(self.keepers[row])
        return Removed(
            row, self.id_of(row), keeper, self.id_of(keeper), int(self.distances[row]), float(self.similarities[row])
        )

    def __len__(self) -> int:
        return len(self.keepers)

    def __repr__(self) -> str:
        return f"<Deduplicated: {len(self.kept)} of {len(self)} documents kept, {len(self.clusters)} clusters>"


def dedup(
    documents: Any,
    similarity: float = 0.7,
    *,
    text: str = "text",
    id: str = "id",
    keep: str = "first",
    linkage: str = "star",
    verify: str | None = None,
    radius: int | None = None,
    memory: int = 2 << 30,
    pairs: bool = False,
    progress: Progress = None,
) -> Deduplicated:
    """Finds near-duplicates: documents that have at least `similarity` of their word 3-grams in common, by Jaccard.

    >>> page = "The harbour reopened on Monday after a storm had closed it for two days. Ferries run again, and so do buses."
    >>> documents = {"a": page, "b": page.replace("buses", "trains"), "c": "Potatoes are planted in spring, not in autumn."}
    >>> result = dedup(documents)
    >>> result.kept_ids
    ['a', 'c']
    >>> [(gone.id, gone.keeper, round(gone.similarity, 2)) for gone in result.removed]
    [('b', 'a', 0.9)]

    `documents` are texts, as `sign` takes them; or dicts, or a mapping of ids to texts, or a table of pyarrow, polars, pandas or
    datasets, with fields or columns named by `text` and `id`. Without ids, documents go by their row.

    `keep` says which of a cluster is kept: first, longest, newest:FIELD, max:FIELD, min:FIELD, prefer:FIELD=VALUE,VALUE.
    `linkage`: those alike the keeper (star), all alike each other (complete), or connected (components). `verify` decides in
    place of the Jaccard coefficient: none, containment:S, cosine:S. `radius`: how far signatures of candidates may be apart.
    `pairs`: list all pairs that are alike, too, for `Deduplicated.pairs`.
    """
    field = keep.partition(":")[2].partition("=")[0].strip() or None
    read = Documents(documents, text, id, field)
    with telling(progress, "sign") as tell:
        sketches = _engine.Sketches.sign(read.texts, read.values, keep, similarity, verify, tell)
    settings = _Settings(similarity, radius, verify, linkage, memory)
    return Deduplicated(sketches, read.ids, settings, pairs, progress)
