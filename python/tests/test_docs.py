"""Every example of the documentation is run."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys

import pytest

import lookalike
from conftest import ROOT

MODULES = ["lookalike"] + [f"lookalike.{module.name}" for module in pkgutil.iter_modules(lookalike.__path__)]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("_engine")])
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name), optionflags=FLAGS).failed == 0


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"```python\n(>>> .*?)```", (ROOT / page).read_text(), re.S)
    assert blocks, f"{page} has no examples"
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, page, 0)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0


def test_every_public_name_is_documented():
    for name in lookalike.__all__:
        if name != "__version__":
            assert getattr(lookalike, name).__doc__, name


def test_the_notebook(tmp_path):
    pytest.importorskip("matplotlib")
    figure = tmp_path / "histogram.png"
    script = ROOT / "python/examples/histogram.py"
    done = subprocess.run([sys.executable, script, figure], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert figure.stat().st_size > 5000 and "pairs" in done.stdout
