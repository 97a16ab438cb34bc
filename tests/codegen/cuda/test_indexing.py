"""Gathers and scatters on CUDA, on the checked emulator, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import UserError, run

from symconv.codegen.cuda.indexing import GatherElements, ScatterRanges
from symconv.ops.integer_indexing import Gather, ScatterAdd, ScatterSet


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def numbers(rng, shape, dtype):
    return rng.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "float16"])
def test_gather_rows(rng, dtype):
    x, index = numbers(rng, (6, 4, 3), dtype), rng.integers(-6, 6, (5, 2))
    np.testing.assert_array_equal(run(GatherElements(), Gather(1), x, index)[0], x[index])


def test_gather_by_several_broadcast_strided_indices(rng):
    x = numbers(rng, (6, 4, 3), "float32")
    one, other = rng.integers(-6, 6, (1, 8))[:, ::2], rng.integers(-4, 4, (5, 1))[::-1]
    np.testing.assert_array_equal(run(GatherElements(), Gather(2), x, one, other)[0], x[one, other])
    every = [rng.integers(0, size, 7) for size in x.shape]
    np.testing.assert_array_equal(run(GatherElements(), Gather(3), x, *every)[0], x[tuple(every)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "float16", "bool"])
def test_scatter_add_repeats_add_up_in_order(rng, dtype):
    x, index = numbers(rng, (6, 5), dtype), rng.integers(-6, 6, 40)
    y = numbers(rng, (40, 5), dtype)
    wanted = x.copy()
    if dtype == "bool":
        np.logical_or.at(wanted, index, y)
    else:
        np.add.at(wanted, index, y)
    np.testing.assert_array_equal(run(ScatterRanges(), ScatterAdd(1), x, y, index)[0], wanted)


def test_scatter_of_single_elements_and_broadcast_values(rng):
    x = numbers(rng, (30, 7), "float32")
    rows, columns = np.arange(30), rng.integers(0, 7, 30)
    y = numbers(rng, (1,), "float32")
    wanted = x.copy()
    wanted[rows, columns] += y
    np.testing.assert_array_equal(run(ScatterRanges(), ScatterAdd(2), x, y, rows, columns)[0], wanted)


def test_of_repeated_places_the_last_wins(rng):
    x, index, y = numbers(rng, (4, 3), "float32"), rng.integers(0, 4, 600), rng.standard_normal((600, 3)).astype(np.float32)
    wanted = x.copy()
    for place, row in zip(index, y, strict=True):
        wanted[place] = row
    np.testing.assert_array_equal(run(ScatterRanges(), ScatterSet(1), x, y, index)[0], wanted)


@pytest.mark.parametrize(("one", "other", "code"), [(6, 0, 2), (0, -5, 1), (-7, 9, 2)])
def test_an_index_outside_its_axis_sets_the_code_of_the_first_axis(rng, one, other, code):
    x = numbers(rng, (6, 4), "float32")
    indices = np.array([1, one, 2]), np.array([0, other, 1])
    for implementation, op, inputs in ((GatherElements(), Gather(2), (x,)), (ScatterRanges(), ScatterAdd(2), (x, x[0, :3]))):
        with pytest.raises(UserError) as caught:
            run(implementation, op, *inputs, *indices)
        assert caught.value.code == code


def test_nothing_to_do(rng):
    x = numbers(rng, (6, 4), "float32")
    none = np.zeros(0, np.int64)
    assert run(GatherElements(), Gather(1), x, none)[0].shape == (0, 4)
    np.testing.assert_array_equal(run(ScatterRanges(), ScatterAdd(1), x, np.zeros((0, 4), np.float32), none)[0], x)
    assert run(GatherElements(), Gather(1), x[:, :0], np.array([1, 2]))[0].shape == (2, 0)
