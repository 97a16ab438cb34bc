"""Print and Assert: what they show and check, on every path, and that rewriting neither loses nor repeats them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, AssertionFailedError, GraphTypeError
from symconv.graph import apply_op

PATHS = [{"device": "cpu"}, {"device": "cpu", "mode": "reference"}, {"device": "cpu", "mode": "debug"},
         {"device": "cpu", "mode": "fast_compile"}, {"device": "emulator"}]


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_print_shows_once_and_gives_the_value(path: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    x = T.vector("x")
    function = sc.compile([x], sc.Print("the vector")(x) * 2, **path)
    assert capsys.readouterr().out == ""  # compiling prints nothing
    for value in ([1.0, 2.5], [3.0, -1.0]):
        np.testing.assert_array_equal(function(np.float32(value)), np.float32(value) * 2)
        assert capsys.readouterr().out == f"the vector __str__ = {np.float32(value)}\n"


def test_print_of_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    x = T.matrix("x")
    names = ("shape", "dtype", "ndim", "size", "min", "max", "sum", "any", "all", "__repr__")
    sc.compile([x], sc.Print("m", attrs=names)(x))(np.float32([[0, 3]]))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["m shape = (1, 2)", "m dtype = float32", "m ndim = 2", "m size = 2", "m min = 0.0", "m max = 3.0",
                     "m sum = 3.0", "m any = True", "m all = False", "m __repr__ = array([[0., 3.]], dtype=float32)"]


def test_print_of_no_elements_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    x = T.vector("x")
    sc.compile([x], sc.Print("empty", attrs=("max",))(x))(np.zeros(0, "float32"))
    assert capsys.readouterr().out.startswith("empty max = none (")


def test_print_of_constants_shapes_and_state_runs_on_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    x, w = T.vector("x"), sc.shared(np.float32([2, 3]), name="w")
    size = sc.Print("size")(x.shape[0])
    results = [size * 2, sc.Print("constant")(T.constant(np.float32(4))) + 1, sc.Print("state")(w) * 2]
    function = sc.compile([x], results)
    for _ in range(2):
        found = function(np.zeros(3, "float32"))
        assert [np.asarray(each).tolist() for each in found] == [6, 5, [4, 6]]
        lines = sorted(capsys.readouterr().out.splitlines())
        assert lines == ["constant __str__ = 4.0", "size __str__ = 3", "state __str__ = [2. 3.]"]


def test_gradient_of_print_prints_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    x = T.vector("x")
    cost = (sc.Print("p")(x) ** 2).sum()
    value, gradient = sc.compile([x], [cost, sc.grad(cost, x)])(np.float32([1, 2]))
    assert float(value) == 5
    np.testing.assert_array_equal(gradient, [2, 4])
    assert capsys.readouterr().out.count("p __str__") == 1


def test_print_refuses_what_it_cannot_show() -> None:
    with pytest.raises(ArgumentError, match="'dump'"):
        sc.Print("m", attrs=("dump",))
    with pytest.raises(ArgumentError, match="not text"):
        sc.Print(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_assert_passes_or_fails_and_leaves_state(path: dict[str, str]) -> None:
    x, w = T.vector("x"), sc.shared(np.float32([1, 1]), name="w")
    checked = sc.Assert("x must be positive")(x, x > 0)
    function = sc.compile([x], checked.sum(), updates=[(w, w + checked)], **path)
    assert float(function(np.float32([1, 2]))) == 3
    np.testing.assert_array_equal(w.get_value(), [2, 3])
    with pytest.raises(AssertionFailedError, match=r"x must be positive[\s\S]*test_effects") as caught:
        function(np.float32([1, -2]))
    assert isinstance(caught.value, AssertionError)
    np.testing.assert_array_equal(w.get_value(), [2, 3])
    assert float(function(np.float32([4, 4]))) == 8


@pytest.mark.parametrize("path", PATHS[:2] + PATHS[-1:], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool"])
def test_assert_looks_at_every_condition(path: dict[str, str], dtype: str) -> None:
    x, n = T.tensor("x", dtype, (None,)), T.lscalar("n")
    function = sc.compile([x, n], sc.Assert("wrong")(x, n, n < 10, T.eq(x.shape[0], 3)), **path)
    value = np.ones(3, dtype)
    np.testing.assert_array_equal(function(value, 4), value)
    for array, count in [(value, 0), (value, 11), (np.ones(2, dtype), 4), (np.ones(2, dtype), 0)]:
        with pytest.raises(AssertionFailedError, match="wrong"):
            function(array, count)


def test_known_conditions_are_dropped_and_false_ones_are_not() -> None:
    x = T.vector("x")
    good = sc.compile([x], sc.Assert("m")(x, True, 1) + 1)
    assert "Assert" not in sc.debugprint(good, file="str")
    half = sc.compile([x], sc.Assert("m")(x, True, x.sum() > 0))
    assert half.graph.outputs[0].apply is not None
    assert len(half.graph.outputs[0].apply.inputs) == 2
    bad = sc.compile([x], sc.Assert("never")(x, False))
    with pytest.raises(AssertionFailedError, match="never"):
        bad(np.float32([1]))


def test_assert_gradient_and_errors() -> None:
    x = T.vector("x")
    cost = T.log(sc.Assert("positive")(x, x > 0)).sum()
    gradient = sc.compile([x], sc.grad(cost, x))
    np.testing.assert_allclose(gradient(np.float32([2, 4])), [0.5, 0.25])
    with pytest.raises(AssertionFailedError):
        gradient(np.float32([2, -4]))
    with pytest.raises(ArgumentError, match="no condition"):
        sc.Assert("m")(x)
    with pytest.raises(GraphTypeError, match="bool"):
        apply_op(sc.Assert("m"), x, x)


@pytest.mark.parametrize("message", ['a "quoted"\nline', "%s %d {{ x }} */", "ß", "", "<script>"])
def test_any_message(message: str, capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    x = T.vector("x")
    function = sc.compile([x], sc.Print(message)(sc.Assert(message)(x, x > 0)))
    function.save(tmp_path / "f.symconv")
    for each in (function, sc.load(tmp_path / "f.symconv")):
        each(np.float32([1]))
        assert capsys.readouterr().out == f"{message} __str__ = [1.]\n"
        with pytest.raises(AssertionFailedError) as caught:
            each(np.float32([-1]))
        assert str(caught.value).startswith(message)
    assert "\n\n" not in sc.debugprint(function, file="str")
    sc.draw(function, tmp_path / "g.svg")
    assert "<script>" not in (tmp_path / "g.svg").read_text()
