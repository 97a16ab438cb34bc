"""x[pattern] with bounds in memory, and setting and adding to it, on the checked emulator, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import UserError, run

from symconv.codegen.cuda.subtensors import IncSubtensorElements, SubtensorElements
from symconv.ops.basic_indexing import INPUT, IncSubtensor, Slice, Subtensor

PATTERNS = [
    ((Slice(INPUT, INPUT), INPUT), (1, 4, -2), np.s_[1:4, -2]),
    ((Slice(None, INPUT, INPUT), Slice(None, None, -1)), (-1, 2), np.s_[:-1:2, ::-1]),
    ((INPUT, INPUT), (0, -1), np.s_[0, -1]),
    ((Slice(INPUT, None), Slice(1, 2)), (3,), np.s_[3:, 1:2]),
    ((Slice(INPUT, INPUT, INPUT), 2), (5, None, -2), np.s_[5:0:-2, 2]),
    ((Slice(INPUT, INPUT), Slice(None, None)), (4, 2), np.s_[4:2, :]),
]


def scalars(values):
    return [np.int64(0 if value is None else value) for value in values]


@pytest.mark.parametrize(("pattern", "values", "index"), PATTERNS)
def test_subtensor(pattern, values, index):
    x = np.arange(42, dtype=np.float32).reshape(6, 7)
    for view in (x, x[::-1, ::-1], np.asfortranarray(x)):
        found = run(SubtensorElements(), Subtensor(pattern), view, *scalars(values))[0]
        np.testing.assert_array_equal(found, view[index])


@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "bool"])
@pytest.mark.parametrize(("pattern", "values", "index"), PATTERNS)
def test_inc_subtensor(pattern, values, index, mode, dtype):
    x = np.arange(42).reshape(6, 7).astype(dtype)
    region = x[index]
    counted = np.arange(region.size).reshape(region.shape).astype(dtype)
    for y in (np.ones(region.shape, dtype), np.ones((1,) * region.ndim, dtype), counted):
        wanted = x.copy()
        wanted[index] = y if mode == "set" else (wanted[index] | y if dtype == "bool" else wanted[index] + y)
        found = run(IncSubtensorElements(), IncSubtensor(pattern, mode), x, y, *scalars(values))[0]
        np.testing.assert_array_equal(found, wanted)


def test_errors():
    x = np.arange(42, dtype=np.float32).reshape(6, 7)
    with pytest.raises(UserError) as caught:
        run(SubtensorElements(), Subtensor((1, INPUT)), x, np.int64(7))
    assert caught.value.code == 2
    with pytest.raises(UserError) as caught:
        run(IncSubtensorElements(), IncSubtensor((Slice(INPUT, None), 0), "set"), x, np.zeros(4, np.float32), np.int64(1))
    assert caught.value.code == 3
