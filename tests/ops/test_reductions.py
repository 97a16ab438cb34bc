"""Reductions and positions of extrema against NumPy: values, dtypes, axes, empty axes, NaN and gradients."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv import dtypes
from symconv.errors import ArgumentError, InternalError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.graph.gradient import grad
from symconv.ops import reductions as r
from symconv.ops.scalar import Instruction, ScalarProgram

RNG = np.random.default_rng(3)
CUBE = RNG.normal(size=(2, 3, 4))
AXES = [None, 0, -1, (0, 2), (2, 0), (1,), ()]


def value_of(variable, bindings=None):
    return evaluate([variable], bindings)[0]


def gradient_at(build, array):
    x = variable_for(array)
    return value_of(grad(build(x).sum(), x), {x: array})


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "any", "all"])
def test_values_and_shapes(kind, axis, keepdims):
    array = CUBE > 0 if kind in ("any", "all") else CUBE
    wanted = getattr(np, kind)(array, axis=axis, keepdims=keepdims)
    for known in (True, False):
        x = variable_for(array, known)
        result = getattr(r, kind)(x, axis, keepdims=keepdims)
        assert result.ndim == wanted.ndim
        assert not known or result.type.shape == wanted.shape
        found = value_of(result, {x: array})
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@pytest.mark.parametrize("dtype", [name for name in dtypes.DTYPES if name != "bfloat16"])
def test_dtypes_of_sums(dtype):
    ones = np.ones(300, dtype)
    wanted = {"b": "int64", "i": "int64", "u": "uint64"}.get(dtypes.kind(dtype), dtype)
    total = value_of(r.sum(ones))
    assert total.dtype == r.prod(ones).dtype == wanted
    assert total == 300
    assert r.max(ones).dtype == dtype
    assert r.any(ones).dtype == "bool"
    assert r.sum(ones, dtype="float64").dtype == "float64"


def test_sums_are_accumulated_wide():
    assert value_of(r.sum(np.full(4096, 16.0, "float16"))) == np.float16(np.inf)
    many = np.full(2048, 1.125, "float16")
    assert value_of(r.sum(many)) == 2304
    long = RNG.random(1 << 18).astype("float32")
    np.testing.assert_allclose(value_of(r.sum(long)), long.astype("float64").sum(), rtol=1e-6)
    assert value_of(r.sum(np.array([np.iinfo("int64").max, 1]))) == np.iinfo("int64").min
    assert value_of(r.sum(np.array([200, 100], "uint8"))) == 300


def test_empty_axes():
    empty = np.zeros((0, 3))
    np.testing.assert_array_equal(value_of(r.sum(empty, 0)), np.zeros(3))
    np.testing.assert_array_equal(value_of(r.prod(empty, 0)), np.ones(3))
    assert not value_of(r.any(empty))
    assert value_of(r.all(empty))
    assert value_of(r.max(empty, 1)).shape == value_of(r.argmax(empty, 1)).shape == (0,)
    for wrong in (lambda: r.max(empty, 0), lambda: r.min(empty), lambda: r.argmax(empty, 0), lambda: r.argmin(empty)):
        with pytest.raises(ShapeError, match="axis 0, which is empty"):
            wrong()
    x = Variable(TensorType("float64", (None, 3)))
    with pytest.raises(ShapeError, match="axis 0"):
        value_of(r.max(x, 0), {x: empty})


def test_scalars_reduce_to_themselves():
    for kind in ("sum", "prod", "max", "min"):
        assert value_of(getattr(r, kind)(2.5)) == np.float32(2.5)
    assert value_of(r.argmax(2.5)) == 0


def test_wrong_axes():
    x = Variable(TensorType("float32", (2, 3)))
    for axis, part in ((2, "no axis 2"), (-3, "no axis -3"), ((0, -2), "twice"), (0.5, "whole number"), ((0, 0), "twice")):
        with pytest.raises(ArgumentError, match=part):
            r.sum(x, axis)
    with pytest.raises(ArgumentError):
        r.argmax(x, 2)


def test_nan_wins_and_infinities():
    array = np.array([[1, np.nan, 3], [-np.inf, 2, np.inf]])
    for kind in ("max", "min", "argmax", "argmin", "sum"):
        with np.errstate(invalid="ignore"):
            wanted = getattr(np, kind)(array, axis=1)
        np.testing.assert_array_equal(value_of(getattr(r, kind)(array, axis=1)), wanted)


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(kind, axis, keepdims):
    array = RNG.integers(0, 3, size=(4, 5))
    wanted = getattr(np, kind)(array, axis=axis, keepdims=keepdims)
    for known in (True, False):
        x = variable_for(array, known)
        found = value_of(getattr(r, kind)(x, axis, keepdims), {x: array})
        assert found.dtype == "int64"
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_gradients(kind, axis):
    check_gradient(lambda x: getattr(r, kind)(x, axis), CUBE[:, :2, :3], order=2, rtol=1e-4, atol=1e-6)
    check_gradient(lambda x: getattr(r, kind)(x, axis, keepdims=True), CUBE)


def test_the_first_extremum_gets_the_gradient():
    ties = np.array([[1.0, 3, 3], [3, 0, 1]])
    np.testing.assert_array_equal(gradient_at(r.max, ties), [[0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(gradient_at(lambda x: r.max(x, 0), ties), [[0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(gradient_at(lambda x: r.min(x, 1), ties), [[1, 0, 0], [0, 1, 0]])
    cube = np.zeros((2, 3, 2))
    found = gradient_at(lambda x: r.max(x, (0, 2)), cube)
    np.testing.assert_array_equal(found[0, :, 0], [1, 1, 1])
    assert found.sum() == 3
    assert gradient_at(lambda x: r.max(x, (1, 2)), np.zeros((0, 3, 2))).shape == (0, 3, 2)
    np.testing.assert_array_equal(gradient_at(r.max, np.array([1, np.nan, 2])), [0, 1, 0])


def test_product_with_zeros():
    rows = np.array([[2.0, 3, 4], [0, 3, 4], [0, 0, 4], [0, 0, 0]])
    np.testing.assert_array_equal(gradient_at(lambda x: r.prod(x, 1), rows), [[12, 8, 6], [12, 0, 0], [0, 0, 0], [0, 0, 0]])
    check_gradient(lambda x: r.prod(x, 1), rows)


def test_gradient_of_an_empty_sum():
    assert gradient_at(lambda x: r.sum(x, 1), np.zeros((3, 0))).shape == (3, 0)
    assert gradient_at(lambda x: r.prod(x, 1), np.zeros((3, 0))).shape == (3, 0)


def test_methods():
    x = variable_for(CUBE)
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "argmax", "argmin"):
        np.testing.assert_allclose(value_of(getattr(x, name)(axis=1), {x: CUBE}), getattr(CUBE, name)(axis=1))
    assert value_of((x > 10).any(), {x: CUBE}) == np.False_
    assert value_of((x < 10).all(), {x: CUBE}) == np.True_


def test_a_fused_reduction_broadcasts_its_inputs():
    program = ScalarProgram(("float64", "float64"), (Instruction("mul", (0, 1), "float64"),), (2,))
    op = r.Reduce("sum", (1,), False, "float64", program)
    a, b = CUBE, RNG.normal(size=(3, 1))
    types = [TensorType("float64", shape) for shape in ((None, 3, 4), (3, 1), (None, 4))]
    assert op.infer(*types[:2]) == (types[2],)
    np.testing.assert_allclose(op.reference(a, b)[0], (a * b).sum(axis=1))
    constant = ScalarProgram(("float64",), (Instruction("constant", (), "float64", 2.0),), (1,))
    np.testing.assert_array_equal(r.Reduce("sum", (0, 1, 2), False, "float64", constant).reference(a)[0], 2 * a.size)
    with pytest.raises(InternalError, match="after gradients"):
        op.grad(r.sum(a).apply, (None,))
    with pytest.raises(ShapeError):
        op.infer(TensorType("float64", (2, 3, 4)), TensorType("float64", (5,)))
    assert "mul(v0, v1)" in str(op)
