"""The three kinds of convolution in plain NumPy: one loop over kernel elements, everything else vectorised.

An element of the kernel meets, along one axis, image element `o * stride + t * dilation - pad_lo` for output o.  Outputs for
which that lies in the padding get nothing from this element.  With that, for element t and all outputs it reaches,
    y += w[t] @ x[reached]        x[reached] += w[t]ᵀ @ y        w[t] += y @ x[reached]ᵀ
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import dtypes
from .array_module import array_module
from .spec import ConvSpec, output_shape

Array = np.ndarray[Any, Any]
Index = tuple[Any, ...]


def fprop(x: Array, w: Array, spec: ConvSpec) -> Array:
    """The response y of image x (N, C, *spatial) and filters w (K, C / groups, *kernel)."""
    y_shape = _sizes(output_shape(x.shape, w.shape, spec))
    accumulator = dtypes.numpy_dtype(spec.accumulator(x.dtype.name))
    xg, wg = _grouped_channels(x.astype(accumulator), spec), _grouped_filters(w.astype(accumulator), spec)
    yg = _grouped_channels(array_module(x).zeros(y_shape, accumulator), spec)
    for tap, reached, outputs in _taps(x.shape, w.shape, y_shape, spec):
        yg[outputs] += (wg[tap] @ _flat(xg[reached])).reshape(yg[outputs].shape)
    return yg.reshape(y_shape).astype(x.dtype)


def dgrad(y: Array, w: Array, x_shape: tuple[int, ...], spec: ConvSpec) -> Array:
    """The image-shaped adjoint of `fprop`: y (N, K, *spatial) and w give an array of `x_shape`."""
    accumulator = dtypes.numpy_dtype(spec.accumulator(y.dtype.name))
    yg, wg = _grouped_channels(y.astype(accumulator), spec), _grouped_filters(w.astype(accumulator), spec)
    xg = _grouped_channels(array_module(y).zeros(x_shape, accumulator), spec)
    for tap, reached, outputs in _taps(x_shape, w.shape, y.shape, spec):
        xg[reached] += (np.swapaxes(wg[tap], 1, 2) @ _flat(yg[outputs])).reshape(xg[reached].shape)
    return xg.reshape(x_shape).astype(y.dtype)


def wgrad(x: Array, y: Array, w_shape: tuple[int, ...], spec: ConvSpec) -> Array:
    """The filter-shaped adjoint of `fprop`: x and y (N, K, *spatial) give an array of `w_shape`."""
    accumulator = dtypes.numpy_dtype(spec.accumulator(x.dtype.name))
    xg, yg = _grouped_channels(x.astype(accumulator), spec), _grouped_channels(y.astype(accumulator), spec)
    wg = _grouped_filters(array_module(x).zeros(w_shape, accumulator), spec)
    for tap, reached, outputs in _taps(x.shape, w_shape, y.shape, spec):
        ys, xs = np.moveaxis(yg[outputs], 0, 2), np.moveaxis(xg[reached], 0, 2)
        wg[tap] += _flat(ys, 2) @ np.swapaxes(_flat(xs, 2), 1, 2)
    return wg.reshape(w_shape).astype(x.dtype)


def _taps(x_shape: tuple[int, ...], w_shape: tuple[int, ...], y_shape: tuple[int, ...],
          spec: ConvSpec) -> Iterator[tuple[Index, Index, Index]]:
    """For each kernel element: its index in w, the image elements it meets, and the outputs it meets them for."""
    known = spec.resolved(x_shape[2:], w_shape[2:])
    for element in itertools.product(*map(range, w_shape[2:])):
        reached: list[slice] = []
        outputs: list[slice] = []
        for axis, position in enumerate(element):
            t = w_shape[2 + axis] - 1 - position if known.flip else position
            stride, offset = known.stride[axis], t * known.dilation[axis] - known.pad_lo[axis]
            first = max(0, -(offset // stride))
            last = min(y_shape[2 + axis] - 1, (x_shape[2 + axis] - 1 - offset) // stride)
            if last < first:
                break
            outputs.append(slice(first, last + 1))
            reached.append(slice(first * stride + offset, last * stride + offset + 1, stride))
        else:
            yield (..., *element), (..., *reached), (..., *outputs)


def _grouped_channels(array: Array, spec: ConvSpec) -> Array:
    """(N, C, *spatial) as (N, groups, C / groups, *spatial)."""
    return array.reshape(array.shape[0], spec.groups, array.shape[1] // spec.groups, *array.shape[2:])


def _grouped_filters(array: Array, spec: ConvSpec) -> Array:
    """(K, C / groups, *kernel) as (groups, K / groups, C / groups, *kernel)."""
    return array.reshape(spec.groups, array.shape[0] // spec.groups, *array.shape[1:])


def _flat(array: Array, first: int = 3) -> Array:
    """All axes from `first` on as one."""
    return array.reshape(*array.shape[:first], math.prod(array.shape[first:]))


def _sizes(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size is not None)
