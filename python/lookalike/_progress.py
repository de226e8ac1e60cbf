"""How far a long call is: a bar of tqdm, or whatever the caller wants to do with two numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

Progress = Union[None, bool, Callable[[int, Union[int, None]], object], type]
"""`True` for a bar of tqdm, if it is installed; a class that is used as tqdm is; or a function of what is done and of all,
which is None as long as nobody knows."""

Tell = Callable[[int, int], None]


@contextmanager
def telling(progress: Progress, what: str) -> Iterator[Tell | None]:
    """What the engine calls with how many are done, and of how many: 0 if that is not known."""
    if progress is True:
        progress = _tqdm()
    if progress is None or progress is False:
        yield None
    elif isinstance(progress, type):
        bar = progress(total=None, desc=what)
        try:
            yield lambda done, total: _show(bar, done, total)
        finally:
            bar.close()
    else:
        yield _calling(progress)


def _calling(progress: Any) -> Tell:
    def tell(done: int, total: int) -> None:
        progress(done, total or None)

    return tell


def _show(bar: Any, done: int, total: int) -> None:
    if total and bar.total != total:
        # Another stage: its numbers begin again.
        bar.reset(total=total)
    bar.update(done - bar.n)


def _tqdm() -> type | None:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    found: type = tqdm
    return found
