"""Products of matrices against NumPy: shapes, dtypes, errors and gradients."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable, toposort
from symconv.graph.gradient import grad
from symconv.ops import linalg
from symconv.ops.linalg import MatMul
from symconv.ops.tensordot import tensordot
from symconv.ops.unbroadcast import SumTo

RNG = np.random.default_rng(5)
PRODUCTS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
            ((1, 5, 2, 3), (6, 1, 3, 4)), ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
            ((0, 2, 3), (3, 4))]


def both(shape_a, shape_b, dtype="float64"):
    return RNG.normal(size=shape_a).astype(dtype), RNG.normal(size=shape_b).astype(dtype)


@pytest.mark.parametrize("shapes", PRODUCTS)
@pytest.mark.parametrize("name", ["matmul", "dot"])
def test_products(name, shapes):
    a, b = both(*shapes)
    wanted = getattr(np, name)(a, b)
    for known in (True, False):
        x, y = variable_for(a, known), variable_for(b, known)
        result = getattr(linalg, name)(x, y)
        assert result.ndim == wanted.ndim
        assert not known or result.type.shape == wanted.shape
        np.testing.assert_allclose(evaluate([result], {x: a, y: b})[0], wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shapes", [pair for pair in PRODUCTS if 0 not in pair[0]])
def test_gradients(shapes):
    for build in (linalg.matmul, linalg.dot):
        check_gradient(build, *both(*shapes), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shapes", [((2, 3), (3, 2)), ((2,), (2,)), ((2, 2, 1), (1, 1, 2))])
def test_second_gradients(shapes):
    check_gradient(linalg.matmul, *both(*shapes), order=2, rtol=1e-4, atol=1e-6)


def test_dot_with_scalars_is_multiplication():
    a = RNG.normal(size=(2, 3))
    np.testing.assert_array_equal(evaluate([linalg.dot(a, 2)])[0], a * 2)
    with pytest.raises(GraphTypeError, match="scalars"):
        linalg.matmul(a, 2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "float16", "float32"])
def test_dtypes(dtype):
    a, b = (RNG.integers(0, 100, size=shape).astype(dtype) for shape in ((3, 4), (4, 2)))
    result = linalg.matmul(a, b)
    found = evaluate([result])[0]
    wanted = np.matmul(a.astype("float32"), b.astype("float32")).astype("float16") if dtype == "float16" else np.matmul(a, b)
    assert found.dtype == result.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    assert linalg.matmul(a, b.astype("float64")).dtype == "float64"


@pytest.mark.parametrize("axes", [0, 1, 2, ([2], [0]), ([0, 2], [1, 0]), (-1, 0), ([1, 2], [1, 0]), ((), ())])
def test_tensordot(axes):
    shapes = {"2": ((2, 3, 4), (3, 4, 5)), "([0, 2], [1, 0])": ((3, 2, 4), (4, 3, 5)),
              "([1, 2], [1, 0])": ((2, 3, 4), (4, 3, 5))}
    a, b = both(*shapes.get(repr(axes), ((2, 3, 4), (4, 3, 2))))
    wanted = np.tensordot(a, b, axes)
    for known in (True, False):
        x, y = variable_for(a, known), variable_for(b, known)
        found = evaluate([tensordot(x, y, axes)], {x: a, y: b})[0]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    if wanted.size < 60:
        check_gradient(lambda x, y: tensordot(x, y, axes), a, b, rtol=1e-4, atol=1e-6)


def test_tensordot_compares_sizes_before_joining_axes():
    a, b = both((2, 3, 4), (6, 2, 5))
    with pytest.raises(ShapeError, match="axis 1 of the first"):
        tensordot(a, b, ([1, 2], [0, 1]))
    x, y = variable_for(a, False), variable_for(b, False)
    with pytest.raises(ShapeError, match="3 and 6"):
        evaluate([tensordot(x, y, ([1, 2], [0, 1]))], {x: a, y: b})
    for axes, part in ((4, "at most"), (-1, "at most"), (([0], [0, 1]), "as many"), ("ab", "pair"), (None, "pair"),
                       (([0, 0], [1, 1]), "twice"), (([3], [0]), "no axis 3"), (True, "pair")):
        with pytest.raises(ArgumentError, match=part):
            tensordot(x, y, axes)


@pytest.mark.parametrize(("shapes", "formula"), [
    (((4, 2, 3), (4, 3, 5)), "bmk,bkn->bmn"), (((4, 3), (4, 3, 5)), "bk,bkn->bn"), (((4, 2, 3), (4, 3)), "bmk,bk->bm"),
    (((4, 3), (4, 3)), "bk,bk->b")])
def test_batched_dot(shapes, formula):
    a, b = both(*shapes)
    np.testing.assert_allclose(evaluate([linalg.batched_dot(a, b)])[0], np.einsum(formula, a, b))
    check_gradient(linalg.batched_dot, a, b, rtol=1e-4, atol=1e-6)


def test_batched_dot_of_other_ranks():
    with pytest.raises(GraphTypeError, match="rank 2 or 3"):
        linalg.batched_dot(np.zeros(3), np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="leading axes"):
        linalg.batched_dot(np.zeros((2, 3, 4)), np.zeros((5, 4, 3)))


def test_outer():
    a, b = both((2, 2), (3,))
    np.testing.assert_array_equal(evaluate([linalg.outer(a, b)])[0], np.outer(a, b))
    check_gradient(linalg.outer, a, b)


def test_sizes_that_differ_are_told_with_both_shapes():
    a, b = Variable(TensorType("float32", (2, 3))), Variable(TensorType("float32", (4, 5)))
    for product in (linalg.matmul, linalg.dot):
        with pytest.raises(ShapeError) as caught:
            product(a, b)
        for part in ("float32[2,3]", "float32[4,5]", "3 and 4", __file__):
            assert part in str(caught.value)
    with pytest.raises(GraphTypeError, match="one dtype"):
        MatMul().infer(a.type, b.type.with_dtype("float64"))


def test_matrices_of_unknown_sizes_need_no_sum_to():
    a, b = (Variable(TensorType("float32", (None, None))) for _ in range(2))
    gradients = grad(linalg.dot(a, b).sum(), [a, b])
    assert not [node for node in toposort(gradients) if isinstance(node.op, SumTo)]


def test_operator():
    a, b = both((2, 3), (3, 2))
    x = variable_for(a)
    for found, wanted in zip(evaluate([x @ b, b @ x, x.dot(b)], {x: a}), (a @ b, b @ a, a @ b), strict=True):
        np.testing.assert_allclose(found, wanted)
