"""Collections: documents that stay, added, replaced, removed and searched at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._errors import LookalikeError
from ._inputs import BATCH, plain, rows_of, texts_of
from ._progress import Progress, Tell, telling
from ._recipe import Path, Recipe, known_recipe, native_recipe
from ._signatures import Signatures, native_signatures, strings_of


@dataclass(frozen=True)
class Record:
    """What a collection keeps of a document."""

    id: str
    signature: NDArray[np.uint8]
    payload: dict[str, Any]
    """Its other fields."""
    text: str | None
    """Its text, if the collection keeps texts."""
    time: datetime
    """When it was added."""


@dataclass(frozen=True)
class Hit:
    """A record near a query."""

    id: str
    distance: int
    similarity: float
    payload: dict[str, Any]


@dataclass(frozen=True)
class Seen:
    """What became of a document that was to be added unless it was seen."""

    id: str
    added: bool
    lookalike: str | None = None
    """The nearest that there is already."""
    distance: int | None = None


@dataclass(frozen=True)
class Cluster:
    """Records that look alike, directly or through others."""

    ids: list[str]
    """The oldest first."""
    farthest: int
    """The largest distance between two of them."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass
class Added:
    """What became of documents that were to be added."""

    added: int = 0
    replaced: int = 0
    unsigned: list[str] = field(default_factory=list)
    """The ids of those that have too few features: they are not in the collection."""

    def _count(self, ids: list[str], statuses: list[str]) -> None:
        self.added += statuses.count("added")
        self.replaced += statuses.count("replaced")
        self.unsigned += [id for id, status in zip(ids, statuses) if status == "unsigned"]


_Batch = tuple[list[str], list[Any], list[Any]]


class Collection:
    """Documents that stay, in a folder. What a call has written is durable when it returns.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp() + "/news"
    >>> with Collection.create(folder) as news:
    ...     added = news.add([{"id": "a1", "text": "The harbour reopened on Monday after a storm.", "lang": "en"}])
    ...     hits = news.search("The harbour reopened on Monday after the storm.", radius=80)
    ...     [(hit.id, hit.payload) for hit in hits]
    [('a1', {'lang': 'en'})]

    Threads share a collection; a process that was forked opens it again.
    """

    __slots__ = ("_native", "path")
    _native: _engine.Collection
    path: str

    @classmethod
    def _of(cls, native: _engine.Collection, path: Path) -> Collection:
        collection = cls.__new__(cls)
        collection._native = native
        collection.path = str(path)
        return collection

    @classmethod
    def create(
        cls,
        path: Path,
        recipe: str | Recipe | None = None,
        *,
        bits: int | None = None,
        texts: bool = False,
        margins: bool = False,
        postgres: tuple[str, str] | None = None,
    ) -> Collection:
        """Makes a collection in a folder that is not there yet: of texts that are signed by a recipe, which is `text` if nothing
        is said, or of signatures of so many bits from elsewhere. `texts` keeps the texts, too; `postgres` has the records in
        a database: its URL and a schema."""
        if recipe is None and bits is None:
            recipe = "text"
        native = None if recipe is None else native_recipe(recipe)
        return cls._of(_engine.Collection.create(path, native, bits, texts, margins, postgres), path)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Collection:
        """Opens a collection. One process at a time writes to one in SQLite; others may read it."""
        return cls._of(_engine.Collection.open(path, read_only), path)

    def add(self, documents: Any, *, text: str = "text", id: str = "id", progress: Progress = None) -> Added:
        """Adds documents: dicts with a text and an id, whose other fields are kept with them, or a table of pyarrow, polars,
        pandas or datasets with such columns, or a mapping of ids to texts.

        An id that is there already is an error. Documents are written a thousand at a time: of those, all are written or none.
        """
        return self._add(documents, text, id, "error", progress)

    def upsert(self, documents: Any, *, text: str = "text", id: str = "id", progress: Progress = None) -> Added:
        """Adds documents as `add` does; those whose ids are there already take their place."""
        return self._add(documents, text, id, "replace", progress)

    def _add(self, documents: Any, text: str, id: str, if_exists: str, progress: Progress) -> Added:
        done = Added()

        def put(ids: list[str], texts: list[Any], payloads: list[Any]) -> None:
            done._count(ids, self._native.put_texts(ids, texts, payloads, if_exists))

        with telling(progress, "add") as tell:
            _each(_batches(documents, text, id), put, tell, documents)
        return done

    def add_signatures(
        self,
        ids: Iterable[Any],
        signatures: Signatures | NDArray[np.uint8],
        payloads: Iterable[dict[str, Any] | None] | None = None,
        *,
        replace: bool = False,
    ) -> Added:
        """Adds signatures that are there already, all of them or none."""
        native = native_signatures(signatures, self.bits)
        names = strings_of(list(ids))
        packed = [_json(payload) for payload in ([None] * len(names) if payloads is None else payloads)]
        if not len(names) == len(packed) == len(native):
            raise LookalikeError(f"{len(names)} ids and {len(packed)} payloads for {len(native)} signatures")
        done = Added()
        if_exists = "replace" if replace else "error"
        done._count(names, self._native.put_signatures(names, native, packed, if_exists))
        return done

    def seen_or_add(
        self, documents: Any, radius: int, *, text: str = "text", id: str = "id", progress: Progress = None
    ) -> list[Seen]:
        """Adds each document that has no lookalike within the radius, neither in the collection nor among those before it.
        What became of each: documents without a signature are neither seen nor added."""
        done: list[Seen] = []

        def ask(ids: list[str], texts: list[Any], payloads: list[Any]) -> None:
            for name, (status, near) in zip(ids, self._native.seen_or_add(ids, texts, payloads, radius)):
                lookalike, distance = near or (None, None)
                done.append(Seen(name, status == "added", lookalike, distance))

        with telling(progress, "add") as tell:
            _each(_batches(documents, text, id), ask, tell, documents)
        return done

    def remove(self, ids: str | Iterable[Any]) -> int:
        """Removes records by their ids; how many were there."""
        names = [ids] if isinstance(ids, str) else strings_of(list(ids))
        return sum(self._native.remove(names))

    @overload
    def get(self, ids: str) -> Record | None: ...

    @overload
    def get(self, ids: list[str] | tuple[str, ...]) -> list[Record | None]: ...

    def get(self, ids: str | list[str] | tuple[str, ...]) -> Record | None | list[Record | None]:
        """The record of an id, or those of several; None for what is not there."""
        names = [ids] if isinstance(ids, str) else strings_of(ids)
        records = [None if fields is None else _record(fields) for fields in self._native.get(names)]
        return records[0] if isinstance(ids, str) else records

    @overload
    def search(
        self,
        queries: str,
        *,
        radius: int | None = None,
        nearest: int | None = None,
        first: int | None = None,
        filter: str | None = None,
        limit: int | None = None,
        recall: float = 1.0,
    ) -> list[Hit]: ...

    @overload
    def search(
        self,
        queries: Any,
        *,
        radius: int | None = None,
        nearest: int | None = None,
        first: int | None = None,
        filter: str | None = None,
        limit: int | None = None,
        recall: float = 1.0,
    ) -> list[list[Hit]]: ...

    def search(
        self,
        queries: Any,
        *,
        radius: int | None = None,
        nearest: int | None = None,
        first: int | None = None,
        filter: str | None = None,
        limit: int | None = None,
        recall: float = 1.0,
    ) -> list[Hit] | list[list[Hit]]:
        """Records near a text, or near each of several texts or signatures, nearest first.

        One of three questions: all within a `radius`, the so many `nearest`, or the `first` within a radius. A `filter` such as
        `lang = "en"` applies while candidates are looked at, so that those that count are all there. `limit` bounds what a
        query gets. With a `recall` below 1, a collection that keeps a graph may miss some.
        """
        asked = [("within", radius), ("nearest", nearest), ("first", first)]
        questions = [(question, number) for question, number in asked if number is not None]
        if len(questions) != 1:
            raise LookalikeError("a search has one question: radius, nearest or first")
        question, number = questions[0]
        native = self._signatures([queries] if isinstance(queries, str) else queries)
        found = self._native.search(native, question, number, filter, limit, recall)
        hits = [[self._hit(*fields) for fields in of_query] for of_query in found]
        return hits[0] if isinstance(queries, str) else hits

    def _signatures(self, queries: Any) -> _engine.Signatures:
        if isinstance(queries, Signatures) or (isinstance(queries, np.ndarray) and queries.dtype == np.uint8):
            return native_signatures(queries, self.bits)
        recipe = self._native.recipe
        if recipe is None:
            raise LookalikeError(f"the collection has no recipe to sign texts with: ask with signatures of {self.bits} bits")
        return _engine.sign(texts_of(queries), recipe, False, self._native.terms, None)

    def _hit(self, id: str, distance: int, payload: str | None) -> Hit:
        recipe = self._native.recipe
        similarity = 1 - distance / self.bits if recipe is None else recipe.similarity(distance)
        return Hit(id, distance, similarity, _payload(payload))

    def clusters(self, radius: int, *, recall: float = 1.0) -> list[Cluster]:
        """The records that look alike: all that are within the radius of each other, directly or through others, in the order
        of their oldest records."""
        return [Cluster(ids, farthest) for ids, farthest in self._native.clusters(radius, recall)]

    def refresh(self) -> bool:
        """Takes up what other processes wrote; whether there was anything."""
        return self._native.refresh()

    def compact(self) -> int:
        """Forgets for good what was removed; how many records that were."""
        return self._native.compact()

    @property
    def bits(self) -> int:
        """The width of the signatures."""
        return self._native.bits

    @property
    def recipe(self) -> Recipe | None:
        """What signs its documents; None if signatures come from elsewhere."""
        return known_recipe(self._native.recipe)

    def close(self) -> None:
        """Saves what makes the next opening fast. Nothing is lost without it."""
        self._native.close()

    def __enter__(self) -> Collection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._native)

    def __contains__(self, id: str) -> bool:
        return self.get(id) is not None

    def __repr__(self) -> str:
        what = "closed" if self._native.closed else f"{len(self)} records of {self.bits} bits"
        return f"<Collection {self.path}: {what}>"


def _batches(documents: Any, text: str, id: str) -> Iterator[_Batch]:
    """Ids, texts and payloads of some documents at a time."""
    batch: _Batch = ([], [], [])
    for row, document in enumerate(rows_of(documents, text, id)):
        if not hasattr(document, "items") or id not in document or text not in document:
            raise LookalikeError(f"document {row} has no field `{id}` or `{text}`: dicts with both are wanted")
        rest = {name: value for name, value in document.items() if name not in (text, id)}
        body = document[text]
        if not (body is None or isinstance(body, str)):
            raise LookalikeError(f"the text of document {row} is a {type(body).__name__}, not a str")
        batch[0].append(str(document[id]))
        batch[1].append(body)
        batch[2].append(_json(rest))
        if len(batch[0]) == BATCH:
            yield batch
            batch = ([], [], [])
    if batch[0]:
        yield batch


def _each(
    batches: Iterator[_Batch],
    put: Callable[[list[str], list[Any], list[Any]], None],
    tell: Tell | None,
    documents: Any,
) -> None:
    done, total = 0, len(documents) if hasattr(documents, "__len__") else 0
    for ids, texts, payloads in batches:
        put(ids, texts, payloads)
        done += len(ids)
        if tell is not None:
            tell(done, total)


def _json(payload: dict[str, Any] | None) -> str | None:
    if not payload:
        return None
    try:
        return json.dumps(payload, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LookalikeError(f"a payload is not JSON: {error}") from None


def _plain(value: Any) -> Any:
    made = plain(value)
    if made is value:
        raise TypeError(f"{type(value).__name__} is not a JSON value")
    return made


def _payload(text: str | None) -> dict[str, Any]:
    payload: dict[str, Any] = {} if text is None else json.loads(text)
    return payload


def _record(fields: tuple[str, bytes, str | None, str | None, int]) -> Record:
    id, signature, payload, text, time = fields
    when = datetime.fromtimestamp(time / 1000, tz=timezone.utc)
    return Record(id, np.frombuffer(signature, dtype=np.uint8), _payload(payload), text, when)
