"""Bilinear upsampling: every element is what linear interpolation of the rows and columns gives."""
from __future__ import annotations

import math

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.tensor import nnet


def interpolated(x, axis, p, q):
    """Linear interpolation along an axis at (i·q - (p - 1) // 2) / p, the outermost element beyond the ends."""
    p, q = p // math.gcd(p, q), q // math.gcd(p, q)
    places = (np.arange(-(-x.shape[axis] * p // q)) * q - (p - 1) // 2) / p
    return np.apply_along_axis(lambda line: np.interp(places, np.arange(len(line)), line), axis, x)


@pytest.mark.parametrize("one_axis_at_a_time", [True, False])
@pytest.mark.parametrize(("rows", "columns"), [((1, 1), (1, 1)), ((2, 1), (2, 1)), ((3, 1), (3, 1)), ((4, 1), (1, 1)),
                                               ((5, 2), (4, 3)), ((4, 6), (7, 7))])
def test_values(rows, columns, one_axis_at_a_time):
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 4))
    found = nnet.bilinear_upsampling(x, frac_ratio=(rows, columns), use_1D_kernel=one_axis_at_a_time).eval()
    wanted = interpolated(interpolated(x, 2, *rows), 3, *columns)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    if rows == columns and rows[1] == 1:
        whole = nnet.bilinear_upsampling(x, ratio=rows[0], use_1D_kernel=one_axis_at_a_time)
        np.testing.assert_array_equal(whole.eval(), found)


def test_an_edge_is_repeated():
    assert nnet.bilinear_upsampling([[[[1.0, 2.0]]]], 2).eval().tolist() == [[[[1, 1.5, 2, 2]] * 2]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_is_kept_and_sizes_may_be_unknown(dtype):
    x = T.tensor4("x", dtype)
    up = nnet.bilinear_upsampling(x, 3, batch_size=2, num_input_channels=1)
    assert up.type.dtype == dtype
    assert up.type.shape[:2] == (2, 1)
    value = np.random.default_rng(1).normal(size=(2, 1, 3, 2)).astype(dtype)
    found = sc.compile([x], up)(value)
    np.testing.assert_allclose(found, interpolated(interpolated(value, 2, 3, 1), 3, 3, 1), rtol=0, atol=1e-6)
    with pytest.raises(ShapeError, match=r"\[1,1,3,2\]|size 2"):
        sc.compile([x], up)(value[:1])


def test_integers_become_floats():
    assert nnet.bilinear_upsampling(np.ones((1, 1, 2, 2), "int32"), 2).type == sc.TensorType("float32", (1, 1, 4, 4))


def test_gradient():
    x = np.random.default_rng(2).normal(size=(1, 2, 3, 2))
    sc.verify_grad(lambda image: nnet.bilinear_upsampling(image, frac_ratio=((3, 2), (2, 1))), [x], n_tests=1)


def test_kernels():
    assert nnet.bilinear_kernel_1D(3, normalize=False).eval().tolist() == [1, 2, 3, 2, 1]
    assert nnet.bilinear_kernel_1D(2).eval().tolist() == [0.5, 1, 0.5]
    assert nnet.bilinear_kernel_2D((1, 2), normalize=False).eval().tolist() == [[1, 2, 1]]


@pytest.mark.parametrize(("words", "text"), [
    ({}, "none of them"), ({"ratio": 2, "frac_ratio": (1, 2)}, "2 and"), ({"ratio": 0}, "from 1"), ({"ratio": 1.5}, "from 1"),
    ({"frac_ratio": 2}, "two such pairs"), ({"frac_ratio": (1, 2, 3)}, "two such pairs"),
    ({"frac_ratio": ((1, 2), 3)}, "such pairs"), ({"frac_ratio": (1, 0)}, "from 1"),
])
def test_mistakes(words, text):
    with pytest.raises(ArgumentError, match=text):
        nnet.bilinear_upsampling(np.ones((1, 1, 2, 2)), **words)


def test_another_rank_is_a_mistake_of_this_line():
    with pytest.raises(GraphTypeError, match=r"float64\[2,2\](.|\n)*test_upsampling"):
        nnet.bilinear_upsampling(np.ones((2, 2)), 2)
