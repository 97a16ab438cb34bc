"""A product is rounded before it is added to something: differences of equal products are 0, never just below."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_root_of_a_difference_of_equal_squares(dtype):
    x, y = T.vector("x", dtype=dtype), T.vector("y", dtype=dtype)
    values = np.linspace(0.1, 5, 1000).astype(dtype)
    root = T.sqrt(x * x - y * y)
    one, total = sc.compile([x, y], [root, root.sum()])(values, values)
    assert np.array_equal(one, np.zeros_like(values))
    assert total == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_naive_deviation_of_equal_values(dtype):
    x = T.matrix("x", dtype=dtype)
    mean = x.mean(axis=1)
    deviation = sc.compile([x], T.sqrt((x * x).mean(axis=1) - mean * mean))
    values = np.repeat(np.linspace(0.1, 5, 300).astype(dtype)[:, None], 4, axis=1)
    assert np.array_equal(deviation(values), np.zeros(300, dtype))
