"""The API is as its OpenAPI document says, whatever it is asked: schemathesis makes up the requests."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from serving import POSTGRES, serving

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")

# Not `positive_data_acceptance`: a schema cannot say that a filter has to be an expression, that a query is a text or a
# signature or an id and not two of them, or that a signature is as long as those of the collection. Nor
# `ensure_resource_availability`: a text with too few words is not added, and its answer says so. Nor `ignored_auth` and
# `object_level_authorization`: tokens are tested below, on a server that asks for one.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
]

# Requests of each operation, beside those that go systematically to the edges of every field.
EXAMPLES = 100
# Seconds after which a run hangs: a slow machine takes minutes.
HANGS = 900

READ, WRITE = "a-token-to-read-with", "a-token-to-write-with"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request, tmp_path_factory):
    """A server with the sample in its collection, which keeps all that can be kept."""
    store = []
    if request.param == "postgres":
        if not POSTGRES:
            pytest.skip("LOOKALIKE_POSTGRES is not set: the API is not tested on PostgreSQL")
        store = ["--store", POSTGRES, "--schema", f"api_{uuid.uuid4().hex[:12]}", "--index", "sql"]
    folder = tmp_path_factory.mktemp(request.param) / "collection"
    with serving(folder, "--keep-text", "--margins", *store) as server:
        server.ids = server.load_sample()
        yield server


def schemathesis(server, folder, *arguments):
    """Runs schemathesis on a server, always with the same seed. How many requests it makes varies a little all the same.

    It makes up ids of any characters and drops those that a path cannot hold, which are not too many for us.
    """
    (folder / "ids.json").write_text(json.dumps(server.ids))
    done = subprocess.run(
        [SCHEMATHESIS, "run", f"{server.url}/v1/openapi.json", "--no-color", "--generation-deterministic",
         "--request-timeout", "20", "--continue-on-failure", "--suppress-health-check", "filter_too_much", *arguments],
        # It leaves folders where it runs.
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "api_hooks",
             "LOOKALIKE_TEST_IDS": str(folder / "ids.json")},
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    print(done.stdout + done.stderr)
    return done


def test_the_document_is_valid_openapi(server):
    status, headers, document = server.ask("/v1/openapi.json")
    assert (status, headers.get_content_type()) == (200, "application/json")
    validate(json.loads(document))


def test_every_answer_is_as_documented(server, tmp_path):
    done = schemathesis(
        server, tmp_path, "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing,stateful",
        "--max-examples", str(EXAMPLES),
    )
    assert done.returncode == 0, "schemathesis found something: see above"
    server.check_health()


def test_lines_are_answered_line_by_line(server):
    """What schemathesis cannot make: a body of many lines, some of which are none."""
    lines = [
        {"id": "line 1", "text": "the harbour reopened on Monday after a storm that had closed it for eleven days"},
        b"{",
        {"id": "line 3"},
        b"",
        {"id": "line 5", "text": "!"},
        b"\xff\xfe",
    ]
    body = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    status, headers, said = server.ask("/v1/documents", body, media="application/x-ndjson")
    assert (status, headers.get_content_type()) == (200, "application/x-ndjson")
    told = [json.loads(line) for line in said.splitlines()]
    assert [answer.get("outcome") for answer in told] == ["added", None, None, "unsigned", None]
    assert [answer.get("line") for answer in told] == [None, 2, 3, None, 6]
    assert [answer["error"]["status"] for answer in told if "error" in answer] == [400, 422, 400]


# Every operation, and who may do it. The page and its files are for everybody: they hold no document.
FOR_READERS = [
    ("GET", "/metrics"), ("GET", "/v1/stats"), ("GET", "/v1/plan"), ("GET", "/v1/clusters"), ("GET", "/v1/clusters/a"),
    ("GET", "/v1/documents/a"), ("GET", "/v1/documents/a/lookalikes"), ("POST", "/v1/search"), ("POST", "/v1/compare"),
]
FOR_WRITERS = [("POST", "/v1/documents"), ("DELETE", "/v1/documents/a"), ("POST", "/v1/seen")]
FOR_ALL = [("GET", "/"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/v1/openapi.json")]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that asks for a token."""
    folder = tmp_path_factory.mktemp("guarded") / "collection"
    tokens = {"LOOKALIKE_TOKEN": WRITE, "LOOKALIKE_READ_TOKEN": READ}
    with serving(folder, "--keep-text", tokens=tokens) as server:
        server.ids = server.load_sample(token=WRITE)
        yield server


def test_every_operation_is_listed_here(guarded):
    """A new operation must be given to readers, writers or all."""
    document = json.loads(guarded.ask("/v1/openapi.json")[2])
    documented = {(method.upper(), path.replace("{id}", "a")) for path, of in document["paths"].items() for method in of}
    assert documented <= {*FOR_READERS, *FOR_WRITERS, *FOR_ALL}


@pytest.mark.parametrize(
    ("token", "refused"),
    [(None, 401), ("", 401), ("another", 401), (WRITE[:-1], 401), (WRITE + "x", 401), (READ, 403), (WRITE, None)],
    ids=["none", "empty", "another", "shorter", "longer", "reader", "writer"],
)
def test_tokens(guarded, token, refused):
    for method, path in FOR_READERS + FOR_WRITERS:
        body = {} if method == "POST" else None
        status, headers, said = guarded.ask(path, body, method=method, token=token)
        wanted = None if token == READ and (method, path) in FOR_READERS else refused
        # An empty body or an unknown id is refused as well, but only to those who may ask.
        assert status == wanted if wanted else status in (200, 404, 422), (method, path, status, said)
        if wanted:
            assert headers.get_content_type() == "application/problem+json"
            assert json.loads(said)["status"] == wanted
            assert (status == 401) == ("WWW-Authenticate" in headers), "RFC 9110 wants it with every 401"
    for method, path in FOR_ALL:
        assert guarded.ask(path, method=method, token=token)[0] == 200, path


def test_no_request_gets_around_the_token(guarded, tmp_path):
    """Whatever is asked without a token, or with one that only reads, the collection stays as it is."""
    before = json.loads(guarded.ask("/v1/stats", token=READ)[2])
    for arguments in [], ["--header", f"Authorization: Bearer {READ}"]:
        done = schemathesis(
            guarded, tmp_path, "--checks", ",".join(CHECKS), "--phases", "coverage", "--max-examples", "10",
            "--exclude-checks", "negative_data_rejection", *arguments,
        )
        assert done.returncode == 0, "schemathesis found something: see above"
    after = json.loads(guarded.ask("/v1/stats", token=READ)[2])
    assert (after["records"], after["position"]) == (before["records"], before["position"])
    guarded.check_health()


def test_a_token_is_not_ignored(guarded, tmp_path):
    """With a token everything is answered as documented, and without it, or with another, nothing is."""
    done = schemathesis(
        guarded, tmp_path, "--checks", ",".join([*CHECKS, "ignored_auth"]), "--phases", "coverage,fuzzing",
        "--max-examples", "10", "--header", f"Authorization: Bearer {WRITE}",
    )
    assert done.returncode == 0, "schemathesis found something: see above"
