"""`python -m symconv show FILE.py:name`."""
from __future__ import annotations

import sys

import pytest
from printing.test_html import Page

from symconv.cli import main

FILE = '''
import symconv as sc, symconv.tensor as T
from helper_of_the_shown_file import factor
x = T.vector("x", "float32", shape=(3,))
y = T.exp(x) * factor
number = 3
class Models:
    pair = [x, y]
    nested = [[x], y]
def train(): return sc.compile([x], y, name="train")
def with_default(scale=2.0): return y * scale
def needs(argument): return y
'''


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "helper_of_the_shown_file.py").write_text("factor = 2.5\n")
    path = tmp_path / "shown_model.py"
    path.write_text(FILE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield path
    for name in ("helper_of_the_shown_file", "shown_model"):
        sys.modules.pop(name, None)


def test_text_is_the_default(file, capsys):
    assert main(["show", f"{file}:y"]) == 0
    assert capsys.readouterr().out.startswith("mul [id A]")


def test_a_function_of_the_users_is_called(file, tmp_path, capsys):
    page, drawing = tmp_path / "out.html", tmp_path / "out.svg"
    assert main(["show", f"{file}:train", "--html", str(page), "--svg", str(drawing), "--text"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [str(page), str(drawing)]
    assert printed[2].startswith("train on cpu")
    assert Page(page.read_text()).data["phases"][-1]["name"] == "program"
    assert drawing.read_text().startswith(("<svg", "<?xml"))


@pytest.mark.parametrize("name", ["with_default", "Models.pair", "x"])
def test_other_names(file, name, capsys):
    assert main(["show", f"{file}:{name}"]) == 0
    assert "[id A]" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "told"), [("absent", "it has x, y"), ("number", "number is int 3"), ("needs", "argument"),
                                            ("Models.other", "no 'Models.other'"), ("Models.nested", "Models.nested is list")])
def test_what_cannot_be_shown_is_told(file, name, told, capsys):
    assert main(["show", f"{file}:{name}"]) == 2
    assert told in capsys.readouterr().out


def test_addresses_that_are_none(tmp_path, capsys, file):
    for address in ("model.py", ":x", f"{tmp_path}/absent.py:x", f"{tmp_path}:x"):
        assert main(["show", address]) == 2
        assert "FILE.py:name" in capsys.readouterr().out
    assert main(["show", f"{file}:y", "--svg", str(tmp_path / "out.png")]) == 2
