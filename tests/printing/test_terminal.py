"""Colours on terminals only; ASCII when asked for and where a stream has no other characters."""
from __future__ import annotations

import io
import re
import sys

import pytest
from printing.graphs import arithmetic, classify, counter

import symconv as sc
import symconv.tensor as T
from symconv.printing.terminal import as_ascii, coloured, plain, style_of


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def printed(stream):
    sc.debugprint(arithmetic(), file=stream)
    return stream.getvalue()


def test_a_terminal_gets_colours_and_the_same_text():
    text = printed(Terminal())
    assert "\x1b[" in text
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == sc.debugprint(arithmetic(), file="str") + "\n"


def test_files_and_texts_get_none_even_when_colours_are_forced(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in printed(io.StringIO())
    assert "\x1b" not in sc.debugprint(arithmetic(), file="str")


def test_standard_output_that_is_no_terminal(monkeypatch, capsys):
    sc.debugprint(arithmetic())
    assert "\x1b" not in capsys.readouterr().out
    monkeypatch.setenv("FORCE_COLOR", "1")
    sc.debugprint(arithmetic())
    assert "\x1b[" in capsys.readouterr().out


@pytest.mark.parametrize(("settings", "style"), [
    ({}, coloured), ({"NO_COLOR": "1"}, plain), ({"NO_COLOR": ""}, coloured), ({"TERM": "dumb"}, plain),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, plain), ({"TERM": "dumb", "FORCE_COLOR": "1"}, coloured),
    ({"FORCE_COLOR": "0"}, coloured),
])
def test_the_environment_decides_on_a_terminal(monkeypatch, settings, style):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert style_of(Terminal(), False) is style


def test_a_closed_stream_is_no_terminal():
    stream = Terminal()
    stream.isatty = io.StringIO.isatty.__get__(stream)
    stream.close()
    assert style_of(stream, True) is plain


@pytest.mark.parametrize("build", [arithmetic, counter, classify])
def test_ascii_when_asked_for(build):
    text = sc.debugprint(build(), file="str", ascii=True)
    assert text.isascii()
    assert len(text.split("\n")) == len(sc.debugprint(build(), file="str").split("\n"))
    assert "|- " in text
    assert "`- " in text


def test_every_character_has_an_ascii_form():
    assert as_ascii("├─ │ └─ ··· ↓ → ← … µ × ß") == "|- | `- --- v > < . u x \\xdf"


def test_done_shares_ids_between_prints():
    x, y = T.vector("x"), T.vector("y")
    done = {}
    first = T.exp(x)
    assert sc.debugprint(first, file="str", done=done) == "exp [id A]\n└─ x [id B]"
    assert sc.debugprint(first + y, file="str", done=done).split("\n") == ["add [id C]", "├─ exp [id A] ···", "└─ y [id D]"]
    assert sc.debugprint(y, file="str", done=done) == "y [id D] ···"


def test_python_ids():
    x = T.vector("x")
    assert sc.debugprint(x, file="str", id_type="id") == f"x [id {id(x)}]"


def test_the_order_of_arguments_is_the_documented_one():
    stream, x = io.StringIO(), T.vector("x")
    assert sc.debugprint(T.exp(x), stream, 0, "int", True) is stream
    assert stream.getvalue() == "exp [id 0] float32[?]\n"


def test_options_of_inputs_and_outputs_are_looked_through():
    x = T.vector("x")
    assert sc.debugprint([sc.In(x), sc.Out(T.exp(x))], file="str").split("\n") == ["x [id A]", "exp [id B]", "└─ x [id A] ···"]


def test_standard_output_is_looked_up_at_the_call(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    sc.debugprint(T.vector("x"))
    assert stream.getvalue() == "x [id A]\n"
