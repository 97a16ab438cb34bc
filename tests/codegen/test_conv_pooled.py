"""Gradients of convolutions behind max pooling, against float64 loops over the full response with its zeros written out."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from conv_oracle import TOLERANCE, expected
from kernel_runner import make_problem, run_kernel

from symconv.codegen.conv_pooled import PooledDgrad, PooledWgrad
from symconv.codegen.implementation import Implementation
from symconv.codegen.pooling import PoolWithPlaces
from symconv.errors import InternalError
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.lowered.pooled_convolution import PooledConv, PoolPlaces
from symconv.ops.pooling import Pool
from symconv.ops.spec import Kind
from symconv.target import Target

Array = np.ndarray[Any, Any]
IMPLEMENTATIONS: dict[Kind, Implementation] = {Kind.WGRAD: PooledWgrad(), Kind.DGRAD: PooledDgrad()}
PROBLEMS = [
    # the convolution, the window
    ("n5 c20 h12 w12 k50 r5 s5 f32", (2, 2)),       # LeNet's second layer
    ("n11 c1 h28 w28 k20 r5 s5 f32", (2, 2)),       # and its first
    ("n3 c3 h17 w13 k7 r3 s4 p1x2:0 f32", (2, 3)),  # windows that leave a border over, paddings that differ
    ("n2 c3 h9 w12 k7 r3 s3 p2:0x0 f32", (2, 2)),   # padding above only
    ("n2 c3 h10 w8 k7 r3 s3 p0x1:2 f32", (2, 2)),   # padding at the sides only
    ("n2 c8 h20 w21 k5 r3 s3 u2x3 p1 f32", (2, 2)),
    ("n2 c33 h9 w8 k3 r4 s2 flip f32", (3, 2)),
    ("n1 c4 h7 w7 k1 r7 s7 p3 f64", (7, 1)),
    ("n9 c17 h10 w10 k6 r3 s3 p2 flip f64", (2, 2)),
    ("n0 c4 h8 w8 k5 r3 s3 f32", (2, 2)),
    ("n2 c4 h4 w4 k5 r3 s3 f32", (3, 3)),           # no window at all
    ("n2 c4 h8 w8 k0 r3 s3 f32", (2, 2)),
]


def make_pool(window: tuple[int, ...]) -> Pool:
    return Pool("max", window, window, (0,) * len(window), (0,) * len(window))


def spread(conv: ConvProblem, window: tuple[int, int], rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """What the pooling received, places in its windows, and the response that is zero elsewhere."""
    n, k, height, width = conv.y_shape
    shape = (n, k, height // window[0], width // window[1])
    received = rng.standard_normal(shape).astype(conv.dtype)
    places = rng.integers(0, window[0] * window[1], shape).astype(np.uint8)
    response = np.zeros(conv.y_shape)
    for at in np.ndindex(*shape):
        row, column = divmod(int(places[at]), window[1])
        response[at[0], at[1], at[2] * window[0] + row, at[3] * window[1] + column] = received[at]
    return received, places, response


@pytest.mark.parametrize("vector_bytes", [16, 32])
@pytest.mark.parametrize("kind", IMPLEMENTATIONS, ids=lambda kind: kind.value)
@pytest.mark.parametrize(("text", "window"), PROBLEMS)
def test_gradients(text: str, window: tuple[int, int], kind: Kind, vector_bytes: int) -> None:
    conv = ConvProblem.parse(f"{kind.value} {text}")
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(conv.dtype) for shape in (conv.x_shape, conv.w_shape))
    received, places, response = spread(conv, window, rng)
    op = PooledConv(Conv(kind, conv.spec, None, conv.result_shape), make_pool(window))
    inputs = (x if kind is Kind.WGRAD else w, received, places)
    found = [run_kernel(IMPLEMENTATIONS[kind], op, *inputs, threads=threads,
                        target=Target(threads=threads, vector_bytes=vector_bytes))[0] for threads in (2, 1)]
    wanted, size = expected(conv, x, w, response)
    assert np.all(np.abs(found[0] - wanted) <= TOLERANCE[conv.dtype] * size + 1e-30)
    np.testing.assert_array_equal(found[0], found[1])  # the bits do not depend on the threads
    np.testing.assert_allclose(op.reference(*inputs)[0], wanted, rtol=1e-4, atol=1e-5 * max(1, float(size.max(initial=0))))


def test_numbers_that_are_not_finite_stay_where_they_are() -> None:
    """An infinite gradient reaches the elements under its own window's maximum, and no others."""
    conv = ConvProblem.parse("dgrad n1 c3 h8 w8 k2 r3 s3 f32")
    rng = np.random.default_rng(0)
    w = rng.standard_normal(conv.w_shape).astype(np.float32)
    received, places, _ = spread(conv, (2, 2), rng)
    received[0, 1, 0, 2], places[0, 1, 0, 2] = np.inf, 3  # at row 1, column 5 of the response
    op = PooledConv(Conv(conv.kind, conv.spec, None, conv.x_shape), make_pool((2, 2)))
    (found,) = run_kernel(PooledDgrad(), op, w, received, places)
    reached = np.zeros((8, 8), bool)
    reached[1:4, 5:8] = True
    np.testing.assert_array_equal(np.isinf(found), np.broadcast_to(reached, found.shape))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize(("shape", "window"), [((3, 5, 7, 9), (2, 2)), ((2, 3, 24, 24), (2, 2)), ((1, 2, 9, 3001), (3, 3)),
                                               ((2, 2, 6, 7, 8), (2, 3, 2)), ((4, 33), (4,)), ((0, 3, 4, 4), (2, 2)),
                                               ((2, 1, 4), (5,))])
def test_places_are_those_of_the_first_largest(shape: tuple[int, ...], window: tuple[int, ...], dtype: str) -> None:
    """Many equal values, NaN and infinities; each window looked at by itself."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, shape).astype(dtype)
    if dtype.startswith("float"):
        x[rng.random(shape) < 0.1] = np.nan
        x[rng.random(shape) < 0.1] = -np.inf
    op = PoolPlaces(make_pool(window))
    largest, places = run_kernel(PoolWithPlaces(), op, x)
    lead = len(shape) - len(window)
    for at in np.ndindex(*largest.shape):
        block = x[(*at[:lead], *(slice(i * size, (i + 1) * size) for i, size in zip(at[lead:], window, strict=True)))].ravel()
        place = int(np.isnan(block).argmax()) if np.isnan(block).any() else int(block.argmax())
        assert places[at] == place
        np.testing.assert_array_equal(largest[at], block[place])
    for kernel, reference in zip((largest, places), op.reference(x), strict=True):
        np.testing.assert_array_equal(kernel, reference)


def test_other_problems_are_refused() -> None:
    def reason(text: str) -> str | None:
        conv = ConvProblem.parse(f"wgrad {text}")
        op = PooledConv(Conv(conv.kind, conv.spec, None, conv.w_shape), make_pool((2,) * conv.spec.ndim))
        n, k, *sizes = conv.y_shape
        pooled = (n, k, *(size // 2 for size in sizes))
        problem = make_problem(op, np.zeros(conv.x_shape, conv.dtype), np.zeros(pooled, conv.dtype), np.zeros(pooled, np.uint8))
        return PooledWgrad().refuse(problem, Target())

    assert reason("n1 c8 h9 w9 k4 r3 s3 f32") is None
    assert "one group" in str(reason("n1 c8 h9 w9 k4 r3 s3 g2 f32"))
    assert "no dilation" in str(reason("n1 c8 h9 w9 k4 r3 s3 l2 f32"))
    assert "two axes" in str(reason("n1 c8 w9 k4 s3 f32"))
    assert "second cache" in str(reason("n1 c64 h99 w99 k4 r3 s3 f32"))
    assert "float16" in str(reason("n1 c8 h9 w9 k4 r3 s3 f16"))
    pool = make_pool((2, 2))
    with pytest.raises(InternalError, match="places"):
        PoolPlaces(replace(pool, stride=(1, 1)))
    with pytest.raises(InternalError, match="behind the gradient"):
        PooledConv(Conv(Kind.FPROP, ConvProblem.parse("fprop n1 c8 h9 w9 k4 r3 s3 f32").spec, None, (1, 4, 7, 7)), pool)
