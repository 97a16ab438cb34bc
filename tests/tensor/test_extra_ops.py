"""Running sums, sorting, diagonals, grids and the other small functions, against NumPy's."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError, IndexRangeError

rng = np.random.default_rng(5)
CUBE = rng.permutation(60).reshape(3, 4, 5) * 0.25 - 5.0
TABLE = CUBE[0]


def check_same(build, expected, *arrays, rtol=1e-12):
    """The same from static and from unknown shapes, and compiled."""
    for known in (True, False):
        inputs = [variable_for(np.asarray(array), known) for array in arrays]
        results = build(*inputs)
        wanted = expected if isinstance(expected, (list, tuple)) else [expected]
        listed = list(results) if isinstance(results, (list, tuple)) else [results]
        bindings = dict(zip(inputs, map(np.asarray, arrays), strict=True))
        for found in (evaluate(listed, bindings), sc.compile(inputs, listed)(*bindings.values())):
            for each, value in zip(found, wanted, strict=True):
                assert each.shape == np.shape(value)
                np.testing.assert_allclose(each, value, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_running_sums_and_products(axis):
    check_same(lambda x: x.cumsum(axis), np.cumsum(CUBE, axis), CUBE)
    check_same(lambda x: T.cumprod(x, axis), np.cumprod(CUBE, axis), CUBE)
    check_same(lambda x: T.extra_ops.cumsum(x, axis), np.cumsum(CUBE > 0, axis), CUBE > 0)
    check_gradient(lambda x: T.cumsum(x, axis), TABLE[:3, :3], order=2)
    check_gradient(lambda x: T.cumprod(x, axis), TABLE[:2, :3] + 0.1)


def test_dtypes_of_running_sums():
    assert T.cumsum(T.constant(np.ones(3, "int8"))).dtype == "int64"
    assert T.cumsum(T.constant(np.ones(3, "uint8"))).dtype == "uint64"
    ones = T.constant(np.ones(5000, "float16"))
    assert evaluate([T.cumsum(ones)])[0][-1] == 5000
    with pytest.raises(ArgumentError):
        T.cumsum(ones, axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sorting(axis):
    check_same(lambda x: [T.sort(x, axis), x.argsort(axis)], [np.sort(CUBE, axis), np.argsort(CUBE, axis, kind="stable")], CUBE)
    check_gradient(lambda x: x.sort(axis), TABLE)
    largest = -np.sort(-CUBE, axis)
    first = (slice(None),) * (axis % 3 if axis is not None else 0) + (slice(2),)
    check_same(lambda x: T.topk(x, 2, axis), largest[first], CUBE)
    check_same(lambda x: T.argtopk(x, -2, axis), np.argsort(CUBE, axis)[first], CUBE)


def test_order_of_equal_numbers_and_nan():
    ties = np.array([2.0, 1.0, np.nan, 2.0, 1.0, -np.inf])
    check_same(lambda x: [x.argsort(), x.sort()], [[5, 1, 4, 0, 3, 2], np.sort(ties)], ties)
    check_same(lambda x: T.argtopk(x, 2), np.array([2, 3]), ties)
    check_same(lambda x, i: T.take_along_axis(x, i, 1), np.take_along_axis(TABLE, np.array([[1, 0]] * 4), 1), TABLE,
          np.array([[1, 0]] * 4))
    for wrong in (lambda: T.topk(ties, 0), lambda: T.sort(ties, kind="fast"), lambda: T.take_along_axis(TABLE, [1], 0)):
        with pytest.raises((ArgumentError, GraphTypeError)):
            wrong()


@pytest.mark.parametrize("offset", [-5, -2, -1, 0, 1, 3, 7])
def test_diagonals(offset):
    check_same(lambda x: x.diagonal(offset), np.diagonal(TABLE, offset), TABLE)
    check_same(lambda x: T.diagonal(x, offset, 2, 0), np.diagonal(CUBE, offset, 2, 0), CUBE)
    check_same(lambda x: x.trace(offset), np.trace(TABLE, offset), TABLE)
    check_same(lambda x: T.diag(x, offset), np.diag(TABLE[0], offset), TABLE[0])
    check_same(lambda x: T.diag(x, offset), np.diag(TABLE, offset), TABLE)
    filled = TABLE.copy()
    np.fill_diagonal(filled[-offset:] if offset < 0 else filled[:, offset:], 9)
    check_same(lambda x: T.fill_diagonal_offset(x, 9, offset), filled, TABLE)


def test_diagonals_of_more_axes_and_gradients():
    cube = np.zeros((3, 3, 3))
    filled = cube.copy()
    np.fill_diagonal(filled, 2)
    check_same(lambda x: T.fill_diagonal(x, 2), filled, cube)
    check_gradient(lambda x: T.diag(x, 1), TABLE[0])
    check_gradient(lambda x: T.diagonal(x, 1, 0, 1), TABLE)
    check_gradient(lambda x, v: T.fill_diagonal(x, v), TABLE, np.array(2.0))
    for wrong in (lambda: T.diag(CUBE), lambda: T.diagonal(TABLE[0]), lambda: T.diagonal(TABLE, 0, 1, 1)):
        with pytest.raises((ArgumentError, GraphTypeError)):
            wrong()


def test_small_functions():
    check_same(lambda x: T.diff(x, 2, 0), np.diff(CUBE, 2, 0), CUBE)
    check_same(lambda x: T.ptp(x, 1), np.ptp(CUBE, 1), CUBE)
    check_same(lambda x: T.stacklists([[x, x * 2], [x * 3, x * 4]]), np.stack([TABLE, 2 * TABLE, 3 * TABLE, 4 * TABLE]).reshape(
        2, 2, 4, 5), TABLE)
    check_same(lambda x: [T.horizontal_stack(x, x), T.vertical_stack(x, x)], [np.hstack([TABLE] * 2), np.vstack([TABLE] * 2)],
               TABLE)
    order = np.array([2, 0, 3, 1])
    check_same(T.inverse_permutation, np.argsort(order), order)
    check_same(lambda x: [T.deg2rad(x), T.rad2deg(x)], [np.deg2rad(TABLE), np.rad2deg(TABLE)], TABLE)
    for end in (True, False):
        np.testing.assert_allclose(T.linspace(-1.5, 2, 7, end, dtype="float64").eval(), np.linspace(-1.5, 2, 7, end))
    assert T.linspace(0, 1, 1).eval().tolist() == [0]


def test_bincount():
    values, weights = np.array([0, 3, 3, 1]), np.array([0.5, 1.0, 2.0, 4.0])
    check_same(lambda x: T.bincount(x, minlength=6), np.bincount(values, minlength=6), values)
    check_same(lambda x, w: T.bincount(x, w, minlength=w.shape[0]), np.bincount(values, weights, minlength=4), values, weights)
    with pytest.raises(IndexRangeError):
        T.bincount(T.constant(values), minlength=3).eval()
    with pytest.raises(ArgumentError, match="minlength"):
        T.bincount(T.constant(values))
    with pytest.raises(GraphTypeError, match="a vector"):
        T.bincount(T.constant(values.reshape(2, 2)), minlength=4)


@pytest.mark.parametrize(("axes", "shape"), [(1, (2, 3, 4)), (2, (2, 4, 3, 5)), (([2], [1]), (2, 4, 5)),
                                             (([1, 2], [2, 1]), (2, 4, 4))])
def test_batched_tensordot(axes, shape):
    x, y = rng.normal(size=(2, 4, 4, 3)), rng.normal(size=shape)
    of_each = axes if isinstance(axes, int) else tuple([axis - 1 for axis in each] for each in axes)
    wanted = np.stack([np.tensordot(a, b, of_each) for a, b in zip(x, y, strict=True)])
    check_same(lambda a, b: T.batched_tensordot(a, b, axes), wanted, x, y)


def test_closeness():
    a = np.array([1.0, 1.0, np.inf, -np.inf, np.nan, np.inf, 0.0])
    b = np.array([1.0 + 1e-6, 1.1, np.inf, np.inf, np.nan, 1.0, 1e-9])
    for nan in (True, False):
        check_same(lambda x, y, nan=nan: [T.isclose(x, y, equal_nan=nan), T.allclose(x, y, equal_nan=nan)],
              [np.isclose(a, b, equal_nan=nan), np.allclose(a, b, equal_nan=nan)], a, b)


def test_grids():
    for found, wanted in ((T.mgrid[0:3, 5:0:-2], np.mgrid[0:3, 5:0:-2]), (T.ogrid[1:3, 0:4, 2:5:2], np.ogrid[1:3, 0:4, 2:5:2])):
        for each, value in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(each.eval(), value)
    n = T.lscalar("n")
    np.testing.assert_array_equal(T.mgrid[:n].eval({n: 4}), np.mgrid[:4])
    np.testing.assert_array_equal(T.mgrid[0:n, 0:2][1].eval({n: 3}), np.mgrid[0:3, 0:2][1])
    for index in (slice(0, None), slice(0, 1, 5j), 3):
        with pytest.raises(ArgumentError, match="slices that have an end"):
            T.mgrid[index]
