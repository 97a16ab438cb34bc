"""Concatenate and what is built on it, against NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.ops.joining import concatenate, flip, join, repeat, roll, split, stack, tile

RNG = np.random.default_rng(5)


def tensor(*shape: int | None, dtype: str = "float32") -> Variable:
    return Variable(TensorType(dtype, shape))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("known", [True, False])
def test_concatenate_and_stack(axis: int, known: bool) -> None:
    arrays = [RNG.standard_normal((2, 3)) for _ in range(3)]
    variables = [variable_for(array, known) for array in arrays]
    values = dict(zip(variables, arrays, strict=True))
    for function, reference in ((concatenate, np.concatenate), (stack, np.stack)):
        expected = reference(arrays, axis)
        result = function(variables, axis)
        assert result.type.shape == (expected.shape if known else (None,) * expected.ndim) or function is stack
        np.testing.assert_array_equal(evaluate([result], values)[0], expected)
    np.testing.assert_array_equal(evaluate([join(axis, *variables)], values)[0], np.concatenate(arrays, axis))


def test_types_of_joined_tensors() -> None:
    assert concatenate([tensor(None, 3), tensor(2, None)], 0).type.shape == (None, 3)
    assert concatenate([tensor(None, 3), tensor(2, None)], 1).type.shape == (2, None)
    assert concatenate([tensor(2, dtype="int64"), tensor(3)]).type == TensorType("float32", (5,))
    assert stack([tensor(), 1.0, 2]).type == TensorType("float32", (3,))
    assert concatenate([np.zeros((0, 2)), np.zeros((0, 2))]).type.shape == (0, 2)


def test_join_errors_name_axis_and_shapes() -> None:
    with pytest.raises(ShapeError, match=r"axis 0: the sizes of axis 1 differ\n  found: float32\[2,3\], float32\[2,4\]"):
        concatenate([tensor(2, 3), tensor(2, 4)])
    node = concatenate([tensor(None, 3), tensor(2, None)]).apply
    with pytest.raises(ShapeError, match="axis 1 differ"):
        node.op.infer_bound([TensorType("float32", (1, 3)), TensorType("float32", (2, 4))], {})
    with pytest.raises(GraphTypeError, match="one rank"):
        concatenate([tensor(2), tensor(2, 2)])
    with pytest.raises(GraphTypeError, match="use stack"):
        concatenate([tensor(), tensor()])
    with pytest.raises(GraphTypeError, match="at least one"):
        concatenate([])
    with pytest.raises(ArgumentError, match="no axis 2"):
        concatenate([tensor(2, 3)], 2)
    with pytest.raises(GraphTypeError, match="one shape"):
        stack([tensor(2), tensor()])


def test_split() -> None:
    x = np.arange(24.0).reshape(6, 4)
    for known in (True, False):
        variable = variable_for(x, known)
        for sizes, cuts, axis in (([1, 2, 3], [1, 3], 0), ([0, 4], [0], 1), ([6], [], 0)):
            parts = split(variable, sizes, axis)
            assert [part.type.shape[axis] for part in parts] == sizes
            for found, expected in zip(evaluate(parts, {variable: x}), np.split(x, cuts, axis), strict=True):
                np.testing.assert_array_equal(found, expected)
        for found, expected in zip(evaluate(split(variable, 2, -1), {variable: x}), np.split(x, 2, 1), strict=True):
            np.testing.assert_array_equal(found, expected)
    n = Variable(TensorType("int64", ()))
    found = evaluate(split(variable, [n, variable.shape[0] - n]), {variable: x, n: np.array(2)})
    assert [part.shape for part in found] == [(2, 4), (4, 4)]


@pytest.mark.parametrize("sizes", [[1, 2], [4, 3], [2, 5]])
def test_split_into_parts_that_do_not_add_up(sizes: list[int]) -> None:
    x = np.zeros((6, 2), "float32")
    with pytest.raises(ShapeError, match="do not add up to axis 0"):
        split(x, sizes)
    variable = tensor(None, 2)
    with pytest.raises(ShapeError, match="elements"):
        evaluate(split(variable, sizes), {variable: x})


def test_split_into_unequal_parts() -> None:
    with pytest.raises(ShapeError, match="into 4 equal parts"):
        split(tensor(6, 2), 4)
    variable = tensor(None, 2)
    with pytest.raises(ShapeError, match="12 elements"):
        evaluate(split(variable, 4), {variable: np.zeros((6, 2), "float32")})
    with pytest.raises(ArgumentError, match="number of parts"):
        split(variable, 0)


@pytest.mark.parametrize("repetitions", [2, (2, 3), (1, 2, 1), (0, 2), (2, 1, 1, 3)])
def test_tile(repetitions: Any) -> None:
    x = RNG.standard_normal((2, 3))
    expected = np.tile(x, repetitions)
    assert tile(variable_for(x), repetitions).type.shape == expected.shape
    for known in (True, False):
        variable = variable_for(x, known)
        np.testing.assert_array_equal(evaluate([tile(variable, repetitions)], {variable: x})[0], expected)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("repeats", [0, 1, 3, "each"])
def test_repeat(repeats: Any, axis: int | None) -> None:
    x = RNG.standard_normal((2, 3))
    counts = [2, 0, 1, 4, 1, 3][:x.size if axis is None else x.shape[axis]] if repeats == "each" else repeats
    variable = variable_for(x)
    result = repeat(variable, counts, axis)
    expected = np.repeat(x, counts, axis)
    assert result.type.shape == expected.shape
    np.testing.assert_array_equal(evaluate([result], {variable: x})[0], expected)
    with pytest.raises(ShapeError, match="1 counts"):
        variable.repeat([1], 0)


def test_symbolic_repetitions() -> None:
    x, n = tensor(2, 3, dtype="float64"), Variable(TensorType("int64", ()))
    values = {x: RNG.standard_normal((2, 3)), n: np.array(2)}
    found = evaluate([tile(x, (n, 1)), repeat(x, n, 0)], values)
    np.testing.assert_array_equal(found[0], np.tile(values[x], (2, 1)))
    np.testing.assert_array_equal(found[1], np.repeat(values[x], 2, 0))


@pytest.mark.parametrize("known", [True, False])
def test_flip_and_roll(known: bool) -> None:
    x = RNG.standard_normal((3, 4))
    variable = variable_for(x, known)
    for axis in (None, 0, -1, (0, 1)):
        np.testing.assert_array_equal(evaluate([flip(variable, axis)], {variable: x})[0], np.flip(x, axis))
    for shift, axis in ((1, None), (-5, 0), (3, 1), (0, 0), ((1, 2), (0, 1)), (-1, [0, -1]), (100, 1)):
        np.testing.assert_array_equal(evaluate([roll(variable, shift, axis)], {variable: x})[0], np.roll(x, shift, axis))
    n = Variable(TensorType("int64", ()))
    np.testing.assert_array_equal(evaluate([roll(variable, n, 1)], {variable: x, n: np.array(-2)})[0], np.roll(x, -2, 1))
    empty = variable_for(np.zeros((0, 2)), known)
    assert evaluate([roll(empty, 3, 0)], {empty: np.zeros((0, 2))})[0].shape == (0, 2)
    with pytest.raises(ArgumentError, match="one shift for each"):
        roll(variable, (1, 2), (0,))


def test_gradients() -> None:
    a, b = RNG.standard_normal((2, 2)), RNG.standard_normal((1, 2))
    check_gradient(lambda a, b: concatenate([a, b, a], 0) ** 2, a, b, order=2, rtol=1e-4, atol=1e-5)
    check_gradient(lambda a, b: stack([a, a * b], 1) ** 2, a, b)
    check_gradient(lambda a: split(a, [1, 1])[1] ** 2, a)
    for build in (lambda a: tile(a, (2, 1, 2)) ** 2, lambda a: repeat(a, 2, 1) ** 2, lambda a: roll(a, 1, 1) ** 2 * a,
                  lambda a: flip(a) ** 2 * a):
        check_gradient(build, a)
