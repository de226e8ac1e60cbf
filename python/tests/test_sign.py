"""Bits are those of the program, whatever the texts come in."""

import itertools
import json

import numpy as np
import pytest

import lookalike
from conftest import ROOT
from lookalike import LookalikeError, Recipe, Signatures, sign

ENGLISH = (ROOT / "examples/stories/harbour.txt").read_text()
EDITED = (ROOT / "examples/stories/harbour-later.txt").read_text()
SCRIPTS = (
    "Straße CAFÉ naïve ﬁn — 近似重複検出のためのテスト。 Привет, мир! ภาษาไทย مرحبا بالعالم 한국어 문서 1,234.5 can't"
)


def test_known_answers():
    known = {
        ENGLISH: "c5151d8a434b317a13a004b7ba38ba2eb8ecbe530b23e560bd5f41e22049492f",
        EDITED: "c5051d8a434b11fa13a004879838382eb8c8be570b27e560bc5141c20049490e",
        SCRIPTS: "75030f4a1b2a231751fc00004840b00abdb961854a80b2f5718c09229da98d00",
    }
    rows = sign(list(known)).array
    assert [row.tobytes().hex() for row in rows] == list(known.values())
    assert sign([ENGLISH], "web").array[0].tobytes().hex() == "4345831b75e2d93e"


@pytest.mark.parametrize("recipe", ["text", "minhash-256", "web", "code"])
def test_the_program_makes_the_same(program, docs, tmp_path, recipe):
    path = tmp_path / "docs.sig"
    program("sign", "examples/docs.jsonl", "-o", path, "--recipe", recipe)
    theirs = Signatures.open(path)
    ours = sign((document["text"] for document in docs), recipe, ids=[document["id"] for document in docs])
    assert theirs.recipe == ours.recipe == Recipe(recipe)
    np.testing.assert_array_equal(theirs.array, ours.array[ours.signed])
    assert theirs.ids == [id for id, signed in zip(ours.ids, ours.signed) if signed]


def test_margins_are_the_programs(program, docs, tmp_path):
    path = tmp_path / "docs.sig"
    program("sign", "examples/docs.jsonl", "-o", path, "--margins")
    ours = sign([document["text"] for document in docs], margins=True)
    assert ours.margins.shape == (len(docs), 256)
    np.testing.assert_array_equal(Signatures.open(path).margins, ours.margins)


def test_terms_weigh(program, docs, tmp_path):
    terms, path = tmp_path / "terms", tmp_path / "docs.sig"
    program("terms", "examples/docs.jsonl", "-o", terms, "--recipe", "topsig-1024")
    program("sign", "examples/docs.jsonl", "-o", path, "--recipe", "topsig-1024", "--terms", terms)
    texts = [document["text"] for document in docs]
    np.testing.assert_array_equal(sign(texts, "topsig-1024", terms=terms).array, Signatures.open(path).array)
    with pytest.raises(LookalikeError, match="needs term statistics"):
        sign(texts, "topsig-1024")


TEXTS = ["The harbour reopened on Monday.", None, "", SCRIPTS, "x" * 100, "one two three four"] * 40


def lists():
    return TEXTS


def generators():
    return (text for text in TEXTS)


def objects():
    return np.array(TEXTS, dtype=object)


def numpy_strings():
    return np.array([text or "" for text in TEXTS])


def pyarrow_array(kind="string"):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.array(TEXTS, type=getattr(pyarrow, kind)())


def pyarrow_large():
    return pyarrow_array("large_string")


def pyarrow_view():
    return pyarrow_array("string_view")


def pyarrow_slice():
    return pyarrow_array().slice(0)


def pyarrow_chunks():
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.chunked_array([TEXTS[:7], [], TEXTS[7:]])


def pyarrow_dictionary():
    return pyarrow_array().dictionary_encode()


def polars_series():
    return pytest.importorskip("polars").Series(TEXTS)


def polars_categories():
    polars = pytest.importorskip("polars")
    return polars.Series(TEXTS, dtype=polars.Categorical)


def pandas_objects():
    return pytest.importorskip("pandas").Series(TEXTS)


def pandas_strings():
    return pytest.importorskip("pandas").Series(TEXTS, dtype="string")


def pandas_arrow():
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pandas").Series(TEXTS, dtype="string[pyarrow]")


def datasets_column():
    return pytest.importorskip("datasets").Dataset.from_dict({"text": TEXTS})["text"]


def datasets_chosen():
    dataset = pytest.importorskip("datasets").Dataset.from_dict({"text": TEXTS[::-1]})
    return dataset.select(range(len(TEXTS) - 1, -1, -1))["text"]


def datasets_streamed():
    dataset = pytest.importorskip("datasets").Dataset.from_dict({"text": TEXTS})
    return dataset.to_iterable_dataset()["text"]


KINDS = [
    lists, generators, objects, numpy_strings, pyarrow_array, pyarrow_large, pyarrow_view, pyarrow_slice, pyarrow_chunks,
    pyarrow_dictionary, polars_series, polars_categories, pandas_objects, pandas_strings, pandas_arrow, datasets_column,
    datasets_chosen, datasets_streamed,
]  # fmt: skip


@pytest.mark.parametrize("texts", KINDS)
def test_texts_come_in_many_ways(texts):
    wanted, got = sign(TEXTS), sign(texts())
    np.testing.assert_array_equal(got.array, wanted.array)
    np.testing.assert_array_equal(got.signed, wanted.signed)
    assert wanted.signed.tolist() == [True, False, False, True, True, True] * 40


def test_arrow_is_read_where_it_is():
    pyarrow = pytest.importorskip("pyarrow")
    texts = pyarrow.array([f"text number {i} of a long column " * 200 for i in range(2000)])
    before = pyarrow.total_allocated_bytes()
    sign(texts)
    assert pyarrow.total_allocated_bytes() == before


def test_texts_are_unicode():
    """Columns of strings may have any bytes in them, as Parquet and Spark make them."""
    pa = pytest.importorskip("pyarrow")
    ends = np.array([0, 5, 11], dtype=np.int32)
    for kind, ends in [(pa.string(), ends), (pa.large_string(), ends.astype(np.int64))]:
        column = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(ends), pa.py_buffer(b"a tex\xff\xfe \xf0\x9f.")])
        with pytest.raises(LookalikeError, match="not Unicode"):
            sign(column)


def test_rows_without_signature_are_near_nothing():
    signatures = sign(["", "", "the very same text", "the very same text"])
    a, b, distance = lookalike.join(signatures, 0)
    assert (a.tolist(), b.tolist(), distance.tolist()) == ([2], [3], [0])
    index = lookalike.Index.build(signatures)
    lims, _, ids = index.range_search(signatures, 256)
    assert lims.tolist() == [0, 0, 0, 2, 4] and ids.tolist() == [2, 3, 2, 3]
    _, ids = index.search(signatures, 3)
    assert ids.tolist() == [[-1] * 3, [-1] * 3, [2, 3, -1], [2, 3, -1]]
    assert index.first(signatures, 0)[1].tolist() == [-1, -1, 2, 2]


def test_files_come_and_go(tmp_path):
    signatures = sign(["some words of a text", "", "other words of it"], margins=True)
    signatures.save(tmp_path / "a.sig")
    signatures.save(tmp_path / "a.npy")
    again = Signatures.open(tmp_path / "a.sig")
    np.testing.assert_array_equal(again.array, signatures.array[[0, 2]])
    np.testing.assert_array_equal(again.margins, signatures.margins[[0, 2]])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), again.array)
    assert again.ids == ["0", "2"] and again.recipe == signatures.recipe


def test_arrays_are_not_copied():
    array = np.zeros((3, 32), dtype=np.uint8)
    signatures = Signatures(array, ids=["a", "b", "c"])
    assert np.shares_memory(signatures.array, array) and not signatures.array.flags.writeable
    assert signatures.ids == ["a", "b", "c"] and signatures.recipe is None
    backwards = np.arange(96, dtype=np.uint8).reshape(3, 32)[::-1]
    np.testing.assert_array_equal(Signatures(backwards).array, backwards)


def test_widths_that_are_no_words(tmp_path):
    array = np.random.default_rng(3).integers(0, 256, (20, 9), dtype=np.uint8)
    Signatures(array).save(tmp_path / "a.sig")
    np.testing.assert_array_equal(Signatures.open(tmp_path / "a.sig").array, array)


def test_recipes():
    assert Recipe("text").hash == "4abfab68affa4a52" and Recipe("text") != Recipe("web")
    named = Recipe.from_json({**json.loads(Recipe("text").to_json()), "name": "other"})
    assert named == Recipe("text") and hash(named) == hash(Recipe("text")) and named.name == "other"
    assert set(Recipe.names()) >= {"text", "minhash-256", "web", "code"}
    with pytest.raises(LookalikeError, match="signature.bits"):
        Recipe.from_json('{"signature": {"kind": "simhash", "bits": 100}}')
    with pytest.raises(LookalikeError, match="there is no recipe `nonsense`; there are text"):
        sign([], "nonsense")


def test_what_is_wrong_is_said(tmp_path):
    with pytest.raises(LookalikeError, match="text 2 is a int"):
        sign(["a", None, 3])
    with pytest.raises(LookalikeError, match="text 1 is not Unicode"):
        sign(["a", "\ud800"])
    with pytest.raises(LookalikeError, match="one text"):
        sign("a text")
    with pytest.raises(LookalikeError, match="no margins"):
        sign(["a"], "minhash-256", margins=True)
    with pytest.raises(LookalikeError, match=r"uint8 \(n, 32\) is wanted for 256 bits; this is \(n, 16\): 128 bits"):
        Signatures(np.zeros((2, 16), np.uint8), recipe="text")
    with pytest.raises(LookalikeError, match=r"uint8 \(n, bits/8\) is wanted; this is float32 \(n, 32\)"):
        Signatures(np.zeros((2, 32), np.float32))
    with pytest.raises(LookalikeError, match="packbits"):
        Signatures(np.zeros((2, 256), bool))
    with pytest.raises(LookalikeError, match="2 ids for 1"):
        sign(["a b c"], ids=["a", "b"])
    with pytest.raises(lookalike.FileError, match="nothing.sig") as caught:
        Signatures.open(tmp_path / "nothing.sig")
    assert isinstance(caught.value, OSError) and isinstance(caught.value, LookalikeError)
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(LookalikeError, match="texts are strings; this column has Int64"):
        sign(pyarrow.array([1, 2]))
    with pytest.raises(LookalikeError, match="name a column"):
        sign(pyarrow.table({"text": ["a"]}))


def test_progress_is_told():
    told = []
    sign(TEXTS, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(TEXTS), len(TEXTS))
    told.clear()
    sign(itertools.chain(TEXTS), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(TEXTS), None)
    tqdm = pytest.importorskip("tqdm").tqdm
    bars = []

    class Bar(tqdm):
        def close(self):
            bars.append((self.n, self.total))
            super().close()

    sign(TEXTS, progress=Bar)
    assert (len(TEXTS), len(TEXTS)) in bars
    sign(TEXTS, progress=True)


def test_errors_of_a_generator_come_through():
    def texts():
        yield "a text"
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        sign(texts())
