"""Outputs that are views of other outputs."""
from __future__ import annotations

import numpy as np

import symconv as sc
import symconv.tensor as T


def test_an_output_that_is_a_whole_view_of_another_has_memory_of_its_own():
    x = T.matrix("x", dtype="float64")
    y = T.softplus(x)
    values = np.arange(6.0).reshape(2, 3)
    first, second, third, fourth = sc.compile([x], [y, y[::-1][::-1], y.T.T, y[::-1]])(values)
    for result in (first, second, third, fourth[::-1]):
        np.testing.assert_allclose(result, np.logaddexp(values, 0))
    first[...] = 0
    np.testing.assert_allclose(second, np.logaddexp(values, 0))
    np.testing.assert_allclose(third, np.logaddexp(values, 0))
