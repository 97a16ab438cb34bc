"""Pooling and its gradients against loops over single windows."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support import evaluate

from symconv.errors import GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable, apply_op
from symconv.ops.pool_shape import pooled_size
from symconv.ops.pooling import MODES, MaxPoolGrad, Pool, average_pool_grad, max_pool_gather, max_pool_grad

GEOMETRIES = [
    # window, stride, pad_lo, pad_hi of one axis
    (1, 1, 0, 0), (2, 2, 0, 0), (3, 2, 0, 0), (3, 2, 1, 1), (2, 1, 0, 1), (3, 1, 2, 0), (2, 3, 1, 0), (5, 2, 2, 2),
    (3, 4, 2, 1),
]


def windows(n, window, stride, low, high, ignore_border):
    """[(first, last)] in the image with padding, from the words of the rule: no formula shared with the code."""
    found, start = [], -low
    while n > 0:
        inside = start + window <= n + high
        if ignore_border and not inside:
            break
        if start >= n:  # starts in the padding after the image
            break
        found.append((start, min(start + window, n + high)))
        if not inside or start + window == n + high:
            break  # the last one: it reaches the end of the padded image
        start += stride
    return found


def loop_pool(x, pool):
    """Values, and for each output element the list of (weight, position) of its adjoint."""
    rank = pool.rank
    image = x.shape[-rank:]
    axes = [windows(n, *row, pool.ignore_border) for n, row in
            zip(image, zip(pool.window, pool.stride, pool.pad_lo, pool.pad_hi, strict=True), strict=True)]
    out = np.zeros(x.shape[:-rank] + tuple(map(len, axes)))
    parts = {}
    for place in np.ndindex(out.shape):
        spans = [axes[k][place[out.ndim - rank + k]] for k in range(rank)]
        padded = np.prod([last - first for first, last in spans])
        cells = [cell for cell in product(*(range(first, last) for first, last in spans))
                 if all(0 <= c < n for c, n in zip(cell, image, strict=True))]
        positions = [place[:-rank] + cell for cell in cells]
        values = [x[p] for p in positions]
        if pool.mode == "max":
            winner = next((i for i, v in enumerate(values) if np.isnan(v)), None)
            winner = int(np.argmax(values)) if winner is None else winner
            out[place], parts[place] = values[winner], [(1.0, positions[winner])]
        else:
            divisor = {"sum": 1, "average_inc_pad": padded, "average_exc_pad": len(values)}[pool.mode]
            out[place], parts[place] = sum(values) / divisor, [(1 / divisor, p) for p in positions]
    return out, parts


def loop_spread(x, parts, gz):
    gx = np.zeros(x.shape)
    for place, weights in parts.items():
        for weight, position in weights:
            gx[position] += weight * gz[place]
    return gx


def check(x, pool, rng):
    variable = Variable(TensorType(x.dtype.name, x.shape))
    z = apply_op(pool, variable)
    expected, parts = loop_pool(x, pool)
    assert z.static_shape == expected.shape
    gz = rng.standard_normal(expected.shape)
    gz_variable = Variable(TensorType("float64", expected.shape))
    if pool.mode == "max":
        gradient = max_pool_grad(pool, variable, gz_variable)
        gathered = max_pool_gather(pool, variable, variable)
    else:
        gradient, gathered = average_pool_grad(pool, gz_variable, variable), z
    assert gradient.static_shape == x.shape
    values = evaluate([z, gradient, gathered], {variable: x, gz_variable: gz})
    np.testing.assert_allclose(values[0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(values[1], loop_spread(x, parts, gz), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(values[2], values[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ignore_border", [True, False])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_one_axis_of_every_size_equals_loops(mode, ignore_border, geometry):
    rng = np.random.default_rng(1)
    window, stride, low, high = geometry
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 11):
        pool = Pool(mode, (window,), (stride,), (low,), (high,), ignore_border)
        check(rng.integers(-4, 4, (2, n)).astype("float64"), pool, rng)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ignore_border", [True, False])
def test_two_and_three_axes_with_batches_equal_loops(mode, ignore_border):
    rng = np.random.default_rng(2)
    for batch in ((), (3,), (2, 2), (0, 2)):
        x = rng.integers(-4, 4, (*batch, 5, 7)).astype("float64")
        check(x, Pool(mode, (3, 2), (2, 3), (1, 0), (0, 1), ignore_border), rng)
    check(rng.standard_normal((2, 3, 4, 5)), Pool(mode, (2, 3, 2), (1, 2, 2), (0, 1, 1), (1, 0, 1), ignore_border), rng)


@pytest.mark.parametrize("mode", MODES)
def test_one_rule_gives_the_adjoint(mode):
    rng = np.random.default_rng(3)
    for n, window, stride, low, high in rng.integers(0, 6, (60, 5)):
        window, stride = int(window) + 1, int(stride) + 1
        pool = Pool(mode, (window,), (stride,), (int(low) % window,), (int(high) % window,), bool(n % 2))
        check(rng.standard_normal((1, int(n) + 1)), pool, rng)


def test_windows_larger_than_the_image():
    assert pooled_size(3, 5, 1, 0, 0, True) == 0
    assert pooled_size(3, 5, 1, 0, 0, False) == 1
    assert pooled_size(3, 5, 5, 1, 1, True) == 1
    x = np.arange(6.0).reshape(2, 3)
    (whole,) = Pool("max", (4, 4), (4, 4), (0, 0), (0, 0), False).reference(x)
    np.testing.assert_array_equal(whole, [[5.0]])
    (none,) = Pool("max", (4, 4), (4, 4), (0, 0), (0, 0), True).reference(x)
    assert none.shape == (0, 0)


def test_no_window_starts_in_the_padding():
    # n=4, pad 1, window 2, stride 2: windows at -1, 1, 3; one at 5 would start after the image
    assert pooled_size(4, 2, 2, 1, 1, False) == 3
    # n=5, pad (0, 1), window 2, stride 5: the second window would start at 5, in the padding
    assert pooled_size(5, 2, 5, 0, 1, False) == 1


def test_the_first_nan_wins_and_gets_the_gradient():
    nan = np.nan
    pool = Pool("max", (1, 4), (1, 4), (0, 0), (0, 0))
    x = np.array([[1.0, nan, np.inf, nan], [-np.inf, -np.inf, -np.inf, -np.inf], [2.0, 2.0, 1.0, 2.0]])
    (z,) = pool.reference(x)
    np.testing.assert_array_equal(z, [[nan], [-np.inf], [2.0]])
    (gx,) = MaxPoolGrad(pool).reference(x, np.array([[1.0], [2.0], [3.0]]))
    np.testing.assert_array_equal(gx, [[0, 1, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]])


def test_padding_is_no_maximum_and_zeros_tie_by_position():
    pool = Pool("max", (2,), (1,), (1,), (1,))
    (z,) = pool.reference(np.array([-3.0, -5.0]))
    np.testing.assert_array_equal(z, [-3, -3, -5])
    pair = Pool("max", (2,), (2,), (0,), (0,))
    (zero,) = pair.reference(np.array([-0.0, 0.0]))
    assert np.signbit(zero[0])  # -0 equals 0, so the first one stays


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_of_small_floats_are_accumulated_wide(dtype):
    x = np.full((1, 4096), 1.0, dtype)
    (z,) = Pool("average_exc_pad", (4096,), (4096,), (0,), (0,)).reference(x)
    assert z.dtype == dtype
    np.testing.assert_array_equal(z, [[1.0]])  # summed in float16, it would stop at 2048


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_pool_by_maximum_and_sum(dtype):
    x = np.array([[1, 5, 3, 4]], dtype)
    for mode, expected in (("max", [[5, 4]]), ("sum", [[6, 7]])):
        (z,) = Pool(mode, (2,), (2,), (0,), (0,)).reference(x)
        assert z.dtype == dtype
        np.testing.assert_array_equal(z, expected)


def test_the_shape_is_inferred_where_the_batch_is_unknown():
    pool = Pool("max", (3, 3), (2, 2), (1, 1), (1, 1))
    assert pool.infer(TensorType("float32", (None, 3, 9, None)))[0].shape == (None, 3, 5, None)


@pytest.mark.parametrize(("mode", "type", "text"), [
    ("average_exc_pad", TensorType("int32", (4, 4)), "needs floats"),
    ("max", TensorType("bool", (4, 4)), "needs numbers"),
    ("max", TensorType("float32", (4,)), "rank 2"),
])
def test_types_that_do_not_pool(mode, type, text):
    with pytest.raises(GraphTypeError, match=text):
        Pool(mode, (2, 2), (2, 2), (0, 0), (0, 0)).infer(type)


def test_a_cotangent_of_another_shape_is_refused():
    x, gz = Variable(TensorType("float32", (4, 4))), Variable(TensorType("float32", (3, 2)))
    with pytest.raises(ShapeError, match="MaxPoolGrad"):
        max_pool_grad(Pool("max", (2, 2), (2, 2), (0, 0), (0, 0)), x, gz)
