"""Errors at run time: node, inputs with shapes, dtypes and strides, the line of the user, the expression if asked for; 40 lines."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import IndexRangeError, InternalError, ShapeError
from symconv.graph import Op, apply_op
from symconv.runtime.run_errors import MOST_LINES, limited


def picked(**options):
    table, rows = T.matrix("table", "float64"), T.lvector("rows")
    return sc.compile([table, rows], T.exp(table.T[rows]), **options)


DEVICES = [{}, {"mode": "reference"}, {"device": "emulator"}]


@pytest.mark.parametrize("options", DEVICES, ids=["cpu", "reference", "emulator"])
def test_the_message_has_node_inputs_strides_and_line(options):
    with pytest.raises(IndexRangeError) as caught:
        picked(**options)(np.zeros((4, 3)), np.array([0, 9]))
    text = str(caught.value)
    assert "in Gather{1} of float64[3, 4], int64[2]" in text
    assert "float64, shape (3, 4), strides (" in text
    assert "i1 rows: int64, shape (2,), strides (8,) bytes" in text
    assert f"where: {__file__}:" in text
    assert "expression:" not in text
    assert "exception_verbosity" in text
    assert len(text.split("\n")) <= MOST_LINES


def test_views_show_their_strides():
    with pytest.raises(IndexRangeError, match=r"shape \(3, 4\), strides \(8, 24\) bytes"):
        picked(mode="reference")(np.zeros((4, 3)), np.array([9]))


def test_high_verbosity_shows_the_expression():
    with sc.config.change(exception_verbosity="high"), pytest.raises(IndexRangeError) as caught:
        picked()(np.zeros((4, 3)), np.array([9]))
    assert "expression:\n    Gather{1} [id A] float64[1,4]\n" in str(caught.value)


@dataclass(frozen=True, slots=True)
class Fragile(Op):
    """Fails when it is run."""

    def infer(self, x):
        return (x,)

    def reference(self, x):
        raise FloatingPointError("as always")


def test_other_errors_of_references_keep_their_class_and_get_a_note():
    x = T.matrix("x\n", "float32")
    function = sc.compile([x], apply_op(Fragile(), x.T))
    with pytest.raises(FloatingPointError, match="as always") as caught:
        function(np.zeros((2, 3), "float32"))
    (note,) = caught.value.__notes__
    assert "in Fragile" in note
    assert "float32, shape (3, 2)" in note
    assert f"where: {__file__}:" in note


def test_an_unknown_code_is_our_bug_and_names_the_source(tmp_path):
    function = picked()
    function(np.zeros((4, 3)), np.array([0]))
    program = function.programs[-1]
    with sc.config.change(cache_dir=str(tmp_path)):
        error = program.error_of(0, 200)
    assert isinstance(error, InternalError)
    (kept,) = tmp_path.glob("failed/*.c")
    assert f"source: {kept}" in str(error)
    assert kept.read_text() == program.steps[0].kernel.source


def test_long_messages_are_cut_in_the_middle():
    text = limited("\n".join(map(str, range(500))))
    assert len(text.split("\n")) == MOST_LINES
    assert text.startswith("0\n1\n")
    assert text.endswith("\n498\n499")
    kept = [line for line in text.split("\n") if line.isdigit()]
    assert f"… {500 - len(kept)} lines left out" in text
    assert limited("short") == "short"
    assert limited("\n" * (MOST_LINES - 1)) == "\n" * (MOST_LINES - 1)
    with sc.config.change(exception_verbosity="high"):
        assert limited("\n" * 399) == "\n" * 399


def test_names_of_inputs_are_shown_on_one_line_and_cut():
    table, rows = T.matrix("long" * 30, "float64"), T.lvector("rows\tand\nmore")
    function = sc.compile([table, rows], T.exp(table[rows]), mode="reference")
    with pytest.raises(IndexRangeError) as caught:
        function(np.zeros((4, 3)), np.array([9]))
    text = str(caught.value)
    assert f"    i0 {('long' * 30)[:59]}…: float64" in text
    assert r"    i1 rows\tand\nmore: int64" in text


def test_a_deep_expression_stays_short():
    x = T.vector("x", "float64")
    deep = x
    for _ in range(200):
        deep = T.tanh(deep) + x
    function = sc.compile([x], deep[T.constant(np.array([7]))] * deep.sum())
    for verbosity, most in (("low", MOST_LINES), ("high", 400)):
        with sc.config.change(exception_verbosity=verbosity), pytest.raises(IndexRangeError) as caught:
            function(np.zeros(3))
        assert len(str(caught.value).split("\n")) <= most


def test_sizes_that_do_not_fit_in_a_call_are_told_with_the_node():
    x, y = T.matrix("x\n", "float32"), T.matrix("y", "float32")
    function = sc.compile([x, y], T.exp(x * 2 + y))
    for verbosity in ("low", "high"):
        with sc.config.change(exception_verbosity=verbosity), pytest.raises(ShapeError) as caught:
            function(np.zeros((2, 3), "float32"), np.zeros((3, 3), "float32"))
        text = str(caught.value)
        assert "in add of mul: float32[2,3], y: float32[3,3]" in text
        assert f"where: {__file__}:" in text
        assert ("└─ y [id" in text) == (verbosity == "high")
        assert all(line.isprintable() for line in text.split("\n"))
