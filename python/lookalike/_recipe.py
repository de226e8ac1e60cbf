"""Recipes: everything between a text and its signature."""

from __future__ import annotations

import json
import os
from typing import Any, Union

from . import _engine

Path = Union[str, "os.PathLike[str]"]


class Recipe:
    """Everything that turns a text into a signature, as one value.

    >>> recipe = Recipe("text")
    >>> recipe.bits, recipe.kind
    (256, 'simhash')
    >>> Recipe.from_json('{"name": "short", "signature": {"kind": "simhash", "bits": 64}}').bits
    64

    Two recipes are equal if they make the same signatures; a name is only a name. What JSON does not say is as in recipe
    `text`. Recipes that have names: `Recipe.names()`.
    """

    __slots__ = ("_native",)
    _native: _engine.Recipe

    def __init__(self, name: str = "text") -> None:
        self._native = _engine.Recipe.named(name)

    @classmethod
    def _of(cls, native: _engine.Recipe) -> Recipe:
        recipe = cls.__new__(cls)
        recipe._native = native
        return recipe

    @classmethod
    def from_json(cls, recipe: str | dict[str, Any]) -> Recipe:
        """A recipe as its JSON says, or a dict of the same."""
        text = recipe if isinstance(recipe, str) else json.dumps(recipe)
        return cls._of(_engine.Recipe.from_json(text))

    @classmethod
    def read(cls, path: Path) -> Recipe:
        """A recipe from its JSON file."""
        return cls._of(_engine.Recipe.read(path))

    @staticmethod
    def names() -> dict[str, str]:
        """The recipes that have names, with a line about each."""
        return dict(_engine.Recipe.names())

    @property
    def name(self) -> str:
        """A name for people."""
        return self._native.name

    @property
    def bits(self) -> int:
        """The width of the signatures."""
        return self._native.bits

    @property
    def kind(self) -> str:
        """How features become bits: simhash, topsig or minhash."""
        return self._native.kind

    @property
    def hash(self) -> str:
        """A hash of all that the recipe says but its name: that of equal recipes is the same."""
        return self._native.hash

    def to_json(self) -> str:
        """The recipe as it is stored beside signatures."""
        return self._native.json

    def similarity(self, distance: int) -> float:
        """How alike texts are whose signatures are so many bits apart, from 0 to 1: the cosine, or the Jaccard coefficient
        for minhash."""
        return self._native.similarity(distance)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"Recipe({self.name!r}, bits={self.bits}, hash={self.hash!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Recipe.from_json, (self.to_json(),)


def native_recipe(recipe: str | Recipe) -> _engine.Recipe:
    """What was given as a recipe."""
    return recipe._native if isinstance(recipe, Recipe) else _engine.Recipe.named(recipe)


def known_recipe(native: _engine.Recipe | None) -> Recipe | None:
    """The recipe of something that may not have one."""
    return None if native is None else Recipe._of(native)
