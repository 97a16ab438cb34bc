"""Every example in a docstring runs and prints what it says."""
from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "symconv").rglob("*.py")
                 if ">>> " in path.read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(MODULES) > 50


@pytest.mark.parametrize("module", MODULES)
def test_examples(module, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # whatever an example writes
    result = doctest.testmod(importlib.import_module(module.removesuffix(".__init__")), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
