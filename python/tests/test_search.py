"""Indexes and joins agree with a naive scan, and with FAISS."""

import numpy as np
import pytest

import lookalike
from conftest import clustered, distances_of
from lookalike import Index, LookalikeError, Signatures, join, sign


@pytest.fixture(scope="module", params=[64, 72, 256])
def rows(request):
    return clustered(3000, request.param)


@pytest.fixture(scope="module")
def naive(rows):
    return distances_of(rows[:100], rows)


def answers(lims, distances, ids):
    return [list(zip(distances[a:b].tolist(), ids[a:b].tolist())) for a, b in zip(lims, lims[1:])]


@pytest.mark.parametrize("kind", ["auto", "scan", "multi", "pieces", "blocks", "multi-3"])
@pytest.mark.parametrize("radius", [0, 3, 12])
def test_all_within_a_radius(rows, naive, kind, radius):
    index = Index.build(rows, kind, radius=3)
    found = answers(*index.range_search(rows[:100], radius))
    for query, near in enumerate(found):
        wanted = sorted((int(naive[query, row]), int(row)) for row in np.flatnonzero(naive[query] <= radius))
        assert near == wanted
    assert index.exact and len(index) == len(rows)


@pytest.mark.parametrize("kind", ["scan", "multi", "blocks"])
def test_the_nearest(rows, naive, kind):
    distances, ids = Index.build(rows, kind).search(rows[:100], 7)
    for query in range(100):
        wanted = sorted(zip(naive[query].tolist(), range(len(rows))))[:7]
        assert list(zip(distances[query].tolist(), ids[query].tolist())) == wanted
    assert distances.dtype == np.int32 and ids.dtype == np.int64


@pytest.mark.parametrize("kind", ["scan", "multi"])
def test_the_first(rows, naive, kind):
    index = Index.build(rows, kind)
    queries = rows[:100].copy()
    queries[::2] ^= 0x55
    distances, ids = index.first(queries, 2)
    truth = distances_of(queries, rows)
    for query, (distance, row) in enumerate(zip(distances, ids)):
        assert (row == -1) == (truth[query].min() > 2)
        assert row == -1 or truth[query, row] == distance <= 2


def test_faiss_agrees(rows):
    faiss = pytest.importorskip("faiss")
    bits = rows.shape[1] * 8
    theirs = faiss.IndexBinaryFlat(bits)
    theirs.add(rows)
    for radius in [0, 3, 9]:
        # Theirs is a strict one.
        lims, distances, ids = theirs.range_search(rows[:200], radius + 1)
        wanted = [sorted(of) for of in answers(lims.astype(np.int64), distances.astype(np.int32), ids)]
        assert answers(*Index.build(rows).range_search(rows[:200], radius)) == wanted
    wanted = np.sort(theirs.search(rows[:50], 5)[0], axis=1)
    np.testing.assert_array_equal(Index.build(rows).search(rows[:50], 5)[0], wanted)


def test_a_big_index_is_planned():
    rows = clustered(20_000, 64)
    index = Index.build(rows, radius=3)
    wanted = Index.build(rows, "scan").range_search(rows[:500], 3)
    for got, want in zip(index.range_search(rows[:500], 3), wanted):
        np.testing.assert_array_equal(got, want)
    anything = Index.build(rows)
    assert anything.kind.startswith("multi") and anything.exact and anything.nbytes > 0
    np.testing.assert_array_equal(anything.range_search(rows[:500], 20)[2], Index.build(rows, "scan").range_search(rows[:500], 20)[2])


def test_a_graph_finds_most():
    rows = clustered(12_000, 256)
    with pytest.raises(LookalikeError, match="recall=0.95"):
        Index.build(rows, "graph")
    graph = Index.build(rows, "graph", recall=0.9)
    assert graph.kind.startswith("graph") and not graph.exact
    got, want = graph.search(rows[:200], 10)[0], Index.build(rows, "scan").search(rows[:200], 10)[0]
    assert (got == want).mean() > 0.85


def test_few_rows_and_none():
    empty = Index.build(np.zeros((0, 8), np.uint8))
    lims, distances, ids = empty.range_search(np.zeros((2, 8), np.uint8), 64)
    assert lims.tolist() == [0, 0, 0] and len(distances) == len(ids) == 0
    distances, ids = empty.search(np.zeros((2, 8), np.uint8), 3)
    assert (distances == -1).all() and (ids == -1).all()
    one = Index.build(np.zeros((1, 8), np.uint8))
    assert one.search(np.zeros((0, 8), np.uint8), 3)[0].shape == (0, 3)
    assert one.search(np.zeros((1, 8), np.uint8), 2)[1].tolist() == [[0, -1]]
    assert one.range_search(np.full((1, 8), 255, np.uint8), 1000)[1].tolist() == [64]


def test_index_files(program, tmp_path):
    rows = Signatures(clustered(12_000, 64), ids=[f"d{row}" for row in range(12_000)])
    index = Index.build(rows, "multi")
    index.save(tmp_path / "a.idx", rows)
    again = Index.open(tmp_path / "a.idx")
    assert again.kind == index.kind and again.ids[:2] == ["d0", "d1"]
    for got, want in zip(again.range_search(rows.array[:99], 5), index.range_search(rows, 5)):
        np.testing.assert_array_equal(got, want[: len(got)])
    program("build", tmp_path / "a.sig", "-o", tmp_path / "b.idx", "--index", "blocks", "--radius", "3")
    theirs = Index.open(tmp_path / "b.idx")
    assert theirs.kind.startswith("blocks")
    np.testing.assert_array_equal(theirs.range_search(rows, 3)[2], index.range_search(rows, 3)[2])
    np.testing.assert_array_equal(Index.open(tmp_path / "a.sig").search(rows, 2)[1], index.search(rows, 2)[1])
    with pytest.raises(LookalikeError, match="no index to be saved"):
        Index.build(rows, "scan").save(tmp_path / "c.idx", rows)


def test_queries_must_fit():
    index = Index.build(np.zeros((4, 32), np.uint8))
    with pytest.raises(LookalikeError, match=r"uint8 \(n, 32\) is wanted for 256 bits; this is \(n, 16\): 128 bits"):
        index.range_search(np.zeros((4, 16), np.uint8), 3)
    with pytest.raises(LookalikeError, match=r"uint8 \(n, 32\) is wanted for 256 bits; this is int64 \(n,\)"):
        index.search(np.zeros(4, np.int64), 3)
    with pytest.raises(LookalikeError, match=r"wanted for 256 bits; this is a list"):
        index.search([1, 2], 3)
    made = sign(["some words of a text"])
    with pytest.raises(LookalikeError, match="recipe `minhash-256`.* do not go with .*recipe `text`"):
        Index.build(made).range_search(sign(["some words of a text"], "minhash-256"), 3)
    with pytest.raises(LookalikeError, match="there is no index `best`"):
        Index.build(made, "best")
    with pytest.raises(LookalikeError, match="a share above 0"):
        Index.build(made, recall=2)


@pytest.mark.parametrize("radius", [0, 3, 10])
def test_joins(rows, radius):
    rows = rows[:800]
    truth = distances_of(rows, rows)
    a, b, distance = join(rows, radius)
    wanted = np.argwhere(np.triu(truth <= radius, 1))
    np.testing.assert_array_equal(np.stack([a, b], axis=1), wanted)
    np.testing.assert_array_equal(distance, truth[a, b])
    a, b, distance = join(rows[:300], radius, rows[300:])
    np.testing.assert_array_equal(np.stack([a, b], axis=1), np.argwhere(truth[:300, 300:] <= radius))
    np.testing.assert_array_equal(distance, truth[:300, 300:][a, b])


def test_joins_have_bounds():
    with pytest.raises(LookalikeError, match="more than the 10 that are allowed"):
        join(np.zeros((100, 8), np.uint8), 0, most_pairs=10)
    with pytest.raises(LookalikeError, match="64 bits; this is .*72 bits"):
        join(np.zeros((3, 8), np.uint8), 0, np.zeros((3, 9), np.uint8))


def test_similarity_follows_from_the_distance():
    assert lookalike.Recipe("text").similarity(0) == 1
    assert lookalike.Recipe("minhash-256").similarity(32) == 0.75
    assert Signatures(np.zeros((1, 8), np.uint8)).similarity(16) == 0.75
