"""How a user's code looks to a type checker. It is checked, not run."""

import numpy as np
from numpy.typing import NDArray

import lookalike


def near(texts: list[str]) -> list[tuple[int, int]]:
    signatures = lookalike.sign(texts, lookalike.Recipe("text"), progress=True)
    array: NDArray[np.uint8] = signatures.array
    index = lookalike.Index.build(array, "multi", radius=3)
    lims, distances, ids = index.range_search(signatures, 3, progress=lambda done, total: None)
    first: NDArray[np.int64] = ids[lims[0] : lims[1]]
    a, b, _ = lookalike.join(signatures, 3)
    return [(int(x), int(y)) for x, y in zip(a, b)] + [(0, int(row)) for row in first]


def kept(rows: list[dict[str, str]]) -> float | None:
    result = lookalike.dedup(rows, 0.8, keep="longest").rethreshold(0.9)
    with lookalike.Collection.open("news") as news:
        one: list[lookalike.Hit] = news.search("a text", radius=3)
        record: lookalike.Record | None = news.get("a")
        many: list[lookalike.Record | None] = news.get(["a"])
    assert one and record and many
    return lookalike.compare("a", "b").jaccard or result.least_similar(1)[0].similarity
