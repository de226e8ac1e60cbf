"""On Spark, with executors in processes of their own, the same is found as without it."""

import itertools
import os
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import lookalike
import spark_corpus
from conftest import clustered
from lookalike import LookalikeError, Recipe, Signatures, join

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")
from lookalike import spark  # noqa: E402

SHORT = '{"name": "short", "signature": {"kind": "simhash", "bits": 64}}'


def frame(session, **columns):
    return session.createDataFrame(pa.table(columns))


def binary(rows):
    return pa.array([None if row is None else bytes(row) for row in rows], pa.binary())


def rows_of(frame, *names):
    """The rows of a DataFrame, in order: copies of a row stay."""
    columns = frame.select(*names).toArrow().to_pydict()
    return sorted(zip(*(columns[name] for name in names)))


def pairs_of(frame):
    assert frame.columns == ["id_a", "id_b", "distance"] and dict(frame.dtypes)["distance"] == "int"
    return rows_of(frame, "id_a", "id_b", "distance")


def wanted_pairs(ids, rows, radius, copies):
    """What the engine finds in one process."""
    order = sorted(range(len(ids)), key=lambda row: ids[row])
    ids, rows, pairs = [ids[row] for row in order], np.ascontiguousarray(rows[order]), []
    if copies == "star":
        firsts = {}
        for row, signature in enumerate(rows):
            first = firsts.setdefault(signature.tobytes(), row)
            if first != row:
                pairs.append((ids[first], ids[row], 0))
        ids, rows = [ids[row] for row in firsts.values()], np.ascontiguousarray(rows[list(firsts.values())])
    a, b, distance = join(rows, radius)
    found = zip(a.tolist(), b.tolist(), distance.tolist())
    return sorted(pairs + [(ids[x], ids[y], near) for x, y, near in found])


# The corpus, and what the program says of it.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spark")
    (folder / "short.json").write_text(SHORT)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def corpus():
    corpus = spark_corpus.made()
    assert len(corpus) > 60_000
    return corpus


@pytest.fixture(scope="module")
def small():
    """Few documents of each kind, but 500 copies of one."""
    return spark_corpus.made(flood=500, singles=1000, families=150, templates=2, of_template=120, small=150, seed=2)


@pytest.fixture(scope="module")
def stored(session, folder, corpus):
    path = str(corpus.write_parquet(folder / "corpus"))
    return lambda: session.read.parquet(path)


@pytest.fixture(scope="module")
def native(program, folder, corpus):
    """The file of signatures that the program makes."""
    lines = corpus.write_lines(folder / "corpus.jsonl")
    program("sign", lines, "--recipe", folder / "short.json", "-o", folder / "corpus.sig")
    return Signatures.open(folder / "corpus.sig")


@pytest.fixture(scope="module")
def signatures(session, folder, corpus, native):
    """The rows that the program signed, all others without a signature."""
    signed = dict(zip(native.ids, native.array))
    table = pa.table({"id": corpus.ids, "row": range(len(corpus)), "signature": binary(map(signed.get, corpus.ids))})
    path = str(spark_corpus.write_parquet(table, folder / "signatures"))
    return lambda: session.read.parquet(path)


@pytest.fixture(scope="module")
def native_star(program, folder, native):
    """Pairs of the first documents of each signature, found by the program, and each first one with its copies."""
    array, ids, firsts, pairs = native.array, native.ids, {}, []
    for row, signature in enumerate(array):
        first = firsts.setdefault(signature.tobytes(), row)
        if first != row:
            pairs.append((ids[first], ids[row], 0))
    firsts = list(firsts.values())
    Signatures(array[firsts], ids=[ids[row] for row in firsts]).save(folder / "firsts.sig")
    program("join", folder / "firsts.sig", "--radius", 3, "--exact", "-o", folder / "pairs.csv")
    lines = (folder / "pairs.csv").read_text().splitlines()
    assert lines[0] == "id_a,id_b,distance"
    near = [line.split(",") for line in lines[1:]]
    return sorted(pairs + [(a, b, int(distance)) for a, b, distance in near])


# Signatures.


@pytest.mark.parametrize("recipe", ["text", "web", "short", "minhash-256"])
def test_the_same_signatures(session, folder, small, recipe):
    recipe = Recipe.read(folder / "short.json") if recipe == "short" else recipe
    markup = [text and f"<p>{text} <b>&amp; more</b></p>" for text in small.texts]
    wanted = lookalike.sign(markup, recipe)
    wanted = [bytes(row) if signed else None for row, signed in zip(wanted.array, wanted.signed)]
    documents = frame(session, body=pa.array(markup, pa.string()), row=range(len(small)), other=small.ids)
    for partitions in [1, 7]:
        signed = spark.sign(documents.repartition(partitions), recipe, text="body", signature="bits")
        assert signed.columns == ["body", "row", "other", "bits"] and dict(signed.dtypes)["bits"] == "binary"
        rows = signed.toArrow().sort_by("row").to_pydict()
        assert rows["bits"] == wanted and rows["body"] == markup and rows["other"] == small.ids
    assert None in wanted


def test_signatures_need_texts(session):
    documents = frame(session, id=["a"], body=["some words"])
    with pytest.raises(LookalikeError, match="text"):
        spark.sign(documents)
    with pytest.raises(LookalikeError, match="term statistics"):
        spark.sign(documents, "topsig-1024", text="body")
    with pytest.raises(LookalikeError, match="recipe"):
        spark.sign(documents, "nothing", text="body")
    with pytest.raises(LookalikeError, match="array<string>"):
        spark.sign(frame(session, text=[["some", "words"]]))
    with pytest.raises(LookalikeError, match="already"):
        spark.sign(frame(session, text=["some words"], Signature=[1]))
    dotted = spark.sign(frame(session, **{"a.b": ["a text of words", None], "c": [1, 2]}), text="a.b")
    assert dotted.columns == ["a.b", "c", "signature"] and [row.c for row in dotted.collect()] == [1, 2]


def test_terms_weigh(session, program, folder, small):
    lines = small.write_lines(folder / "small.jsonl")
    program("terms", lines, "--recipe", "topsig-1024", "-o", folder / "small.terms")
    wanted = lookalike.sign(small.texts, "topsig-1024", terms=folder / "small.terms")
    documents = frame(session, row=range(len(small)), text=pa.array(small.texts, pa.string()))
    signed = spark.sign(documents.repartition(3), "topsig-1024", terms=str(folder / "small.terms")).toArrow().sort_by("row")
    assert signed["signature"].to_pylist() == [bytes(row) if has else None for row, has in zip(wanted.array, wanted.signed)]


# Pairs.


def test_the_pairs_of_the_program(stored, folder, native_star):
    signed = spark.sign(stored(), Recipe.read(folder / "short.json"))
    assert pairs_of(spark.pairs(signed, 3)) == native_star
    assert {near for _, _, near in native_star} == {0, 1, 2, 3} and len(native_star) > 40_000


def test_every_pair_of_a_flood(signatures, native):
    """The pairs of 20,000 copies are 200 million: counted and summed."""
    array, rows, step, wanted = native.array, np.array([int(id[1:]) for id in native.ids]), 3000, {}
    for start in range(0, len(rows), step):
        some, later = array[start : start + step], array[start + step :]
        slices = [(start, join(some, 3))] + ([(start + step, join(some, 3, later))] if len(later) else [])
        for other, (a, b, distance) in slices:
            for near, sums in spark_corpus.sums_of_arrays(rows[a + start], rows[b + other], distance).items():
                wanted[near] = wanted.get(near, 0) + sums
    found = spark_corpus.sums_of_frame(spark.pairs(signatures(), 3, id="row", copies="all"))
    assert {near: sums.tolist() for near, sums in found.items()} == {near: sums.tolist() for near, sums in wanted.items()}
    assert sorted(found) == [0, 1, 2, 3] and found[0][0] > 199_000_000


def test_every_pair_of_a_small_flood(session, folder, small):
    signed = lookalike.sign(small.texts, Recipe.read(folder / "short.json"))
    rows, ids = signed.array[signed.signed], np.array(small.ids, dtype=object)[signed.signed].tolist()
    bits = binary(row if has else None for row, has in zip(signed.array, signed.signed))
    documents = frame(session, id=small.ids, signature=bits).repartition(5)
    wanted = wanted_pairs(ids, rows, 3, "all")
    assert pairs_of(spark.pairs(documents, 3, copies="all")) == wanted
    assert len(wanted) > 500 * 499 / 2


@pytest.mark.parametrize("bits, radius", [(32, 2), (64, 0), (72, 4), (128, 6), (256, 10)])
def test_other_widths_and_radii(session, bits, radius):
    rows = clustered(2500, bits, seed=bits)
    random = np.random.default_rng(bits)
    # Strings in an order that is neither that of the rows nor that of UTF-16.
    letters = random.choice(["a", "Z", "é", "\uf900", "🙂"], len(rows))
    names = [f"{letter}{row}" for letter, row in zip(letters, random.permutation(len(rows)))]
    numbers = (random.permutation(len(rows)) - 1000).tolist()
    documents = frame(session, name=names, number=numbers, bits=binary(rows)).repartition(3)
    # Small buckets are cut; the pairs are the same.
    for id, ids, copies, bucket in [("number", numbers, "all", 50), ("name", names, "star", 8)]:
        wanted = wanted_pairs(ids, rows, radius, copies)
        assert pairs_of(spark.pairs(documents, radius, id=id, signature="bits", copies=copies, bucket=bucket)) == wanted
        assert len(wanted) > 200


def test_rows_that_agree_in_most_bits(session):
    """All are alike in all but a few bits, so that most keys tell nothing."""
    random = np.random.default_rng(5)
    rows = np.zeros((1500, 16), dtype=np.uint8)
    rows[:, [3, 11]] = random.integers(0, 256, (1500, 2))
    ids = list(range(len(rows)))
    wanted = wanted_pairs(ids, rows, 2, "all")
    documents = frame(session, id=ids, signature=binary(rows)).repartition(4)
    assert pairs_of(spark.pairs(documents, 2, copies="all", bucket=30)) == wanted


def test_too_many_candidates_are_refused(session):
    rows = clustered(2000, 64)
    documents = frame(session, id=range(len(rows)), signature=binary(rows))
    with pytest.raises(LookalikeError) as refused:
        spark.pairs(documents, 3, most_candidates=7)
    numbers = [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?(?:e\+?\d+)?", str(refused.value))]
    assert 7 in numbers and max(numbers) > 100 and "most_candidates" in str(refused.value)


def test_too_many_near_copies_are_refused(session):
    """Nothing tells them apart, so buckets cannot be cut."""
    rows = np.zeros((3000, 8), dtype=np.uint8)
    rows[:, 0], rows[:, 4] = np.arange(3000) % 64, np.arange(3000) // 64
    documents = frame(session, id=range(len(rows)), signature=binary(rows))
    with pytest.raises(LookalikeError, match="most_pairs") as refused:
        spark.pairs(documents, 12, bucket=1000, most_pairs=10**6)
    said = float(re.search(r"about ([\d.e+]+) pairs", str(refused.value))[1])
    assert said == pytest.approx(3000 * 2999 / 2, rel=0.2)
    assert spark.pairs(documents, 12, bucket=1000).count() == 3000 * 2999 / 2


def test_few_rows_and_none(session):
    row = b"12345678"
    schema = "id string, signature binary"
    for rows, copies in [([], "star"), ([("a", None)], "all"), ([("a", row), ("b", None)], "star")]:
        assert pairs_of(spark.pairs(session.createDataFrame(rows, schema), 3, copies=copies)) == []
    two = session.createDataFrame([("b", row), ("a", row), ("c", None)], schema)
    assert pairs_of(spark.pairs(two, 3)) == [("a", "b", 0)]
    assert pairs_of(spark.pairs(two, 64, copies="all")) == [("a", "b", 0)]


def test_what_is_wrong_with_rows_is_said(session):
    schema = "id string, signature binary"
    mixed = session.createDataFrame([("a", b"12345678"), ("b", b"1234"), ("c", b"12345678")], schema)
    with pytest.raises(LookalikeError, match="bits|bytes"):
        spark.pairs(mixed, 3).collect()
    fine = session.createDataFrame([("a", b"12345678"), ("b", b"12345678")], schema)
    with pytest.raises(LookalikeError, match="radius"):
        spark.pairs(fine, -1)
    with pytest.raises(LookalikeError, match="copies"):
        spark.pairs(fine, 3, copies="none")
    with pytest.raises(LookalikeError, match="bits"):
        spark.pairs(fine, 3, signature="bits")


def test_pairs_are_of_documents_with_ids(session):
    schema = "id string, signature binary"
    for ids, problem in [(["a", None], "without an id"), (["a", "a"], "more than once: 'a' \\(2 times\\)")]:
        with pytest.raises(LookalikeError, match=problem):
            spark.pairs(session.createDataFrame([(id, b"12345678") for id in ids], schema), 3)
    with pytest.raises(LookalikeError, match="whole number"):
        spark.pairs(session.createDataFrame([("a", b"12345678")], schema), 3.5)
    with pytest.raises(LookalikeError, match="string"):
        spark.pairs(session.createDataFrame([("a", "12345678")], "id string, signature string"), 3)


def test_near_copies_of_wide_signatures(session):
    """So wide a radius has too many keys to be cut by."""
    rows = np.repeat(clustered(1, 256), 200, axis=0)
    rows[:, 0] = np.arange(200)
    found = spark.pairs(frame(session, id=range(200), signature=binary(rows)), np.int64(40), bucket=100)
    assert found.count() == 200 * 199 / 2


# Clusters.


def components(pairs):
    """The least id of the component of each id, by union-find."""
    above = {}

    def root(id):
        while above.setdefault(id, id) != id:
            above[id] = above[above[id]]
            id = above[id]
        return id

    for a, b in pairs:
        a, b = root(a), root(b)
        above[max(a, b)] = min(a, b)
    return {id: root(id) for id in above}


def stars(pairs):
    """In the order of ids, each joins the first kept one that it is paired with."""
    near = {}
    for a, b in pairs:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    keepers = {}
    for id in sorted(near):
        kept = [other for other in near[id] if other < id and keepers[other] == other]
        keepers[id] = min(kept, default=id)
    return keepers


def graphs():
    """Pairs of numbers: a path, a star, cliques, two components that the last pair joins, and random graphs; each with numbers of
    its own, in a random order."""
    random = np.random.default_rng(3)
    path = [(node, node + 1) for node in range(2999)]
    star = [(700, leaf) for leaf in range(1500) if leaf != 700]
    cliques = [pair for first in range(0, 300, 30) for pair in itertools.combinations(range(first, first + 30), 2)]
    joined = [(node, node + 1) for node in range(99)] + [(node, node + 1) for node in range(100, 199)] + [(0, 199)]
    shapes = [path, star, cliques, joined]
    for nodes, edges in [(500, 200), (500, 300), (2000, 3000)]:
        shapes.append([(int(a), int(b)) for a, b in random.integers(0, nodes, (edges, 2)) if a != b])
    pairs, base = [], 0
    for shape in shapes:
        nodes = 1 + max(max(pair) for pair in shape)
        names = random.permutation(nodes) + base
        named = [(int(names[a]), int(names[b])) for a, b in shape]
        pairs += [(min(pair), max(pair)) for pair in named]
        base += nodes
    pairs = list(dict.fromkeys(pairs))
    return [pairs[row] for row in random.permutation(len(pairs))]


@pytest.mark.parametrize("kind", ["long", "string"])
def test_clusters_of_graphs(session, tmp_path, kind):
    pairs = graphs() if kind == "long" else [(f"{a:05}", f"{b:05}") for a, b in graphs()]
    found = session.createDataFrame(pairs, f"id_a {kind}, id_b {kind}").repartition(4)
    wanted = sorted(components(pairs).items())
    assert rows_of(spark.clusters(found), "id", "cluster") == wanted
    # In one process or in rounds over all of them, and with copies of pairs.
    distributed = spark.clusters(found.union(found.limit(1000)), work=str(tmp_path / "work"), in_one_process=0)
    assert rows_of(distributed, "id", "cluster") == wanted
    assert distributed.columns == ["id", "cluster"]
    for work, most in [(None, 10**9), (str(tmp_path / "stars"), 0)]:
        led = spark.clusters(found, linkage="star", work=work, in_one_process=most)
        assert rows_of(led, "id", "cluster") == sorted(stars(pairs).items())


def test_clusters_of_the_corpus(session, program, folder, native_star):
    found = frame(session, a=[a for a, _, _ in native_star], b=[b for _, b, _ in native_star])
    wanted = sorted(components([(a, b) for a, b, _ in native_star]).items())
    assert rows_of(spark.clusters(found, id_a="a", id_b="b"), "id", "cluster") == wanted
    distributed = spark.clusters(found, id_a="a", id_b="b", work=str(folder / "clusters"), in_one_process=0)
    assert rows_of(distributed, "id", "cluster") == wanted


@pytest.mark.parametrize("linkage", ["components", "star"])
def test_the_clusters_of_the_program(session, program, folder, native_star, linkage):
    (folder / "star.csv").write_text("id_a,id_b,distance\n" + "".join(f"{a},{b},{near}\n" for a, b, near in native_star))
    program("cluster", folder / "star.csv", "-o", folder / "clusters.csv", "--linkage", linkage)
    theirs = [tuple(line.split(",")[:2]) for line in (folder / "clusters.csv").read_text().splitlines()]
    found = frame(session, id_a=[a for a, _, _ in native_star], id_b=[b for _, b, _ in native_star])
    assert theirs[0] == ("id", "cluster")
    ours = rows_of(spark.clusters(found, linkage=linkage), "id", "cluster")
    sizes = {}
    for _, cluster in ours:
        sizes[cluster] = sizes.get(cluster, 0) + 1
    # A star may be all alone; the program does not tell of those.
    assert [row for row in ours if sizes[row[1]] > 1] == sorted(theirs[1:])


def test_clusters_of_nothing(session, tmp_path):
    none = session.createDataFrame([], "id_a string, id_b string")
    assert rows_of(spark.clusters(none), "id", "cluster") == []
    assert rows_of(spark.clusters(none, in_one_process=0, work=str(tmp_path / "none")), "id", "cluster") == []
    one = session.createDataFrame([("a", "b")], "id_a string, id_b string")
    assert rows_of(spark.clusters(one, linkage="star"), "id", "cluster") == [("a", "a"), ("b", "a")]
    with pytest.raises(LookalikeError, match="work"):
        spark.clusters(one, in_one_process=0)
    # Nobody is alike oneself alone.
    with_self = session.createDataFrame([(1, 1), (2, 3)], "id_a int, id_b long")
    for work, most in [(None, 10), (str(tmp_path / "self"), 0)]:
        assert rows_of(spark.clusters(with_self, work=work, in_one_process=most), "id", "cluster") == [(2, 2), (3, 2)]
    with pytest.raises(LookalikeError, match="missing"):
        spark.clusters(session.createDataFrame([("a", None)], "id_a string, id_b string"))
    with pytest.raises(LookalikeError, match="linkage"):
        spark.clusters(one, linkage="complete")


# Deduplication.


def check_dedup(result, wanted):
    """Kept, removed and clusters are those of the package in one process."""
    assert rows_of(result.kept, "id") == [(id,) for id in wanted.kept_ids]
    removed = [(gone.id, gone.keeper, gone.distance, np.float32(gone.similarity)) for gone in wanted.removed]
    assert result.removed.columns == ["id", "keeper", "distance", "similarity"]
    found = rows_of(result.removed, "id", "keeper", "distance", "similarity")
    assert [(*row[:3], np.float32(row[3])) for row in found] == removed
    clusters = {}
    for id, cluster, keeper, distance, similarity in rows_of(
        result.clusters, "id", "cluster", "keeper", "distance", "similarity"
    ):
        clusters.setdefault(cluster, []).append((id, keeper, distance, np.float32(similarity)))
    of = {gone[0]: gone for gone in removed}
    alone = [[of.get(id, (id, id, 0, np.float32(1))) for id in sorted(cluster.ids)] for cluster in wanted.clusters]
    assert sorted(clusters.values()) == sorted(alone)


def documents_of(session, corpus):
    text = pa.array(corpus.texts, pa.string())
    return frame(session, stars=corpus.stars, id=corpus.ids, text=text).repartition(5)


@pytest.mark.parametrize("similarity, linkage", [(None, "star"), (0.5, "star"), (0.9, "components")])
def test_the_same_documents_are_kept(session, small, similarity, linkage):
    documents = documents_of(session, small)
    result = spark.dedup(documents, similarity=similarity, linkage=linkage)
    check_dedup(result, lookalike.dedup(small.documents(), similarity or 0.7, linkage=linkage))
    assert result.kept.columns == documents.columns and isinstance(result.counts, dict)


def test_the_same_of_many_documents(session):
    """So many that not all are compared with all."""
    corpus = spark_corpus.made(flood=800, singles=9000, families=700, templates=3, of_template=300, small=300, seed=4)
    assert len(set(corpus.texts)) > 8192 + 2000
    result = spark.dedup(documents_of(session, corpus))
    check_dedup(result, lookalike.dedup(corpus.documents()))


@pytest.mark.parametrize("keep", ["longest", "max:stars", "newest:stars", "prefer:stars=7,3"])
def test_keepers(session, small, keep):
    check_dedup(spark.dedup(documents_of(session, small), keep=keep), lookalike.dedup(small.documents(), keep=keep))


def similarity_of(verify, a, b, recipe):
    said = lookalike.compare(a, b, recipe)
    containment = said.shared / max(1, said.shared + min(said.only_a, said.only_b))
    return {"jaccard": said.jaccard, "cosine": said.cosine, "containment": containment}[verify]


@pytest.mark.parametrize(
    "recipe, radius, verify, keep",
    [
        (None, 40, None, "first"),
        (None, 70, "jaccard:0.8", "first"),
        (None, 70, "containment:0.8", "max:stars"),
        (None, 60, "cosine:0.9", "first"),
        ("short", 6, "none", "min:stars"),
        ("minhash-256", 50, "jaccard:0.7", "first"),
    ],
)
def test_a_radius_and_a_check(session, folder, recipe, radius, verify, keep):
    corpus = spark_corpus.made(flood=20, singles=30, families=25, templates=1, of_template=20, small=12, seed=6)
    made_with = Recipe.read(folder / "short.json") if recipe == "short" else Recipe(recipe or "text")
    signed = lookalike.sign(corpus.texts, made_with)
    a, b, distance = join(signed, radius)
    kind, _, least = (verify or "none").partition(":")
    alike = {}
    for x, y, near in zip(a.tolist(), b.tolist(), distance.tolist()):
        similarity = None if kind == "none" else similarity_of(kind, corpus.texts[x], corpus.texts[y], made_with)
        if similarity is None or similarity >= float(least):
            alike[x, y] = alike[y, x] = (near, similarity)
    sign = {"first": 0, "max:stars": -1, "min:stars": 1}[keep]
    kept, removed = [], []
    for row in sorted(range(len(corpus)), key=lambda row: (sign * corpus.stars[row], row)):
        keeper = next((other for other in kept if (other, row) in alike), None)
        if keeper is None:
            kept.append(row)
        else:
            removed.append((corpus.ids[row], corpus.ids[keeper], *alike[keeper, row]))
    given = {} if recipe is None else {"recipe": made_with}
    result = spark.dedup(documents_of(session, corpus), radius, verify=verify, keep=keep, **given)
    assert rows_of(result.kept, "id") == sorted((corpus.ids[row],) for row in kept)
    found = rows_of(result.removed, "id", "keeper", "distance", "similarity")
    assert [row[:3] for row in found] == sorted(row[:3] for row in removed)
    if kind != "none":
        assert [row[3] for row in found] == pytest.approx([row[3] for row in sorted(removed)], abs=1e-6)
    assert len(removed) > 40


def test_what_is_alike(session, small):
    """The pairs of the entries: documents with the same features are one."""
    result = spark.dedup(documents_of(session, small), 30)
    signed = lookalike.sign(small.texts)
    ids = [id for id, has in zip(small.ids, signed.signed) if has]
    wanted = [pair for pair in wanted_pairs(ids, signed.array[signed.signed], 30, "star") if pair[2] > 0]
    found = [pair for pair in rows_of(result.pairs, "id_a", "id_b", "distance") if pair[2] > 0]
    assert found == wanted


def test_ids_are_names(session):
    for ids, problem in [(["a", "b", "a"], "twice|unique|more than once|same id"), (["a", None, "b"], "null|no id|without")]:
        documents = frame(session, id=ids, text=["one text", "another text", "a third text"])
        with pytest.raises(LookalikeError, match=problem):
            spark.dedup(documents)


def test_ids_are_numbers(session, small):
    text = pa.array(small.texts, pa.string())
    result = spark.dedup(frame(session, number=np.arange(len(small)) * 1000 - 5000, body=text), id="number", text="body")
    wanted = lookalike.dedup(small.texts)
    found = rows_of(result.removed, "id", "keeper")
    assert found == [(gone.row * 1000 - 5000, gone.keeper_row * 1000 - 5000) for gone in wanted.removed]


def test_no_documents(session):
    empty = session.createDataFrame([], "id string, text string")
    for result in [spark.dedup(empty), spark.dedup(empty, 3)]:
        assert result.kept.count() == result.removed.count() == result.clusters.count() == 0
    unsigned = session.createDataFrame([("a", ""), ("b", None)], "id string, text string")
    assert rows_of(spark.dedup(unsigned).kept, "id") == [("a",), ("b",)]


def test_what_is_wrong_is_said(session):
    documents = frame(session, id=["a", "b"], text=["one text", "another text"])
    for settings, problem in [
        ({"similarity": 1.5}, "similarity"),
        ({"radius": 3, "similarity": 0.7}, "radius"),
        ({"radius": -1}, "radius"),
        ({"radius": 3, "verify": "best:1"}, "verify|best"),
        ({"keep": "best"}, "keepers are chosen by"),
        ({"keep": "max:size"}, "size"),
        ({"linkage": "loose"}, "linkage"),
        ({"text": "body"}, "body"),
        ({"id": "name"}, "name"),
    ]:
        with pytest.raises(LookalikeError, match=problem):
            spark.dedup(documents, **settings)


# Stages that are kept.


def files_of(folder):
    """All files, and when they were written."""
    return {path: path.stat().st_mtime_ns for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def said_by(result):
    kept, removed = rows_of(result.kept, "id"), rows_of(result.removed, "id", "keeper", "distance", "similarity")
    return kept, removed, rows_of(result.clusters, "id", "cluster", "keeper", "distance", "similarity")


@pytest.fixture
def few(session, tmp_path):
    """Documents that are stored, so that another run finds the same ones."""
    corpus = spark_corpus.made(flood=50, singles=300, families=60, templates=1, of_template=50, small=60, seed=7)
    path = str(corpus.write_parquet(tmp_path / "few"))
    return session.read.parquet(path)


@pytest.mark.parametrize("settings", [{}, {"radius": 40, "verify": "jaccard:0.7", "linkage": "components"}])
def test_what_was_done_is_not_done_again(few, tmp_path, settings):
    work = str(tmp_path / "work")
    wanted = said_by(spark.dedup(few, **settings))
    assert said_by(spark.dedup(few, **settings, work=work)) == wanted
    before = files_of(work)
    assert said_by(spark.dedup(few, **settings, work=work)) == wanted
    assert files_of(work) == before and before


def test_other_settings_are_refused(session, few, tmp_path):
    work = str(tmp_path / "work")
    wanted = said_by(spark.dedup(few, 40, work=work))
    before = files_of(work)
    for settings, named in [
        ({"radius": 41}, "radius"),
        ({"radius": 40, "verify": "jaccard:0.9"}, "verify"),
        ({"radius": 40, "keep": "longest"}, "keep"),
        ({"radius": 40, "linkage": "components"}, "linkage"),
        ({"radius": 40, "recipe": "minhash-256"}, "recipe"),
        ({"similarity": 0.7}, "similarity|radius"),
    ]:
        with pytest.raises(LookalikeError, match=named):
            spark.dedup(few, **settings, work=work)
    with pytest.raises(LookalikeError, match="input|documents"):
        spark.dedup(few.limit(500), 40, work=work)
    changed = few.withColumn("text", few["text"].substr(1, 40))
    with pytest.raises(LookalikeError, match="input|documents"):
        spark.dedup(changed, 40, work=work)
    assert files_of(work) == before
    assert said_by(spark.dedup(few, 40, work=work)) == wanted


def test_another_input_is_refused(session, tmp_path):
    """Whatever it is that differs, and though it comes from no file."""
    texts = [f"the {number} lines of a text that is like others, but for number {number}" for number in range(20)]
    documents = frame(session, id=range(20), text=texts, _removed=range(20))
    # An address of a folder is written in another way if it has a blank in its name.
    documents.write.parquet(str(tmp_path / "a folder"))
    stored = session.read.parquet(str(tmp_path / "a folder"))
    for number, first in enumerate([documents, stored]):
        work = str(tmp_path / f"work {number}")
        assert said_by(spark.dedup(first, 40, work=work)) == said_by(spark.dedup(first, 40, work=work))
        with pytest.raises(LookalikeError, match="input's"):
            spark.dedup(frame(session, id=range(20), text=texts[::-1], _removed=range(20)), 40, work=work)
    work = str(tmp_path / "pairs")
    spark.pairs(spark.sign(documents), 60, work=work)
    with pytest.raises(LookalikeError, match="input's content"):
        spark.pairs(spark.sign(documents, "minhash-256"), 60, work=work)
    work = str(tmp_path / "clusters")
    spark.clusters(frame(session, id_a=["a", "c"], id_b=["b", "d"]), work=work)
    with pytest.raises(LookalikeError, match="input's content"):
        spark.clusters(frame(session, id_a=["a", "c"], id_b=["d", "b"]), work=work)


def marks_of(work, suffix):
    """The files that say that a stage is complete, or what is known of it."""
    return sorted(path for path in work.iterdir() if path.suffix == suffix and not path.name.startswith("."))


def test_a_stage_that_was_interrupted_is_done_again(few, tmp_path):
    work = tmp_path / "work"
    wanted = said_by(spark.dedup(few, 40, work=str(work)))
    marks = marks_of(work, ".done")
    assert len(marks) >= 4
    for gone in [marks[1:2], marks]:
        # As if it had ended before they were complete: a part of them is there.
        for mark in gone:
            mark.unlink()
            for part in sorted(mark.with_suffix("").glob("part-*"))[1:]:
                part.unlink()
        assert said_by(spark.dedup(few, 40, work=str(work))) == wanted
    assert marks_of(work, ".done") == marks


def test_parts_that_are_lost_are_made_again(few, tmp_path):
    work = tmp_path / "work"
    wanted = said_by(spark.dedup(few, 40, work=str(work)))
    marks = marks_of(work, ".done")
    assert len(marks) >= 4
    for mark in marks:
        sorted(mark.with_suffix("").glob("part-*"))[-1].unlink()
    assert said_by(spark.dedup(few, 40, work=str(work))) == wanted


@pytest.mark.parametrize("suffix", [".done", ".json"])
def test_a_damaged_mark_is_not_believed(few, tmp_path, suffix):
    work = tmp_path / "work"
    wanted = said_by(spark.dedup(few, 40, work=str(work)))
    marks = [mark for mark in marks_of(work, suffix) if mark.name != "plan.json"]
    assert len(marks) >= 2
    for number, mark in enumerate(marks):
        whole = mark.read_bytes()
        mark.write_bytes([whole[: len(whole) // 2], b"", b"{}"][number % 3])
        # Files have sums beside them here, but not everywhere.
        if number % 2 == 0:
            mark.with_name(f".{mark.name}.crc").unlink(missing_ok=True)
    assert said_by(spark.dedup(few, 40, work=str(work))) == wanted


def test_a_damaged_plan_is_refused(few, tmp_path):
    work = tmp_path / "work"
    spark.dedup(few, 40, work=str(work))
    for damaged in [b"", b"[]", (work / "plan.json").read_bytes()[:20]]:
        (work / "plan.json").write_bytes(damaged)
        with pytest.raises(LookalikeError, match="damaged"):
            spark.dedup(few, 40, work=str(work))


def test_pairs_and_clusters_keep_their_stages(session, signatures, tmp_path):
    few = signatures().where("row % 20 = 0")
    wanted = pairs_of(spark.pairs(few, 3))
    for _ in range(2):
        assert pairs_of(spark.pairs(few, 3, work=str(tmp_path / "pairs"))) == wanted
    with pytest.raises(LookalikeError, match="radius"):
        spark.pairs(few, 4, work=str(tmp_path / "pairs"))
    found = session.createDataFrame([(a, b) for a, b, _ in wanted], "id_a string, id_b string")
    wanted = rows_of(spark.clusters(found), "id", "cluster")
    for _ in range(2):
        clusters = spark.clusters(found, in_one_process=0, work=str(tmp_path / "clusters"))
        assert rows_of(clusters, "id", "cluster") == wanted
    with pytest.raises(LookalikeError, match="input|pairs"):
        spark.clusters(found.limit(5), in_one_process=0, work=str(tmp_path / "clusters"))


# Executors that die.


def executors_of(session):
    """The processes of the executors: children of the one that drives them."""
    driver, found = session.sparkContext._gateway.proc.pid, []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
            if parent == driver and b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes():
                found.append(int(process))
        except OSError:
            pass
    return sorted(found)


def executors_known(session):
    """Those that Spark counts on, by their numbers."""
    return set(re.findall(r"\d+", session._jsc.sc().getExecutorIds().toString()))


def are_busy(session):
    """Whether tasks are running."""
    return any(info.numRunningTasks() for info in session._jsc.sc().statusTracker().getExecutorInfos())


def wait_for(what, patience=60):
    end = time.monotonic() + patience
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def interrupted(session, job, kills):
    """What a job says while executors are killed: one as soon as they are busy, and others some stages later."""
    said = []

    def run():
        try:
            said.append(job())
        except BaseException as error:
            said.append(error)

    wait_for(lambda: len(executors_of(session)) == len(executors_known(session)) == 2)
    before, killed, thread = executors_known(session), [], threading.Thread(target=run)
    thread.start()
    tracker, after = session.sparkContext.statusTracker(), -1
    while thread.is_alive() and len(killed) < kills:
        stages = tracker.getActiveStageIds()
        if stages and max(stages) > after and are_busy(session) and len(executors_of(session)) == 2:
            process = executors_of(session)[0]
            os.kill(process, signal.SIGKILL)
            killed.append(process)
            after = max(stages) + 2
        time.sleep(0.01)
    thread.join()
    # It was really lost, and another one took its place.
    assert killed
    wait_for(lambda: len(executors_of(session)) == len(executors_known(session)) == 2)
    assert len(executors_known(session) - before) >= 1 and not set(killed) & set(executors_of(session))
    if isinstance(said[0], BaseException):
        raise said[0]
    return said[0]


def test_pairs_survive_executors(session, stored, folder, native_star):
    def job():
        return pairs_of(spark.pairs(spark.sign(stored(), Recipe.read(folder / "short.json")), 3))

    assert interrupted(session, job, 2) == native_star


def test_deduplication_survives_executors(session, stored, corpus, tmp_path):
    result = interrupted(session, lambda: spark.dedup(stored(), work=str(tmp_path / "work")), 1)
    check_dedup(result, lookalike.dedup(corpus.documents()))
