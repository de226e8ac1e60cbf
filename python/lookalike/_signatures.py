"""Signatures, how they are made, and which of them are near each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _engine
from ._errors import LookalikeError
from ._inputs import texts_of
from ._progress import Progress, telling
from ._recipe import Path, Recipe, known_recipe, native_recipe


class Signatures:
    """Signatures of one width, a row each: `uint8 (n, bits/8)`, bits in the order of `numpy.packbits`.

    >>> import numpy as np
    >>> rows = Signatures(np.packbits(np.eye(4, 64, dtype=bool), axis=1))
    >>> len(rows), rows.bits, rows.array.shape
    (4, 64, (4, 8))

    An array is not copied if it is contiguous; it must not be changed as long as the signatures are used.
    """

    __slots__ = ("_native", "_ids")
    _native: _engine.Signatures
    _ids: list[str] | None

    def __init__(
        self,
        array: NDArray[np.uint8],
        *,
        recipe: str | Recipe | None = None,
        ids: Iterable[Any] | None = None,
    ) -> None:
        native = None if recipe is None else native_recipe(recipe)
        wanted = None if native is None else native.bits
        self._native = _engine.Signatures.from_array(_checked(array, wanted), native)
        self._ids = None if ids is None else [str(id) for id in ids]
        if self._ids is not None and len(self._ids) != len(self):
            raise LookalikeError(f"{len(self._ids)} ids for {len(self)} signatures")

    @classmethod
    def _of(cls, native: _engine.Signatures) -> Signatures:
        signatures = cls.__new__(cls)
        signatures._native = native
        signatures._ids = None
        return signatures

    @classmethod
    def open(cls, path: Path) -> Signatures:
        """The signatures of a file: `.sig`, which is mapped, `.npy` or `.hex`."""
        return cls._of(_engine.Signatures.open(path))

    def save(self, path: Path) -> None:
        """Writes the rows that have a signature: as `.npy` if the name ends so, otherwise as `.sig`, with recipe, ids and
        margins. If rows are left out and there are no ids, the numbers of the rows become ids."""
        ids = self.ids
        if ids is None and not self.signed.all():
            ids = [str(row) for row in range(len(self))]
        self._native.save(path, ids)

    @property
    def array(self) -> NDArray[np.uint8]:
        """`uint8 (n, bits/8)`, to be read. Rows without a signature are zero. It is what was given or signed; only those of
        a file are converted, once."""
        view: NDArray[np.uint8] = self._native.array.view()
        view.flags.writeable = False
        return view

    @property
    def signed(self) -> NDArray[np.bool_]:
        """Which rows have a signature: texts with too few features have none, and are near nothing."""
        signed = self._native.signed
        return np.ones(len(self), dtype=bool) if signed is None else signed

    @property
    def margins(self) -> NDArray[np.uint8] | None:
        """How weak each bit is: `uint8 (n, bits)`, if they were asked for."""
        return self._native.margins

    @property
    def bits(self) -> int:
        """The width."""
        return self._native.bits

    @property
    def recipe(self) -> Recipe | None:
        """What made them, if it is known."""
        return known_recipe(self._native.recipe)

    @property
    def ids(self) -> list[str] | None:
        """The ids of the rows, if they have any."""
        return self._native.ids if self._ids is None else self._ids

    def similarity(self, distance: int) -> float:
        """How alike texts are whose signatures are so many bits apart, from 0 to 1."""
        return self._native.similarity(distance)

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        recipe = self.recipe
        made = "" if recipe is None else f", recipe={recipe.name!r}"
        return f"<Signatures: {len(self)} of {self.bits} bits{made}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.array if dtype is None else self.array.astype(dtype, copy=False)
        return array.copy() if copy else array


def _checked(array: Any, bits: int | None) -> NDArray[np.uint8]:
    """An array of signatures, contiguous; an error that says what is wanted."""
    wanted = "uint8 (n, bits/8) is wanted" if bits is None else f"uint8 (n, {bits // 8}) is wanted for {bits} bits"
    if not isinstance(array, np.ndarray):
        raise LookalikeError(f"{wanted}; this is a {type(array).__name__}")
    if array.dtype == np.bool_:
        raise LookalikeError(f"{wanted}; these are booleans: pack them with numpy.packbits(x, axis=1)")
    if array.dtype != np.uint8 or array.ndim != 2:
        shape = ", ".join("n" if axis == 0 else str(size) for axis, size in enumerate(array.shape))
        raise LookalikeError(f"{wanted}; this is {array.dtype} ({shape}{',' if array.ndim == 1 else ''})")
    if bits is not None and array.shape[1] * 8 != bits:
        raise LookalikeError(f"{wanted}; this is (n, {array.shape[1]}): {array.shape[1] * 8} bits")
    return np.ascontiguousarray(array)


def native_signatures(signatures: Signatures | NDArray[np.uint8], bits: int | None = None) -> _engine.Signatures:
    """What was given as signatures."""
    if isinstance(signatures, Signatures):
        return signatures._native
    return _engine.Signatures.from_array(_checked(signatures, bits), None)


def sign(
    texts: Any,
    recipe: str | Recipe = "text",
    *,
    margins: bool = False,
    ids: Iterable[Any] | None = None,
    terms: Path | None = None,
    progress: Progress = None,
) -> Signatures:
    """Signs texts on all cores.

    >>> texts = ["The harbour reopened on Monday after a storm had closed it.", "", None]
    >>> signatures = sign(texts)
    >>> signatures.array.shape
    (3, 32)
    >>> signatures.signed.tolist()
    [True, False, False]

    `texts` is a list, an iterator, an array of numpy, or an Arrow column: of pyarrow, polars, pandas or datasets, which are
    read where they are. A text without enough features has no signature, and `None` is such a text: row `i` is always text `i`.
    `terms` is the file of the statistics that recipes such as `topsig-1024` weigh by.
    """
    with telling(progress, "sign") as tell:
        native = _engine.sign(texts_of(texts), native_recipe(recipe), margins, terms, tell)
    signatures = Signatures._of(native)
    if ids is not None:
        signatures._ids = [str(id) for id in ids]
        if len(signatures._ids) != len(signatures):
            raise LookalikeError(f"{len(signatures._ids)} ids for {len(signatures)} texts")
    return signatures


def join(
    signatures: Signatures | NDArray[np.uint8],
    radius: int,
    other: Signatures | NDArray[np.uint8] | None = None,
    *,
    recall: float = 1.0,
    most_pairs: int = 1_000_000_000,
    memory: int = 2 << 30,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """All pairs of rows at most `radius` bits apart: their rows `a` and `b`, and their distances, in the order of the rows.

    >>> import numpy as np
    >>> rows = np.packbits(np.eye(3, 64, dtype=bool), axis=1)
    >>> a, b, distance = join(rows, radius=2)
    >>> a.tolist(), b.tolist(), distance.tolist()
    ([0, 0, 1], [1, 2, 2], [2, 2, 2])

    Pairs are of one set, `a < b`, or with `other` of a row of each. With a recall below 1, wide radii take less time: that
    share of the pairs at the very radius is found, and more of the nearer ones.
    """
    first = native_signatures(signatures)
    second = None if other is None else native_signatures(other, first.bits)
    a, b, distance, _ = _engine.join(first, second, radius, recall, most_pairs, memory)
    return a, b, distance


def strings_of(ids: Sequence[Any]) -> list[str]:
    """Ids as the engine has them."""
    return [id if isinstance(id, str) else str(id) for id in ids]
