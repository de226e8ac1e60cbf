"""Deduplication says what the program says."""

import csv
import json

import numpy as np
import pytest

from lookalike import LookalikeError, compare, dedup


def clusters_of(program, tmp_path, *arguments):
    path = tmp_path / "clusters.jsonl"
    program("dedup", *arguments, "--clusters", path)
    clusters = {}
    for line in path.open():
        member = json.loads(line)
        clusters.setdefault(member["cluster"], []).append(member)
    return list(clusters.values())


def check_same(result, theirs):
    assert [cluster.ids for cluster in result.clusters] == [[member["id"] for member in of] for of in theirs]
    near = {member["id"]: member for of in theirs for member in of}
    for removed in result.removed:
        member = near[removed.id]
        assert (removed.keeper, removed.distance) == (member["keeper"], member["distance"])
        assert removed.similarity == pytest.approx(member["similarity"], abs=1e-3)


@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("linkage", ["star", "components", "complete"])
def test_the_program_says_the_same(program, docs, tmp_path, similarity, linkage):
    theirs = clusters_of(program, tmp_path, "examples/docs.jsonl", "--similarity", similarity, "--linkage", linkage)
    check_same(dedup(docs, similarity, linkage=linkage), theirs)


def test_the_manual(program, manual, tmp_path):
    theirs = clusters_of(program, tmp_path, "examples/manual")
    result = dedup(manual)
    check_same(result, theirs)
    assert len(result.clusters) > 5


@pytest.mark.parametrize("keep", ["longest", "max:id", "min:id"])
def test_keepers(program, docs, tmp_path, keep):
    numbered = [{**document, "id": str(row)} for row, document in enumerate(docs)]
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in numbered))
    check_same(dedup(numbered, keep=keep), clusters_of(program, tmp_path, path, "--keep", keep))


def test_verify(program, docs, tmp_path):
    theirs = clusters_of(program, tmp_path, "examples/docs.jsonl", "--verify", "cosine:0.8")
    check_same(dedup(docs, verify="cosine:0.8"), theirs)


def test_other_thresholds_need_no_texts(docs):
    result = dedup((document for document in docs), 0.7)
    for similarity in [0.3, 0.5, 0.7, 0.85, 1.0]:
        again, anew = result.rethreshold(similarity), dedup(docs, similarity)
        np.testing.assert_array_equal(again.keepers, anew.keepers)
        np.testing.assert_array_equal(again.similarities, anew.similarities)
    near = result.rethreshold(radius=10)
    assert near.similarity is None and (near.distances <= 10).all()
    assert 0 < len(near.removed) < len(result.removed)
    with pytest.raises(LookalikeError, match="a similarity or a radius"):
        result.rethreshold()


def test_the_result(docs):
    result = dedup(docs)
    assert len(result) == len(docs) and len(result.kept) + len(result.removed) == len(docs)
    assert result.kept_ids == [docs[row]["id"] for row in result.kept]
    assert {row for cluster in result.clusters for row in cluster.rows[1:]} == {gone.row for gone in result.removed}
    least = result.least_similar(3)
    assert len(least) == 3 and least[0].similarity == min(gone.similarity for gone in result.removed)
    assert least == sorted(least, key=lambda gone: gone.similarity)
    assert "documents kept" in repr(result)


def tables(docs):
    columns = {"url": [d["id"] for d in docs], "body": [d["text"] for d in docs], "stars": [len(d["id"]) for d in docs]}
    yield [dict(zip(columns, row)) for row in zip(*columns.values())]
    for package, make in [
        ("pyarrow", lambda package: package.table(columns)),
        ("polars", lambda package: package.DataFrame(columns)),
        ("pandas", lambda package: package.DataFrame(columns)),
        ("datasets", lambda package: package.Dataset.from_dict(columns)),
        ("datasets", lambda package: package.Dataset.from_dict(columns).to_iterable_dataset()),
    ]:
        yield make(pytest.importorskip(package))


def test_documents_come_in_many_ways(docs):
    wanted = dedup(docs)
    starred = None
    for table in tables(docs):
        result = dedup(table, text="body", id="url")
        assert result.kept_ids == wanted.kept_ids, type(table)
        starred = starred or dedup(table, text="body", id="url", keep="max:stars").kept_ids
        assert dedup(table, text="body", id="url", keep="max:stars").kept_ids == starred
    texts = [document["text"] for document in docs]
    for plain in [texts, iter(texts), np.array(texts, dtype=object)]:
        np.testing.assert_array_equal(dedup(plain).kept, wanted.kept)
    assert dedup({document["id"]: document["text"] for document in docs}).kept_ids == wanted.kept_ids


def test_what_has_no_features_is_kept():
    result = dedup(["", None, "", "the same words here", "the same words here"])
    assert result.kept.tolist() == [0, 1, 2, 3] and result.signed.tolist() == [False] * 3 + [True] * 2
    assert len(dedup([])) == 0 and dedup([]).clusters == []


def test_what_is_wrong_is_said(docs):
    with pytest.raises(LookalikeError, match="similarity is 1.5"):
        dedup(docs, 1.5)
    with pytest.raises(LookalikeError, match="document 1 has no field `text`"):
        dedup([{"text": "a b c"}, {"body": "a"}])
    with pytest.raises(LookalikeError, match="no document has a field `stars`"):
        dedup(docs, keep="max:stars")
    with pytest.raises(LookalikeError, match="keepers are chosen by"):
        dedup(docs, keep="best")
    with pytest.raises(LookalikeError, match="no field `stars`"):
        dedup(["a b c"], keep="max:stars")
    with pytest.raises(LookalikeError, match="linkage"):
        dedup(docs, linkage="loose")
    pandas = pytest.importorskip("pandas")
    with pytest.raises(LookalikeError, match="no column `text`; there are a, b"):
        dedup(pandas.DataFrame({"a": ["x"], "b": ["y"]}))


def test_progress_is_told(docs):
    told = []
    dedup(docs, progress=lambda done, total: told.append((done, total)))
    assert (len(docs), len(docs)) in told


def test_two_texts(program, docs):
    a, b = docs[0]["text"], docs[0]["text"] + " And some more words at the end."
    said = compare(a, b)
    assert said.bits == 256 and 0 < said.distance < 60 and 0.9 < said.jaccard < 1 and said.only_a <= 1
    assert "".join(text for side, text in said.words if side != "b") == a
    assert "".join(text for side, text in said.words if side != "a") == b
    assert compare(a, "").distance is None and compare(a, "").jaccard is None
    assert compare(a, a, "minhash-256").similarity == 1


def test_the_program_compares_alike(program, tmp_path):
    a, b = "examples/stories/harbour.txt", "examples/stories/harbour-later.txt"
    theirs = json.loads(program("compare", a, b, "--format", "json"))
    from conftest import ROOT

    ours = compare((ROOT / a).read_text(), (ROOT / b).read_text())
    assert theirs["distance"] == ours.distance
    assert theirs["jaccard"] == pytest.approx(ours.jaccard, abs=1e-3)


def test_whole_numbers_are_preferred_as_they_are_written():
    text = "the same text of some more words than a few, so that it has features"
    documents = [{"text": text, "stars": 3}, {"text": text, "stars": 7}, {"text": text, "stars": 7.5}]
    assert [dedup(documents, keep=f"prefer:stars={stars}").kept.tolist() for stars in (3, 7, 7.5)] == [[0], [1], [2]]


@pytest.mark.parametrize("similarity", [0.5, 0.7])
def test_all_pairs_are_those_of_the_program(program, docs, tmp_path, similarity):
    path = tmp_path / "pairs.csv"
    program("dedup", "examples/docs.jsonl", "--similarity", similarity, "--pairs", path)
    row_of = {document["id"]: row for row, document in enumerate(docs)}
    theirs = {}
    for line in csv.DictReader(path.open(newline="")):
        pair = tuple(sorted((row_of[line["id_a"]], row_of[line["id_b"]])))
        theirs[pair] = int(line["distance"]), pytest.approx(float(line["similarity"]), abs=1e-6)
    pairs = dedup(docs, similarity).pairs()
    listed = list(zip(pairs.rows_a.tolist(), pairs.rows_b.tolist()))
    assert listed == sorted(theirs)
    assert dict(zip(listed, zip(pairs.distances.tolist(), pairs.similarities.tolist()))) == theirs


def test_pairs_follow_the_threshold():
    page = "the harbour reopened on monday after a storm had closed it for two days and ferries run again"
    result = dedup([page, page, page.replace("ferries", "trains"), "potatoes are planted in spring"], 0.5)
    assert [tuple(pair) for pair in zip(*(of.tolist() for of in result.pairs()[:2]))] == [(0, 1), (0, 2), (1, 2)]
    assert result.rethreshold(0.95).pairs().rows_b.tolist() == [1]
    assert len(dedup([]).pairs().rows_a) == 0


def test_pairs_may_be_listed_at_once(docs):
    at_once, later = dedup(docs, 0.5, pairs=True), dedup(docs, 0.5)
    assert at_once.keepers.tolist() == later.keepers.tolist()
    assert [of.tolist() for of in at_once.pairs()] == [of.tolist() for of in later.pairs()]
    assert at_once.rethreshold(0.9).pairs().rows_a.tolist() == dedup(docs, 0.9).pairs().rows_a.tolist()


def test_sketches_that_are_too_many_for_memory_go_into_a_file():
    words = [f"w{i}" for i in range(2000)]
    texts = [" ".join(words[i % 7 :] + [str(i // 2)]) for i in range(20)] * 100
    texts += [" ".join(f"{i} {word}" for word in words) for i in range(6000)]
    result = dedup(texts, 0.9)
    few = dedup(texts[:2000], 0.9)
    assert result.keepers[:2000].tolist() == few.keepers.tolist()
    assert result.kept.tolist() == few.kept.tolist() + list(range(2000, 8000))
