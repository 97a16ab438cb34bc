"""Padding against NumPy's pad."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.ops.padding import MODES, pad


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("widths", [0, 2, (1, 3), ((0, 1), (2, 0)), ((9, 8), (5, 11)), [[1, 1], [0, 0]]])
@pytest.mark.parametrize("shape", [(4, 3), (1, 2)])
def test_pad_gives_numpys_answer(shape: tuple[int, int], widths: Any, mode: str) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    expected = np.pad(x, widths, mode=mode)
    assert pad(variable_for(x), widths, mode).type.shape == expected.shape
    for known in (True, False):
        variable = variable_for(x, known)
        np.testing.assert_array_equal(evaluate([pad(variable, widths, mode)], {variable: x})[0], expected)


def test_the_value_of_a_constant_padding() -> None:
    x = np.arange(3, dtype="int8")
    variable, value = variable_for(x), Variable(TensorType("int8", ()))
    for result in (pad(variable, 1, constant_values=-7), pad(variable, 1, constant_values=value)):
        np.testing.assert_array_equal(evaluate([result], {variable: x, value: np.int8(-7)})[0], [-7, 0, 1, 2, -7])
    with pytest.raises(GraphTypeError, match="can not hold"):
        pad(variable, 1, constant_values=0.5)
    with pytest.raises(GraphTypeError, match="scalar"):
        pad(variable, 1, constant_values=x)


def test_bool_is_padded_with_false_unless_told_otherwise() -> None:
    x = np.array([[True, False]])
    np.testing.assert_array_equal(evaluate([pad(x, 1)])[0], np.pad(x, 1), strict=True)
    for value in (0, 1, False, True):
        expected = np.pad(x, 1, constant_values=value)
        np.testing.assert_array_equal(evaluate([pad(x, 1, constant_values=value)])[0], expected, strict=True)
    with pytest.raises(GraphTypeError, match="can not hold"):
        pad(x, 1, constant_values=2)


def test_empty_and_scalar_tensors() -> None:
    assert evaluate([pad(np.zeros((0, 2)), 1)])[0].shape == (2, 4)
    assert evaluate([pad(np.float64(2), 0)])[0] == 2.0
    with pytest.raises(ShapeError, match="axis 0 is empty"):
        pad(np.zeros((0, 2)), 1, "edge")


def test_errors() -> None:
    x = np.zeros((2, 3))
    for widths in (-1, (1, 2, 3), 1.5, ((1, 1), (1, -1)), "a"):
        with pytest.raises(ArgumentError, match="pad_width"):
            pad(x, widths)
    with pytest.raises(ArgumentError, match="no such mode"):
        pad(x, 1, "mirror")


@pytest.mark.parametrize("mode", MODES)
def test_gradients(mode: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3))
    check_gradient(lambda x: pad(x, ((1, 0), (2, 1)), mode) ** 2, x, order=2, rtol=1e-4, atol=1e-5)


def test_gradient_of_the_value() -> None:
    x = np.random.default_rng(1).standard_normal((2, 3))
    check_gradient(lambda x, value: pad(x, ((1, 0), (2, 1)), constant_values=value) ** 2, x, np.array(0.3), order=2,
                   rtol=1e-4, atol=1e-5)
