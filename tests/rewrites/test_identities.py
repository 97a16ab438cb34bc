"""Algebraic identities: the graph that is left first, then the values, also where floats are special."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rewriting import bound, leaf, ops, symbolic

import symconv.tensor as T
from symconv.graph import Variable
from symconv.rewrites.identities import holds_all

SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])

CASES: dict[str, tuple[Callable[[Variable], Variable], list[str]]] = {
    "x * 1": (lambda x: x * 1, []), "1 * x": (lambda x: 1.0 * x, []), "x - 0": (lambda x: x - 0.0, []),
    "x / 1": (lambda x: x / 1, []), "-(-x)": (lambda x: T.neg(-x), []), "x + -0": (lambda x: x + -0.0, []),
    "x + 0 stays": (lambda x: x + 0.0, ["add"]), "x * 0 stays": (lambda x: x * 0.0, ["mul"]),
    "x - x stays": (lambda x: x - x, ["sub"]), "x / x stays": (lambda x: x / x, ["true_div"]),
    "x - -0 stays": (lambda x: x - -0.0, ["sub"]), "|x| + 0": (lambda x: abs(x) + 0.0, ["abs"]),
    "x - (-x)": (lambda x: x - (-x), ["add"]), "x + (-x²)": (lambda x: x + (-T.square(x)), ["square", "sub"]),
    "x * -1": (lambda x: x * -1, ["neg"]), "(-x)²": (lambda x: T.square(-x), ["square"]),
    "||x||": (lambda x: abs(abs(x)), ["abs"]), "|-x|": (lambda x: abs(-x), ["abs"]),
    "relu(relu(x))": (lambda x: T.relu(T.relu(x)), ["relu"]), "max(x, x)": (lambda x: T.maximum(x, x), []),
    "where(c, x, x)": (lambda x: T.where(x > 0, x, x), []), "where(True)": (lambda x: T.where(T.constant(True), x, -x), []),
    "where(False)": (lambda x: T.where(T.constant(False), x, -x), ["neg"]),
    "x ** 1": (lambda x: x ** 1, []), "x ** 2": (lambda x: x ** 2, ["square"]),
    "x ** 3": (lambda x: x ** 3, ["square", "mul"]), "x ** 4": (lambda x: x ** 4, ["square", "square"]),
    "x ** -1": (lambda x: x ** -1.0, ["reciprocal"]), "x ** 0.5 stays": (lambda x: x ** 0.5, ["pow"]),
    "|x| ** 0.5": (lambda x: abs(x) ** 0.5, ["abs", "sqrt"]), "x ** 0.7 stays": (lambda x: x ** 0.7, ["pow"]),
    "(√x)² stays": (lambda x: T.square(T.sqrt(x)), ["sqrt", "square"]),
    "there and back": (lambda x: x.astype("float64").astype("float32").astype("float32"), []),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("known", [True, False])
def test_graph_and_values(name: str, known: bool) -> None:
    build, expected = CASES[name]
    x = leaf("float32", (7,) if known else (None,), "x")
    assert ops(symbolic([x], [build(x)])) == expected
    values = {x: SPECIAL.astype("float32")}
    off = bound(values, [build(x)], include=())[1][0]
    on = bound(values, [build(x)])[1][0]
    np.testing.assert_array_equal(on, off)
    number = ~np.isnan(off)
    np.testing.assert_array_equal(np.signbit(on[number]), np.signbit(off[number]))


def test_integers_lose_zero_and_one() -> None:
    i = T.lvector("i")
    assert ops(symbolic([i], [(i + 0) * 1 // 1])) == []
    assert ops(symbolic([i], [i ** 2])) == ["square"]


def test_an_operand_that_gives_the_shape_stays() -> None:
    x = leaf("float64", (1,), "x")
    y = x * T.constant(np.ones((5, 1)))
    assert bound({x: np.array([2.0])}, [y])[1][0].shape == (5, 1)
    unknown = leaf("float64", (None,), "u")
    assert bound({unknown: np.array([2.0])}, [unknown * T.constant(np.ones(3))])[1][0].shape == (3,)


def test_a_mask_reads_the_relu_that_is_there() -> None:
    x = T.dvector("x")
    y = T.exp(x)
    graph = symbolic([x], [T.relu(y), T.where(y > 0, x, 0)])
    (mask,) = (node for node in graph.nodes if str(node.op) == "gt")
    assert str(mask.inputs[0].apply.op) == "relu"


@pytest.mark.parametrize(("wide", "narrow"), [
    ("float64", "float32"), ("int64", "int8"), ("float32", "float16"), ("int8", "bool"), ("float64", "int32"),
    ("float32", "int16"), ("int16", "uint8")])
def test_lossless_casts(wide: str, narrow: str) -> None:
    x = leaf(narrow, (3,), "x")
    assert holds_all(wide, narrow)
    assert ops(symbolic([x], [T.cast(T.cast(x, wide), narrow)])) == []


@pytest.mark.parametrize(("wide", "narrow"), [
    ("float32", "int32"), ("float16", "float32"), ("float16", "bfloat16"), ("uint8", "int8"), ("int64", "float32"),
    ("bool", "int8"), ("float64", "int64")])
def test_casts_that_lose(wide: str, narrow: str) -> None:
    assert not holds_all(wide, narrow)


def test_a_cast_that_loses_stays() -> None:
    x = leaf("float32", (3,), "x")
    assert ops(symbolic([x], [x.astype("int32").astype("float32")])) == ["cast{int32}", "cast{float32}"]
