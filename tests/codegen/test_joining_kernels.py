"""Concatenation and padding kernels against NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runner import make_problem, run_kernel

from symconv.codegen.joining import IMPLEMENTATIONS
from symconv.ops.joining import Concatenate
from symconv.ops.padding import Pad
from symconv.target import Target

CONCATENATE, PAD = (IMPLEMENTATIONS[op][0] for op in (Concatenate, Pad))


@pytest.mark.parametrize(("axis", "shapes"), [
    (0, [(3,)]), (0, [(3,), (0,), (5,)]), (1, [(4, 1), (4, 7), (4, 2)]), (0, [(2, 3, 4), (5, 3, 4)]),
    (2, [(2, 3, 4), (2, 3, 1)]), (1, [(0, 3), (0, 2)]), (1, [(300, 70), (300, 65)]), (0, [(50000,), (1,)])], ids=str)
def test_concatenate(axis: int, shapes: list[tuple[int, ...]]) -> None:
    generator = np.random.default_rng(1)
    parts = [generator.normal(size=shape) for shape in shapes]
    np.testing.assert_array_equal(run_kernel(CONCATENATE, Concatenate(axis), *parts)[0], np.concatenate(parts, axis))
    turned = [np.ascontiguousarray(part.T).T[..., ::-1] for part in parts]
    np.testing.assert_array_equal(run_kernel(CONCATENATE, Concatenate(axis), *turned)[0], np.concatenate(turned, axis))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "uint32", "float64"])
def test_concatenate_moves_bytes_of_any_dtype(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(run_kernel(CONCATENATE, Concatenate(0), x, x[:1])[0], np.concatenate([x, x[:1]]))


def test_the_number_of_parts_needs_no_new_source() -> None:
    sources = {CONCATENATE.build(make_problem(Concatenate(axis), *[np.zeros((2, 3))] * count), Target()).source
               for axis, count in ((0, 2), (1, 5))}
    assert len(sources) == 1


@pytest.mark.parametrize(("shape", "before", "after"), [
    ((), (), ()), ((4,), (0,), (0,)), ((4,), (2,), (3,)), ((0,), (1,), (2,)), ((3, 5), (1, 0), (0, 2)),
    ((2, 3, 4), (1, 2, 3), (3, 2, 1)), ((2, 0, 3), (0, 1, 1), (0, 0, 1)), ((200, 300), (3, 3), (3, 3)),
    ((1, 1, 1, 1, 2), (0, 1, 0, 1, 0), (1, 0, 1, 0, 1))], ids=str)
def test_pad(shape: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]) -> None:
    x = np.random.default_rng(2).normal(size=shape).astype("float32")
    for given in (x, x.T.copy().T):
        (z,) = run_kernel(PAD, Pad(before, after), given, np.array(-2.5, "float32"))
        widths: Any = list(zip(before, after, strict=True))
        np.testing.assert_array_equal(z, np.pad(given, widths, constant_values=-2.5) if widths else given)


def test_pad_moves_half_floats() -> None:
    x = np.array([1, 2], "float16")
    (z,) = run_kernel(PAD, Pad((1,), (1,)), x, np.array(0.5, "float16"))
    np.testing.assert_array_equal(z, np.pad(x, 1, constant_values=0.5))
