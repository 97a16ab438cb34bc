"""Texts of names, constants, ids and sizes."""
from __future__ import annotations

import json

import numpy as np
import pytest
from printing.graphs import HOSTILE_NAMES, hostile_network

import symconv as sc
from symconv.printing import diagram, names, svg


@pytest.mark.parametrize("name", [*HOSTILE_NAMES, "".join(map(chr, range(0x20))), "\x7f\x85\u2028"])
def test_escaped_names_are_one_printable_line_and_stay_different(name):
    assert names.escape(name).isprintable()
    assert names.escape(name + "\n") != names.escape(name + "\\n")


def test_constants_are_short():
    assert names.constant_text(np.float32(0.1)) == "0.1"
    assert names.constant_text(np.arange(4)) == "[0, 1, 2, 3]"
    assert names.constant_text(np.arange(100)) == "[0, 1, 2, … 100 numbers]"
    assert names.constant_text(np.full((50, 10), 2.5)) == "2.5 everywhere"
    assert names.constant_text(np.zeros((0, 3))) == "empty"
    assert names.constant_text(np.array([[True], [False]])) == "[[True], [False]]"


def test_shortened_texts_have_the_length_asked_for():
    text = "abcdefghij" * 20
    for length in (5, 30, 60):
        assert len(names.shortened(text, length)) == length
    assert names.shortened("abc", 3) == "abc"


def test_wrapped_texts_lose_nothing_but_the_end():
    lines = svg.wrapped(["a fairly long text that needs several lines of thirty-four characters", "x" * 80])
    assert all(len(line) <= 36 for line in lines)
    assert len(lines) == 4
    assert svg.wrapped([]) == []


def test_diagrams_of_a_lone_leaf():
    import symconv.tensor as T

    made = diagram.make_diagram(T.vector("x"))
    assert [node.headline for node in made.nodes] == ["x"]
    assert made.edges == ()


def test_reports_and_profiles_of_hostile_names_are_printable_lines(tmp_path):
    function = hostile_network()
    function(np.ones(2))
    tree = sc.debugprint(function, file="str", print_memory=True)
    texts = [str(function.profile), function.explain(), repr(function.rewrites), tree, sc.pprint(function), function.explain(0)]
    for text in texts:
        assert all(line.isprintable() for line in text.split("\n")), text
    assert all(names.shortened(names.escape(name)) in tree for name in HOSTILE_NAMES)
    function.profile.to_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["otherData"]["function"] == "a\nb\x1b<script>"
    assert json.loads(json.dumps(function.explain(format="dict")))["steps"]
