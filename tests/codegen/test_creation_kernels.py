"""ARange and Eye kernels against NumPy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runner import make_problem, run_kernel

from symconv.codegen.creation import IMPLEMENTATIONS
from symconv.ops.creation import ARange, Eye
from symconv.target import Target

ARANGE, EYE = (IMPLEMENTATIONS[op][0] for op in (ARange, Eye))


@pytest.mark.parametrize(("dtype", "numbers"), [
    ("int64", (0, 10, 3)), ("int64", (5, -7, -2)), ("int32", (3, 3, 1)), ("uint8", (250, 260, 1)), ("int8", (0, 40000, 1)),
    ("bool", (0, 2, 1)), ("float32", (0.0, 1.0, 0.1)), ("float64", (0.1, 7.3, 0.1)), ("float64", (2.0, -50000.0, -0.7)),
    ("float64", (0.0, 0.0, 1.0))])
def test_arange(dtype: str, numbers: tuple[Any, ...]) -> None:
    start, stop, step = numbers
    wide = "float64" if dtype.startswith("float") else "int64"
    length = max(0, int(np.ceil((stop - start) / step)))
    wanted = (np.array(start, wide) + np.arange(length).astype(wide) * np.array(step, wide)).astype(dtype)
    (z,) = run_kernel(ARANGE, ARange(dtype), *(np.array(number, wide) for number in numbers))
    np.testing.assert_array_equal(z, wanted)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "float32", "float64"])
def test_eye(dtype: str) -> None:
    for rows, columns, diagonal in ((3, 3, 0), (2, 5, 1), (4, 3, -2), (3, 3, 3), (3, 3, -3), (0, 4, 0), (4, 0, 1), (1, 1, 0),
                                    (3, 3, 2**63 - 1), (3, 3, -2**63), (200, 300, 50)):
        found = run_kernel(EYE, Eye(dtype), *(np.array(number, "int64") for number in (rows, columns, diagonal)))[0]
        wanted = np.zeros((rows, columns), dtype)
        for row in range(rows):
            if 0 <= row + diagonal < columns:
                wanted[row, row + diagonal] = 1
        np.testing.assert_array_equal(found, wanted)


def test_half_floats_are_counted_by_the_reference() -> None:
    problem = make_problem(ARange("float16"), *(np.array(number, "float64") for number in (0, 3, 1)))
    assert ARANGE.refuse(problem, Target()) == "rounding to float16 has no C type"
