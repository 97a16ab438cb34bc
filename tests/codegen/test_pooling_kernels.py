"""Pooling kernels against plain loops over the elements of every window."""
from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from kernel_runner import make_problem, run_kernel

from symconv.codegen.pooling import IMPLEMENTATIONS
from symconv.ops.pooling import MODES, AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from symconv.target import Target

Array = np.ndarray[Any, Any]
FORWARD, SCATTER, PICK, SPREAD = (IMPLEMENTATIONS[op][0] for op in (Pool, MaxPoolGrad, MaxPoolGather, AveragePoolGrad))

# (shape, window, stride, pads before, pads after, ignore_border): the corners of every rank
CASES = [
    ((3, 7), (2,), (2,), (0,), (0,), True),
    ((9,), (3,), (1,), (1,), (2,), True),
    ((2, 300), (5,), (3,), (2,), (0,), False),
    ((2, 3, 6, 6), (2, 2), (2, 2), (0, 0), (0, 0), True),
    ((2, 1, 7, 5), (2, 2), (2, 2), (0, 0), (0, 0), False),
    ((1, 2, 9, 8), (3, 3), (2, 2), (1, 1), (1, 1), True),
    ((4, 6, 5), (3, 2), (1, 1), (2, 0), (1, 1), True),
    ((1, 2, 10, 11), (2, 3), (3, 4), (0, 1), (1, 0), False),
    ((2, 1, 4, 4), (4, 4), (4, 4), (0, 0), (0, 0), True),
    ((1, 1, 8, 9), (7, 7), (1, 1), (3, 3), (3, 3), True),
    ((1, 1, 2, 3), (5, 4), (1, 2), (3, 2), (3, 3), False),
    ((2, 1, 1), (3, 3), (2, 2), (0, 0), (0, 0), False),
    ((2, 2, 2), (3, 3), (1, 1), (0, 0), (0, 0), True),
    ((0, 3, 4, 4), (2, 2), (2, 2), (0, 0), (0, 0), True),
    ((2, 3, 0, 4), (2, 2), (2, 2), (0, 0), (0, 0), False),
    ((2, 4, 5, 6), (2, 2, 2), (2, 2, 2), (0, 0, 0), (0, 0, 0), True),
    ((1, 2, 5, 4, 7), (3, 2, 3), (2, 1, 2), (1, 0, 2), (1, 1, 1), True),
    ((2, 5, 3, 4), (2, 3, 2), (3, 2, 1), (0, 0, 0), (0, 0, 0), False),
]


def make_pool(mode: str, case: tuple[Any, ...]) -> Pool:
    _, window, stride, low, high, ignore_border = case
    return Pool(mode, window, stride, low, high, ignore_border)


def windows(pool: Pool, image: tuple[int, ...]) -> list[tuple[tuple[int, ...], list[tuple[int, ...]], int]]:
    """For every window: its index, the image positions it holds in row-major order, the size with padding."""
    counts = [math.prod((size,)) for size in pool.output_shape(image)]
    result = []
    for index in product(*map(range, counts)):
        axes, padded = [], 1
        for axis, number in enumerate(index):
            start = number * pool.stride[axis] - pool.pad_lo[axis]
            reach = range(start, start + pool.window[axis])
            axes.append([place for place in reach if 0 <= place < image[axis]])
            padded *= sum(place < image[axis] + pool.pad_hi[axis] for place in reach)
        result.append((index, list(product(*axes)), padded))
    return result


def plane_by_plane(pool: Pool, x: Array) -> tuple[Array, tuple[int, ...]]:
    lead = x.ndim - pool.rank
    return x.reshape((math.prod(x.shape[:lead]), *x.shape[lead:])), x.shape[lead:]


def first_maximum(plane: Array, places: list[tuple[int, ...]]) -> tuple[int, ...]:
    best = places[0]
    for place in places:
        if np.isnan(plane[best]):
            break
        if plane[place] > plane[best] or np.isnan(plane[place]):
            best = place
    return best


def divisor(pool: Pool, places: list[tuple[int, ...]], padded: int) -> int:
    return {"average_inc_pad": padded, "average_exc_pad": len(places)}.get(pool.mode, 1)


def pooled(pool: Pool, x: Array, v: Array | None = None) -> Array:
    """Pooling by loops; with `v`, its elements at the maxima of x."""
    planes, image = plane_by_plane(pool, x)
    values = planes if v is None else v.reshape(planes.shape)
    out = pool.output_shape(image)
    result = np.zeros((len(planes), *out), x.dtype)
    for number, plane in enumerate(planes):
        for index, places, padded in windows(pool, image):
            if pool.mode == "max":
                result[(number, *index)] = values[(number, *first_maximum(plane, places))]
            else:
                total = sum(plane[place].astype(np.float64 if x.dtype.kind == "f" else x.dtype) for place in places)
                result[(number, *index)] = total / divisor(pool, places, padded) if pool.mode != "sum" else total
    return result.reshape(x.shape[:x.ndim - pool.rank] + out)


def spread(pool: Pool, x: Array, gz: Array) -> Array:
    """The adjoint of pooling by loops."""
    planes, image = plane_by_plane(pool, x)
    result = np.zeros(planes.shape, np.float64)
    gradients = gz.reshape((len(planes), *pool.output_shape(image))).astype(np.float64)
    for number, plane in enumerate(planes):
        for index, places, padded in windows(pool, image):
            receivers = [first_maximum(plane, places)] if pool.mode == "max" else places
            for place in receivers:
                result[(number, *place)] += gradients[(number, *index)] / divisor(pool, places, padded)
    return result.reshape(x.shape).astype(x.dtype)


def random_image(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Few different values, so that windows have ties."""
    generator = np.random.default_rng(seed)
    return generator.integers(-3, 4, shape).astype(dtype)


def turns(case: tuple[Any, ...], choices: tuple[str, ...]) -> str:
    """One of the choices for each case in turn, so that not every case is compiled for all of them."""
    return choices[CASES.index(case) % len(choices)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case: tuple[Any, ...]) -> None:
    dtype = turns(case, ("float64", "float32", "float32"))
    pool = make_pool(turns(case, MODES), case)
    x = random_image(case[0], dtype, 1) + np.random.default_rng(2).normal(size=case[0]).astype(dtype).round(1)
    (y,) = run_kernel(FORWARD, pool, x)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(y, pooled(pool, x), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES[1::2], ids=str)
def test_max_gradient_goes_to_the_first_maximum(case: tuple[Any, ...]) -> None:
    pool = make_pool("max", case)
    x = random_image(case[0], "float32", 3)
    if x.size > 3:
        x.ravel()[[1, 2, -1]] = np.nan
    gz = random_image(pool.output_shape(x.shape), "float32", 4)
    np.testing.assert_array_equal(run_kernel(SCATTER, MaxPoolGrad(pool), x, gz)[0], spread(pool, x, gz))


@pytest.mark.parametrize("case", CASES[1::4], ids=str)
def test_elements_at_the_first_maximum(case: tuple[Any, ...]) -> None:
    pool = make_pool("max", case)
    x = random_image(case[0], "float32", 3)
    v = np.arange(x.size, dtype="float32").reshape(x.shape)
    np.testing.assert_array_equal(run_kernel(PICK, MaxPoolGather(pool), x, v)[0], pooled(pool, x, v))


@pytest.mark.parametrize("case", CASES[::2], ids=str)
def test_average_gradient(case: tuple[Any, ...]) -> None:
    pool = make_pool(turns(case, MODES[1:]), case)
    x = random_image(case[0], "float64", 5)
    gz = np.random.default_rng(6).normal(size=pool.output_shape(x.shape))
    (gx,) = run_kernel(SPREAD, AveragePoolGrad(pool, x.shape), gz, np.array(x.shape, "int64"))
    np.testing.assert_allclose(gx, spread(pool, x, gz), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    for case in CASES[3:4] if dtype != "int8" else (CASES[3], CASES[5]):
        x = random_image(case[0], "int64", 7).astype(dtype)
        x.ravel()[:3] = limits.max, limits.min, limits.min
        largest, total = make_pool("max", case), make_pool("sum", case)
        np.testing.assert_array_equal(run_kernel(FORWARD, largest, x)[0], pooled(largest, x))
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(run_kernel(FORWARD, total, x)[0], pooled(total, x))
        gz = np.ones(largest.output_shape(x.shape), dtype)
        np.testing.assert_array_equal(run_kernel(SCATTER, MaxPoolGrad(largest), x, gz)[0], spread(largest, x, gz))


def test_infinities_and_nan_in_the_forward_pass() -> None:
    pool = Pool("max", (2, 2), (2, 2), (0, 0), (0, 0))
    x = np.full((1, 1, 2, 40), -np.inf, "float32")
    x[0, 0, 1, 7], x[0, 0, 0, 6], x[0, 0, 0, 9] = np.nan, np.inf, 2
    wanted = np.full((1, 1, 1, 20), -np.inf, "float32")
    wanted[..., 3], wanted[..., 4] = np.nan, 2
    np.testing.assert_array_equal(run_kernel(FORWARD, pool, x)[0], wanted)


def test_same_bits_for_any_number_of_threads() -> None:
    pool = Pool("average_inc_pad", (3, 3), (2, 2), (1, 1), (1, 1))
    x = np.random.default_rng(8).normal(size=(8, 4, 33, 31)).astype("float32")
    one, two = (run_kernel(FORWARD, pool, x, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    largest = Pool("max", (3, 3), (2, 2), (1, 1), (1, 1))
    gz = np.random.default_rng(9).normal(size=largest.output_shape(x.shape)).astype("float32")
    one, two = (run_kernel(SCATTER, MaxPoolGrad(largest), x, gz, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_new_batch_or_image_size_needs_no_new_source() -> None:
    pool = Pool("max", (2, 2), (2, 2), (0, 0), (0, 0))
    sources = {FORWARD.build(make_problem(pool, np.zeros(shape, "float32")), Target()).source
               for shape in ((1, 3, 8, 8), (7, 5, 10, 12), (2, 9, 9))}
    assert len(sources) == 1


def test_half_floats_are_refused_with_a_reason() -> None:
    pool = Pool("max", (2, 2), (2, 2), (0, 0), (0, 0))
    reason = FORWARD.refuse(make_problem(pool, np.zeros((1, 1, 4, 4), "float16")), Target())
    assert reason == "pooling in C has no float16"
