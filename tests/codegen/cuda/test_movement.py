"""Concatenating, padding, arange, eye and random numbers on CUDA, on the checked emulator."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import run
from scipy import stats

from symconv.codegen.cuda.creation import ARangeElements, EyeElements, PhiloxElements
from symconv.codegen.cuda.joining import ConcatenateParts, PadElements
from symconv.ops.creation import ARange
from symconv.ops.joining import Concatenate
from symconv.ops.padding import Pad
from symconv.ops.random import Random


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concatenate_parts_of_any_strides(axis, dtype):
    base = np.arange(4 * 6 * 10).reshape(4, 6, 10).astype(dtype)
    parts = [base, base[::-1, ::-1, ::-1], np.take(base, [1], axis), np.take(base, [], axis), base.transpose(0, 1, 2)]
    np.testing.assert_array_equal(run(ConcatenateParts(), Concatenate(axis), *parts)[0], np.concatenate(parts, axis))


def test_pad():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (x, x.T, x[::-1, ::2], x[:0]):
        found = run(PadElements(), Pad((1, 0), (2, 3)), view, np.float32(7))[0]
        np.testing.assert_array_equal(found, np.pad(view, [(1, 2), (0, 3)], constant_values=7))
    np.testing.assert_array_equal(run(PadElements(), Pad((), ()), np.float32(3), np.float32(7))[0], 3)


@pytest.mark.parametrize("dtype", ["int64", "int8", "float32", "float64", "float16"])
def test_arange(dtype):
    wide = np.int64 if dtype.startswith("int") else np.float64
    numbers = [wide(each) for each in (-3, 20, 2)]
    np.testing.assert_array_equal(run(ARangeElements(), ARange(dtype), *numbers)[0], np.arange(-3, 20, 2).astype(dtype))
    assert run(ARangeElements(), ARange(dtype), wide(3), wide(3), wide(1))[0].shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "float64", "float16"])
def test_eye(dtype):
    for diagonal in (-2, 0, 3):
        op, *inputs = eye_op(dtype, 5, 7, diagonal)
        np.testing.assert_array_equal(run(EyeElements(), op, *inputs)[0], np.eye(5, 7, diagonal, dtype=dtype))


def eye_op(dtype, rows, columns, diagonal):
    import symconv.tensor as T

    node = T.eye(rows, columns, diagonal, dtype=dtype).apply
    return node.op, *(each.data for each in node.inputs)


@pytest.mark.parametrize(("distribution", "dtype"), [("bits", "uint32"), ("bits", "uint64"), ("uniform", "float32"),
                                                     ("uniform", "float64"), ("uniform", "float16")])
def test_random_is_equal_to_the_reference_to_the_bit(distribution, dtype):
    state, shape = np.array([12345, 2**40 + 7], np.uint64), np.array([3, 7, 11])
    op = Random(distribution, dtype, (None,) * 3)
    np.testing.assert_array_equal(run(PhiloxElements(), op, state, shape)[0], op.reference(state, shape)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_normals(dtype):
    state, shape = np.array([3, 5], np.uint64), np.array([2001])
    op = Random("normal", dtype, (None,))
    found = run(PhiloxElements(), op, state, shape)[0]
    np.testing.assert_allclose(found, op.reference(state, shape)[0], rtol=1e-3 if dtype == "float16" else 1e-6, atol=1e-6)
    assert stats.kstest(found.astype(np.float64), "norm").pvalue > 1e-3


def test_no_numbers():
    assert run(PhiloxElements(), Random("uniform", "float32", (None,)), np.array([1, 2], np.uint64), np.array([0]))[0].shape == (0,)
