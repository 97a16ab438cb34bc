"""Bilinear upsampling as a convolution: the data gradient of a triangular kernel, whose stride is the ratio."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...config import config
from ...dtypes import is_float
from ...errors import ArgumentError, GraphTypeError, explain_error
from ...graph import Variable
from ...ops.border_modes import is_whole_number
from ...ops.constants import as_variable, constant
from ...ops.conv_builders import conv_dgrad
from ...ops.elementwise import cast
from ...ops.padding import pad
from ...ops.shape import size_of
from ...ops.spec import make_spec
from ...ops.user_lines import tells_user_line
from .shape_hints import with_shape_hint

__all__ = ["bilinear_kernel_1D", "bilinear_kernel_2D", "bilinear_upsampling"]

Array = np.ndarray[Any, Any]
Ratio = tuple[int, int]
"""Numerator and denominator."""


@tells_user_line
def bilinear_upsampling(input: Any, ratio: int | None = None, frac_ratio: Any = None, batch_size: int | None = None,
                        num_input_channels: int | None = None, use_1D_kernel: bool = True) -> Variable:
    """Images (batch, channels, rows, columns), larger by a ratio: numbers between pixels are interpolated linearly.

    Element i of a result along an axis is the input at (i·q - (p - 1) // 2) / p for the ratio p/q in lowest terms, and the
    outermost pixel beyond an edge; there are ⌈rows·p / q⌉ of them.

    Args:
        input: floats of rank 4; integers become `config.floatX`.
        ratio: a whole number from 1, for rows and columns.
        frac_ratio: instead of `ratio`, (p, q), or a pair of such pairs for rows and columns.
        batch_size, num_input_channels: sizes that are known; they are checked, now and on every call.
        use_1D_kernel: one axis after the other (fewer products); False: both at once with one square kernel.

    Raises:
        ArgumentError: both ratios, none, or one that is no ratio.
        GraphTypeError: another rank.

    Theano: `nnet.bilinear_upsampling` (there, `frac_ratio` took `use_1D_kernel=False` only).

    >>> bilinear_upsampling(np.zeros((2, 3, 5, 4)), ratio=2).type.shape
    (2, 3, 10, 8)
    >>> bilinear_upsampling(np.array([[[[0.0, 1.0, 3.0]]]]), frac_ratio=((1, 1), (2, 1))).eval().ravel().tolist()
    [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]
    """
    ratios = _ratios(ratio, frac_ratio)
    images = as_variable(input)
    if images.ndim != 4:
        raise GraphTypeError(explain_error("bilinear_upsampling takes images (batch, channels, rows, columns)", str(images.type)))
    images = with_shape_hint(images, (batch_size, num_input_channels, None, None), "(batch_size, num_input_channels)", 4)
    if not is_float(images.dtype):
        images = cast(images, config.floatX)
    sizes = [size_of(images, axis) for axis in range(4)]
    result = images.reshape(-1, 1, *sizes[2:])  # each channel for itself
    for axes in (((0,), (1,)) if use_1D_kernel else ((0, 1),)):
        result = _upsampled(result, [ratios[axis][0] if axis in axes else 1 for axis in (0, 1)])
    result = result[:, :, ::ratios[0][1], ::ratios[1][1]]
    return result.reshape(*sizes[:2], *(size_of(result, axis) for axis in (2, 3)))


def bilinear_kernel_1D(ratio: int, normalize: bool = True) -> Variable:
    """1, 2, …, ratio, …, 2, 1 in `config.floatX`, divided by `ratio` where `normalize`: what interpolates along one axis."""
    return constant(_triangle(ratio) * (1 if normalize else ratio), config.floatX)


def bilinear_kernel_2D(ratio: Any, normalize: bool = True) -> Variable:
    """The products of two `bilinear_kernel_1D`, for rows and columns; `ratio` is a number or a pair."""
    rows, columns = ratio if isinstance(ratio, (tuple, list)) else (ratio, ratio)
    return bilinear_kernel_1D(rows, normalize).dimshuffle(0, "x") * bilinear_kernel_1D(columns, normalize).dimshuffle("x", 0)


def _triangle(ratio: int) -> Array:
    return np.bartlett(2 * _checked(ratio) + 1)[1:-1]


def _upsampled(images: Variable, ratios: list[int]) -> Variable:
    """Images (n, 1, rows, columns) with `ratios` elements for each of theirs."""
    if ratios == [1, 1]:
        return images
    grown = [int(ratio > 1) for ratio in ratios]
    edged = pad(images, [(0, 0), (0, 0), *((width, width) for width in grown)], mode="edge")
    # with k = 2·ratio - 1 taps, this padding puts element 0 of the result (ratio - 1) // 2 before the first pixel
    pads = tuple(2 * ratio - (ratio - 1) // 2 - 1 if ratio > 1 else 0 for ratio in ratios)
    spec = make_spec(2, pads, tuple(ratios))
    kernel = constant(np.outer(*map(_triangle, ratios))[None, None], images.dtype)
    shape = (None, None, *(size_of(images, 2 + axis) * ratio for axis, ratio in enumerate(ratios)))
    return conv_dgrad(edged, kernel, shape, spec)


def _ratios(ratio: Any, frac_ratio: Any) -> tuple[Ratio, Ratio]:
    """For rows and columns, in lowest terms."""
    if (ratio is None) == (frac_ratio is None):
        raise ArgumentError(explain_error("bilinear_upsampling takes ratio or frac_ratio",
                                          "none of them" if ratio is None else f"{ratio!r} and {frac_ratio!r}"))
    if frac_ratio is None:
        return (_checked(ratio), 1), (_checked(ratio), 1)
    if not isinstance(frac_ratio, (tuple, list)) or len(frac_ratio) != 2:
        raise ArgumentError(explain_error("frac_ratio is (numerator, denominator), or two such pairs", repr(frac_ratio)))
    pairs = frac_ratio if isinstance(frac_ratio[0], (tuple, list)) else (frac_ratio, frac_ratio)
    return _lowest(pairs[0]), _lowest(pairs[1])


def _lowest(pair: Any) -> Ratio:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise ArgumentError(explain_error("frac_ratio is (numerator, denominator), or two such pairs", repr(pair)))
    numerator, denominator = map(_checked, pair)
    divisor = math.gcd(numerator, denominator)
    return numerator // divisor, denominator // divisor


def _checked(number: Any) -> int:
    if not is_whole_number(number) or number < 1:
        raise ArgumentError(explain_error("a ratio is made of whole numbers from 1", repr(number)))
    return int(number)
