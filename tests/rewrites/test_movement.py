"""Dimshuffles, reshapes, broadcasts, slices, reductions and constants."""
from __future__ import annotations

import numpy as np
import pytest
from rewriting import bound, leaf, ops, symbolic

import symconv.tensor as T
from symconv.graph import Constant
from symconv.graph.gradient import grad
from symconv.rewrites import folding

RNG = np.random.default_rng(3)


def test_transposes_cancel_and_merge() -> None:
    x = leaf("float64", (2, 3, 4), "x")
    assert symbolic([x], [x.transpose(2, 0, 1).transpose(1, 2, 0)]).outputs == (x,)
    merged = symbolic([x], [x.transpose(2, 0, 1).transpose(2, 0, 1).dimshuffle(0, "x", 1, 2)])
    assert ops(merged) == ["DimShuffle{(1, x, 2, 0)}"]


def test_reshapes_merge() -> None:
    x = leaf("float64", (2, 3, 4), "x")
    assert symbolic([x], [x.reshape((6, 4)).reshape((2, 3, 4))]).outputs == (x,)
    assert ops(symbolic([x], [x.reshape((24,)).reshape((4, 6))])) == ["Reshape{(4, 6)}"]
    assert ops(symbolic([x], [x.reshape((2, 1, 3, 4))])) == ["DimShuffle{(0, x, 1, 2)}"]


def test_a_reshape_that_checks_stays() -> None:
    x = leaf("float64", (None,), "x")
    assert len(ops(symbolic([x], [x.reshape((5, 5)).reshape((-1,))]))) == 2


def test_full_slices_go() -> None:
    x = T.dmatrix("x")
    assert symbolic([x], [x[:, ::1][0:]]).outputs == (x,)


def test_gradient_of_a_flip_is_a_flip() -> None:
    x = leaf("float64", (3, 4), "x")
    assert ops(symbolic([x], [grad((x[::-1] * x).sum(), x)])) == ["Subtensor{::-1, :}", "add"]


def test_transposed_product() -> None:
    a, b = T.dmatrix("a"), T.dmatrix("b")
    values = {a: RNG.normal(size=(2, 3)), b: RNG.normal(size=(3, 4))}
    found = bound(values, [T.dot(a, b).T])[1][0]
    np.testing.assert_allclose(found, (values[a] @ values[b]).T, rtol=1e-13)
    assert ops(symbolic([a, b], [T.dot(b.T, a.T).T])) == ["matmul"]
    kept = T.dot(a, b)
    assert ops(symbolic([a, b], [kept, kept.T])) == ["matmul", "DimShuffle{(1, 0)}"]


def test_reductions() -> None:
    x = leaf("float64", (2, 3, 1), "x")
    value = RNG.normal(size=(2, 3, 1))
    graph, (found,), _ = bound({x: value}, [x.sum(axis=2).sum(axis=0).sum()])
    assert ops(graph) == ["sum{axes=(0, 1)}"] or ops(graph) == ["DimShuffle{(0, 1)}", "sum{axes=(0, 1)}"]
    np.testing.assert_allclose(found, value.sum(), rtol=1e-13)
    assert ops(symbolic([x], [x.max(axis=2, keepdims=True)])) == []
    assert ops(symbolic([x], [x.max(axis=0).max(axis=0)])) == ["max{axes=(0, 1)}"]
    assert len(ops(symbolic([x], [x.max(axis=0).sum(axis=0)]))) == 2


def test_sum_to_becomes_a_sum_or_nothing() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    gradient = grad((x * y).sum(), x)
    for shape, count in (((1, 3), 1), ((4, 3), 0)):
        values = {x: RNG.normal(size=shape), y: RNG.normal(size=(4, 3))}
        graph, (found,), _ = bound(values, [gradient])
        assert not any("sum_to" in name for name in ops(graph))
        assert sum(name.startswith("sum") for name in ops(graph)) == count
        np.testing.assert_allclose(found, np.broadcast_to(values[y], (4, 3)).sum(0, keepdims=True) if count else values[y])


def test_broadcast_operands_go() -> None:
    x = leaf("float64", (3,), "x")
    y = leaf("float64", (4, 3), "y")
    values = {x: RNG.normal(size=3), y: RNG.normal(size=(4, 3))}
    wide = T.broadcast_to(x, (4, 3))
    assert ops(bound(values, [y - wide])[0]) == ["sub"]
    assert ops(bound(values, [T.exp(wide)])[0]) == ["exp", "BroadcastTo{(4, 3)}"]


def test_constants_fold() -> None:
    x = T.dvector("x")
    graph = symbolic([x], [x * T.exp(T.constant(np.zeros(3))).sum()])
    assert ops(graph) == ["mul"]
    assert any(isinstance(each, Constant) and each.data == 3 for each in graph.nodes[0].inputs)


def test_large_constants_and_broadcasts_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MAX_ELEMENTS", 100)
    assert ops(symbolic([], [T.arange(99)])) == []
    assert len(ops(symbolic([], [T.eye(11)]))) == 1
    assert ops(symbolic([], [T.exp(T.constant(np.zeros(200)))])) == []
    assert ops(symbolic([], [T.zeros((50, 50))])) == ["BroadcastTo{(50, 50)}"]


def test_an_error_in_a_constant_is_left_to_the_call() -> None:
    x = T.constant(np.zeros(3))
    broken = x[T.constant(np.array([7]))]
    graph = symbolic([], [broken])
    assert any(name.startswith("Gather") for name in ops(graph))


def test_a_shape_keeps_no_value_alive() -> None:
    x = T.dmatrix("x")
    assert ops(symbolic([x], [T.exp(T.exp(x)).shape[0]])) == ["Shape", "Subtensor{0}"]
