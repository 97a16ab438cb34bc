"""ARange, Eye and filled tensors against NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv.config import config
from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.ops.creation import (
    alloc,
    arange,
    eye,
    full,
    full_like,
    identity_like,
    one_hot,
    ones,
    ones_like,
    second,
    tri,
    tril,
    triu,
    zeros,
    zeros_like,
)


def scalar(dtype: str = "int64") -> Variable:
    return Variable(TensorType(dtype, ()))


@pytest.mark.parametrize("arguments", [
    (5,), (0,), (-3,), (2, 11, 3), (10, 0, -3), (0, 10, -1), (3, 3), (0, 1, 0.25), (1.0, 0.0, -0.1), (0, 0.3, 0.1), (0.5, 4),
])
def test_arange_gives_numpys_answer(arguments: tuple[Any, ...]) -> None:
    expected = np.arange(*arguments)
    dtype = "int64" if expected.dtype.kind == "i" else "float64"
    result = arange(*arguments, dtype=dtype)
    assert result.type == TensorType(dtype, expected.shape)
    np.testing.assert_allclose(evaluate([result])[0], expected, rtol=1e-15, atol=1e-15)
    inputs = [scalar(dtype) for _ in arguments]
    (found,) = evaluate([arange(*inputs)], dict(zip(inputs, map(np.dtype(dtype).type, arguments), strict=True)))
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)


def test_arange_types_and_errors() -> None:
    n = scalar("int32")
    assert arange(n).type == TensorType("int32", (None,))
    assert arange(0, 1, 0.5).dtype == config.floatX
    assert arange(Variable(TensorType("float32", (7, None))).shape[0]).type.shape == (7,)
    assert evaluate([arange(3, dtype="int8"), arange(3, dtype="float16")])[1].dtype == np.float16
    node = arange(1, n, 2).apply
    (bound,) = node.op.infer_bound([each.type for each in node.inputs], {0: np.array(1), 1: np.array(6), 2: np.array(2)})
    assert bound.shape == (3,)
    with pytest.raises(ArgumentError, match="step"):
        arange(0, 5, 0)
    with pytest.raises(GraphTypeError, match="scalars"):
        arange([1, 2])
    with pytest.raises(GraphTypeError, match="takes integers"):
        arange(0, 2.5, dtype="int64")
    with pytest.raises(ArgumentError, match="finite"):
        arange(0, float("inf"), 1.0)


def test_gradient_of_arange() -> None:
    check_gradient(lambda start, step: arange(start, 10.0, step, dtype="float64") ** 2, np.array(0.5), np.array(2.1))


@pytest.mark.parametrize(("n", "m", "k"), [(3, None, 0), (3, 4, 1), (4, 2, -1), (0, 3, 0), (2, 2, 9)])
def test_eye_and_tri(n: int, m: int | None, k: int) -> None:
    inputs = [scalar() for _ in range(3)]
    values = dict(zip(inputs, map(np.array, (n, n if m is None else m, k)), strict=True))
    for function, reference in ((eye, np.eye), (tri, np.tri)):
        expected = reference(n, m, k, dtype="float32")
        result = function(n, m, k, dtype="float32")
        assert result.type.shape == expected.shape
        np.testing.assert_array_equal(evaluate([result])[0], expected)
        np.testing.assert_array_equal(evaluate([function(*inputs, dtype="float32")], values)[0], expected)


def test_eye_types_and_errors() -> None:
    x = Variable(TensorType("float64", (None, 3)))
    assert identity_like(x).type == TensorType("float64", (None, 3))
    assert eye(2).dtype == config.floatX
    with pytest.raises(ShapeError, match=r"\(-1, 2\)"):
        eye(-1, 2)
    with pytest.raises(GraphTypeError, match="matrix"):
        identity_like(x[0])


def test_triangles() -> None:
    x = np.arange(1.0, 25).reshape(2, 3, 4)
    for known in (True, False):
        variable = variable_for(x, known)
        for k in (-1, 0, 2):
            found = evaluate([tril(variable, k), triu(variable, k)], {variable: x})
            np.testing.assert_array_equal(found[0], np.tril(x, k))
            np.testing.assert_array_equal(found[1], np.triu(x, k))
    with pytest.raises(GraphTypeError, match="rank 2"):
        tril(np.zeros(3))


def test_filled_tensors() -> None:
    x = Variable(TensorType("float64", (None, 3)))
    values = {x: np.ones((2, 3))}
    for result, expected in (
            (zeros((2, 3)), np.zeros((2, 3), config.floatX)),
            (zeros(()), np.zeros((), config.floatX)),
            (zeros((0, 2), "float64"), np.zeros((0, 2))),
            (zeros(x.shape), np.zeros((2, 3), config.floatX)),
            (zeros((x.shape[1], x.shape[0])), np.zeros((3, 2), config.floatX)),
            (ones(4, "int8"), np.ones(4, "int8")),
            (full((2, 2), 3), np.full((2, 2), 3)),
            (full((2, 3), np.arange(3.0)), np.array([[0.0, 1, 2]] * 2)),
            (alloc(1.5, 2, 3), np.full((2, 3), 1.5, config.floatX)),
            (zeros_like(x), np.zeros((2, 3))),
            (ones_like(x, "bool"), np.ones((2, 3), bool)),
            (full_like(x, 7), np.full((2, 3), 7.0)),
            (second(x, np.int8(2)), np.full((2, 3), 2, "int8"))):
        (found,) = evaluate([result], values)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert zeros_like(x).type.shape == (None, 3)
    assert zeros((x.shape[0], 4)).type.shape == (None, 4)


def test_gradient_reaches_the_value_of_full() -> None:
    check_gradient(lambda x, value: full(x.shape, value) * x, np.ones((2, 3)), np.array(1.5), order=2)


@pytest.mark.parametrize("labels", [[2, 0, 1], [[0], [3]], 1, [], [5, -1]])
def test_one_hot(labels: Any) -> None:
    y = np.array(labels, dtype="int32")
    variable = variable_for(y)
    expected = (y[..., None] == np.arange(4)).astype(config.floatX)
    result = one_hot(variable, 4)
    assert result.type.shape == expected.shape
    np.testing.assert_array_equal(evaluate([result], {variable: y})[0], expected)
    with pytest.raises(GraphTypeError, match="integer labels"):
        one_hot(np.zeros(2), 4)
