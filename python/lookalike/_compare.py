"""Two texts, looked at closely."""

from __future__ import annotations

from dataclasses import dataclass

from . import _engine
from ._recipe import Path, Recipe, native_recipe


@dataclass(frozen=True)
class Comparison:
    """How alike two texts are."""

    distance: int | None
    """How many bits their signatures differ in; None if one of them has none."""
    bits: int
    similarity: float | None
    """How alike they are by that distance."""
    jaccard: float | None
    """Features that both have, over features that either has."""
    cosine: float | None
    """The cosine of the angle between their weighted features."""
    shared: int
    """Distinct features that both have."""
    only_a: int
    only_b: int
    features: list[tuple[str, float, float]]
    """Features whose weights differ, with both weights, most different first."""
    words: list[tuple[str, str]]
    """Both texts in one: runs of words of `both`, of `a` or of `b`."""


def compare(a: str, b: str, recipe: str | Recipe = "text", *, terms: Path | None = None) -> Comparison:
    """Compares two texts, by their signatures and feature by feature.

    >>> said = compare("the old cat sat on the mat", "the young cat sat on the mat")
    >>> said.shared, said.only_a, said.only_b
    (3, 2, 2)
    >>> said.words
    [('both', 'the '), ('a', 'old'), ('b', 'young'), ('both', ' cat sat on the mat')]
    """
    native = native_recipe(recipe)
    said = _engine.compare(a, b, native, terms)
    distance = said["distance"]
    similarity = None if distance is None else native.similarity(distance)
    return Comparison(bits=native.bits, similarity=similarity, **said)
