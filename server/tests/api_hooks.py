"""What schemathesis has to know of the service that an OpenAPI document cannot say. It loads this by SCHEMATHESIS_HOOKS."""

import json
import os
import zlib
from pathlib import Path
from urllib.parse import quote

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.generation.meta import TestPhase

NDJSON = "application/x-ndjson"

# Documents of the collection: with ids that are made up, nothing would ever be found.
KNOWN = json.loads(Path(os.environ["LOOKALIKE_TEST_IDS"]).read_text())
WORDS = "harbour storm ships Monday reopened eleven pilots weather grain crane tide letters quay lamp north ferry".split()


def chance(seed):
    """A number that looks random but only depends on `seed`: a run must be the same every time."""
    return zlib.crc32(repr(seed).encode())


def known_id(seed):
    return KNOWN[chance(seed) % len(KNOWN)]


def text(seed):
    """A text long enough for a signature."""
    number = chance(seed)
    return " ".join(WORDS[(number >> place % 28) % len(WORDS)] for place in range(40)) + f" {seed!r}"


@schemathesis.serializer(NDJSON)
def one_line(context, value):
    """The schema of NDJSON is that of a line."""
    return json.dumps(value).encode() + b"\n"


@schemathesis.deserializer(NDJSON)
def read_line(context, response):
    """A line is answered by a line; with `only_errors` a good one by none, which is as good as one that says so."""
    if not response.content and "only_errors=true" in str(response.request.url).lower():
        return {"id": "a", "outcome": "added"}
    (line,) = response.content.splitlines()
    return json.loads(line)


OF_A_QUERY = ("text", "signature", "id")


def make_findable(query):
    """Made of exactly one of what a query can be made of, which the schema cannot say, and mostly of what there is."""
    given = [field for field in OF_A_QUERY if isinstance(query.get(field), str)] or ["text", "id"]
    kept = given[chance(query) % len(given)]
    value = {"text": text, "signature": lambda seed: f"{chance(seed):08x}" * 8, "id": known_id}[kept](query.get(kept))
    return {name: field for name, field in query.items() if name not in OF_A_QUERY} | {kept: value}


def make_document(document):
    """The same for a document to be added: it keeps its own id."""
    kept = "signature" if document.get("signature") else "text"
    return make_findable({**document, "id": None, "text": None, "signature": None, kept: "made up"}) | {"id": document["id"]}


def make_answerable(question):
    """A filter that is made up is hardly ever an expression, and most numbers are beyond the bits of a signature."""
    question.pop("filter", None)
    if isinstance(question.get("radius"), int):
        question["radius"] %= 65
        question.pop("nearest", None)
    for field in ("nearest", "limit"):
        if isinstance(question.get(field), int):
            question[field] = question[field] % 1000 + 1
    return question


def make_search(search):
    search = make_answerable(search)
    if not search.get("queries"):
        search.pop("queries", None)
        return make_findable(search)
    question = {name: field for name, field in search.items() if name not in (*OF_A_QUERY, "media", "payload")}
    return question | {"queries": [make_findable(query) for query in search["queries"]]}


BODIES = {
    "/v1/search": make_search,
    "/v1/compare": lambda body: body | {side: make_findable(body[side]) for side in "ab"},
    "/v1/documents": make_document,
    "/v1/seen": make_document,
}


@schemathesis.hook
def map_case(context, case):
    """Makes most of the requests that are as the schema says also such that there is something to find."""
    is_positive = case.meta is not None and case.meta.generation.mode.is_positive
    # Where requests follow from each other, ids come from the answers.
    if not is_positive or case.meta.phase.name == TestPhase.STATEFUL or chance((case.body, case.query)) % 4 == 0:
        return case
    if "id" in (case.path_parameters or {}):
        case.path_parameters["id"] = quote(known_id(case.path_parameters["id"]), safe="")
    if case.query:
        make_answerable(case.query)
    make = BODIES.get(case.operation.path)
    if isinstance(case.body, dict):
        case.body = make(case.body)
    elif isinstance(case.body, list):
        case.body = [make(one) for one in case.body]
    return case


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Leaves out what is said to be wrong and is not: bodies that no rule of a schema can make wrong."""
    if not isinstance(failure, AcceptedNegativeData):
        return True
    # Whatever is in a text is a text. A line that is no document is told of in a line; the answer goes on.
    if (case.media_type or "").startswith("text/"):
        return False
    return not (case.media_type == NDJSON and b'"error"' in response.content)
