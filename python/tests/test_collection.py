"""Collections agree with the program, on the same folders."""

import datetime
import json

import numpy as np
import pytest

import lookalike
from lookalike import Collection, FileError, LookalikeError, sign


@pytest.fixture
def news(tmp_path):
    with Collection.create(tmp_path / "news") as news:
        yield news


def story(id, text, **more):
    return {"id": id, "text": text, **more}


HARBOUR = "The harbour reopened on Monday after a storm had closed it for two days."
LATER = "The harbour reopened on Monday after the storm had closed it for two days."
POTATOES = "Potatoes are planted in spring, as soon as the ground can be worked."


def test_documents_come_and_go(news):
    done = news.add([story("a", HARBOUR, lang="en", stars=3), story("b", POTATOES), story("c", "")])
    assert (done.added, done.replaced, done.unsigned) == (2, 0, ["c"])
    assert len(news) == 2 and "a" in news and "c" not in news
    record = news.get("a")
    assert record.payload == {"lang": "en", "stars": 3} and record.text is None
    np.testing.assert_array_equal(record.signature, sign([HARBOUR]).array[0])
    assert abs(record.time - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=5)
    assert [found and found.id for found in news.get(["b", "x"])] == ["b", None]
    with pytest.raises(LookalikeError, match="`a` is in the collection already"):
        news.add([story("a", HARBOUR)])
    assert news.upsert([story("a", POTATOES)]).replaced == 1
    assert news.remove("a") == 1 and news.remove(["a", "b"]) == 1 and len(news) == 0


def test_searches(news):
    news.add([story("a", HARBOUR, lang="en"), story("b", LATER, lang="de"), story("c", POTATOES, lang="en")])
    assert [hit.id for hit in news.search(HARBOUR, radius=80)] == ["a", "b"]
    assert [hit.id for hit in news.search(HARBOUR, radius=80, filter='lang = "de"')] == ["b"]
    assert [hit.id for hit in news.search(LATER, nearest=1)] == ["b"]
    assert [hit.id for hit in news.search(LATER, nearest=2, filter='lang = "en"')] == ["a", "c"]
    assert [[hit.id for hit in of] for of in news.search([POTATOES, "", HARBOUR], first=0)] == [["c"], [], ["a"]]
    hits = news.search(sign([HARBOUR]), radius=256, limit=2)[0]
    assert len(hits) == 2 and hits[0].similarity == 1 and hits[0].payload == {"lang": "en"}
    for wrong in [{}, {"radius": 1, "nearest": 2}]:
        with pytest.raises(LookalikeError, match="one question"):
            news.search(HARBOUR, **wrong)
    with pytest.raises(LookalikeError, match="filter"):
        news.search(HARBOUR, radius=3, filter="lang = = 3")


def test_filters_apply_before_the_nearest_are_counted(news):
    news.add([story(f"d{i}", HARBOUR + " once more" * i, even=i % 2 == 0) for i in range(20)])
    hits = news.search(HARBOUR, nearest=5, filter="even = true")
    assert len(hits) == 5 and all(hit.payload["even"] for hit in hits)


def test_seen_or_add(news):
    news.add([story("a", HARBOUR)])
    seen = news.seen_or_add([story("b", LATER), story("c", POTATOES), story("d", POTATOES), story("e", "")], radius=80)
    assert [(s.id, s.added, s.lookalike) for s in seen] == [
        ("b", False, "a"), ("c", True, None), ("d", False, "c"), ("e", False, None),
    ]  # fmt: skip
    assert len(news) == 2


def test_clusters(news):
    news.add([story("a", HARBOUR), story("b", POTATOES), story("c", LATER), story("d", HARBOUR)])
    assert [cluster.ids for cluster in news.clusters(80)] == [["a", "c", "d"]]
    assert news.clusters(80)[0].farthest > 0


def test_the_program_sees_the_same(program, docs, tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    with Collection.create(ours, texts=True) as collection:
        collection.add(docs)
    program("create", theirs, "--recipe", "text", "--keep-text")
    program("add", theirs, "examples/docs.jsonl")
    exported = [program("export", folder, "-o", tmp_path / "x.jsonl") or (tmp_path / "x.jsonl").read_text() for folder in (ours, theirs)]
    ids = [[json.loads(line)["id"] for line in text.splitlines()] for text in exported]
    assert ids[0] == ids[1] and len(ids[0]) == len(docs)
    with Collection.open(theirs, read_only=True) as collection:
        assert len(collection) == len(docs) and collection.recipe == lookalike.Recipe("text")
        assert collection.get(docs[3]["id"]).text == docs[3]["text"]
        signatures = sign([document["text"] for document in docs])
        lims, distances, rows = lookalike.Index.build(signatures).range_search(signatures, 60)
        found = collection.search(signatures, radius=60)
        for query, hits in enumerate(found):
            near = slice(lims[query], lims[query + 1])
            assert [(hit.distance, hit.id) for hit in hits] == [
                (distance, docs[row]["id"]) for distance, row in zip(distances[near], rows[near])
            ]
        with pytest.raises(LookalikeError, match="opened to be read"):
            collection.add([story("x", HARBOUR)])


def test_signatures_from_elsewhere(tmp_path):
    rows = np.random.default_rng(1).integers(0, 256, (50, 8), dtype=np.uint8)
    with Collection.create(tmp_path / "hashes", bits=64) as hashes:
        hashes.add_signatures(range(50), rows, [{"n": n} for n in range(50)])
        hit = hashes.search(rows[7:8], nearest=1)[0][0]
        assert (hit.id, hit.distance, hit.payload) == ("7", 0, {"n": 7})
        with pytest.raises(LookalikeError, match="no recipe"):
            hashes.search("a text", radius=1)
        with pytest.raises(LookalikeError, match="64 bits; this is .*128 bits"):
            hashes.add_signatures(["x"], np.zeros((1, 16), np.uint8))
        with pytest.raises(LookalikeError, match="2 ids"):
            hashes.add_signatures(["x", "y"], rows[:1])


def test_tables_are_documents(docs, tmp_path):
    pyarrow, pandas, polars = map(pytest.importorskip, ["pyarrow", "pandas", "polars"])
    columns = {"id": [d["id"] for d in docs], "text": [d["text"] for d in docs], "n": [None, 1.5] * (len(docs) // 2)}
    when = {**columns, "when": [datetime.date(2026, 1, 2)] * len(docs)}
    tables = [pyarrow.table(when), pandas.DataFrame(when), polars.DataFrame(when)]
    for number, table in enumerate(tables):
        with Collection.create(tmp_path / str(number)) as collection:
            collection.add(table)
            assert len(collection) == len(docs)
            assert collection.get(docs[1]["id"]).payload == {"n": 1.5, "when": "2026-01-02"}
            assert collection.get(docs[0]["id"]).payload["n"] is None


def test_folders_and_errors(tmp_path):
    with pytest.raises(FileError, match="is not there"):
        Collection.open(tmp_path / "nothing")
    with Collection.create(tmp_path / "one") as one:
        with pytest.raises(LookalikeError, match="another process is writing"):
            Collection.open(tmp_path / "one")
        with pytest.raises(LookalikeError, match="document 0 has no field"):
            one.add(["only a text"])
        with pytest.raises(LookalikeError, match="payload is not JSON"):
            one.add([story("a", HARBOUR, what=object())])
        assert one.compact() == 0 and one.refresh() is False
    assert "closed" in repr(one)
    with pytest.raises(LookalikeError, match="is closed"):
        len(one)
    one.close()
