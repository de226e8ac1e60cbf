"""The real program, serving a real collection, for as long as a test needs it."""

import json
import os
import re
import subprocess
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("LOOKALIKE") or str(ROOT / "target/debug/lookalike")
POSTGRES = os.environ.get("LOOKALIKE_POSTGRES")

# How long a server may take to start, and to end.
PATIENCE = 30


class Server:
    """A server that runs."""

    def __init__(self, process, log):
        self.process = process
        self.log = log
        self.url = None

    def follow(self):
        """Reads all that the server says: a pipe that nobody reads would stop it."""
        found = threading.Event()

        def read():
            with self.process.stderr as lines, self.log.open("w") as log:
                for line in lines:
                    log.write(line)
                    log.flush()
                    address = re.search(r"documents, at (http://\S+?)/?$", line.strip())
                    if address and self.url is None:
                        self.url = address[1]
                        found.set()
            found.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        found.wait(PATIENCE)
        assert self.url, f"the server does not start:\n{self.log.read_text()}"

    def ask(self, path, body=None, *, method=None, media="application/json", token=None):
        """The status, the headers and the body of an answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        if data is not None:
            request.add_header("Content-Type", media)
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, refused.read()

    def load_sample(self, token=None):
        """Adds the documents that come with the program; their ids."""
        status, _, lines = self.ask("/sample.jsonl")
        assert status == 200
        status, _, said = self.ask("/v1/documents", lines, media="application/x-ndjson", token=token)
        assert status == 200 and b'"error"' not in said, said
        return [json.loads(line)["id"] for line in lines.splitlines()]

    def check_health(self):
        """It still runs and answers, and nothing in it has panicked."""
        assert self.process.poll() is None, f"the server has ended:\n{self.log.read_text()}"
        assert self.ask("/healthz")[0] == 200
        status, _, said = self.ask("/readyz")
        assert status == 200, said
        assert "panic" not in self.log.read_text()


@contextmanager
def serving(folder, *create, tokens=None, serve=()):
    """Makes a collection in a folder of this name and serves it. At the end the server must end as it should."""
    made = subprocess.run(
        [PROGRAM, "create", str(folder), "--quiet", *create], capture_output=True, text=True, timeout=PATIENCE
    )
    assert made.returncode == 0, made.stderr
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOOKALIKE_")}
    process = subprocess.Popen(
        [PROGRAM, "serve", str(folder), "--listen", "127.0.0.1:0", *serve],
        env={**environment, "RUST_BACKTRACE": "1", **(tokens or {})},
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    server = Server(process, folder.with_name(folder.name + ".log"))
    try:
        server.follow()
        yield server
        server.check_health()
        process.terminate()
        assert process.wait(PATIENCE) == 0, server.log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        server.reader.join()
    assert "panic" not in server.log.read_text()
