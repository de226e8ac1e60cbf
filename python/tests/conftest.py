"""What the tests share."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("LOOKALIKE") or str(ROOT / "target/debug/lookalike")


@pytest.fixture(scope="session")
def program():
    """Runs the program; what it says on standard output."""

    def run(*arguments, **more):
        words = [PROGRAM, *map(str, arguments)]
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=ROOT, **more).stdout

    return run


def documents_of(*names):
    return [json.loads(line) for name in names for line in (ROOT / "examples" / name).open()]


@pytest.fixture(scope="session")
def docs():
    return documents_of("docs.jsonl")


@pytest.fixture(scope="session")
def manual():
    return documents_of("manual/3.0.jsonl", "manual/4.0.jsonl")


def clustered(rows, bits, seed=1):
    """Rows that have near neighbors, and copies."""
    random = np.random.default_rng(seed)
    centres = random.integers(0, 256, (rows // 10 + 1, bits // 8), dtype=np.uint8)
    made = centres[random.integers(0, len(centres), rows)]
    flips = np.packbits(random.random((rows, bits)) < 4 / bits, axis=1)
    flips[random.random(rows) < 0.2] = 0
    return made ^ flips


def distances_of(a, b):
    """Every row of one with every row of the other."""
    return np.unpackbits(a[:, None, :] ^ b[None, :, :], axis=2).sum(axis=2, dtype=np.int32)
