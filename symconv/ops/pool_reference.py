"""Pooling and its gradients in NumPy: loops over the elements of a window, all windows at once."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from .array_module import add_at, array_module
from .pool_shape import window_counts, window_positions

if TYPE_CHECKING:
    from .pooling import Pool

Array = np.ndarray[Any, Any]


def _offsets(pool: Pool, image: tuple[int, ...], package: Any) -> Iterator[tuple[Any, Array]]:
    """For each element of the window, in row-major order: an index of its image positions, for all windows at once, and
    whether they lie in the image, [windows along axis 1, axis 2, …], as arrays of `package`. Positions outside are given as 0."""
    axes = [window_positions(size, window, stride, low, count) for size, window, stride, low, count
            in zip(image, pool.window, pool.stride, pool.pad_lo, _counts(pool, image), strict=True)]
    for offset in product(*map(range, pool.window)):
        places = _grid([positions[k] for k, (positions, _) in zip(offset, axes, strict=True)])
        inside = _grid([inside[k] for k, (_, inside) in zip(offset, axes, strict=True)])
        yield (..., *map(package.asarray, places)), package.asarray(reduce(np.logical_and, inside))


def _grid(rows: Sequence[Array]) -> tuple[Array, ...]:
    """Arrays along one axis each, that broadcast together to all combinations."""
    return tuple(np.meshgrid(*rows, indexing="ij", sparse=True))


def _counts(pool: Pool, image: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(size) for size in pool.output_shape(image) if size is not None)


def winners(pool: Pool, x: Array) -> Array:
    """Position of the first maximum of every window in the flattened image, [batch…, windows…]."""
    image = x.shape[x.ndim - pool.rank:]
    shape = x.shape[:x.ndim - pool.rank] + _counts(pool, image)
    package = array_module(x)
    numbers = package.arange(math.prod(image)).reshape(image)
    winner, best = package.full(shape, -1), package.zeros(shape, x.dtype)
    for places, inside in _offsets(pool, image, package):
        candidate = x[places]
        larger = candidate > best
        if dtypes.is_float(x.dtype.name):
            larger = larger | (np.isnan(candidate) & ~np.isnan(best))
        take = inside & ((winner < 0) | larger)
        winner = np.where(take, numbers[places], winner)
        best = np.where(take, candidate, best)
    return winner


def _flat(pool: Pool, x: Array) -> Array:
    """Batch axes joined into one, pooled axes into one."""
    lead = x.ndim - pool.rank
    return x.reshape(math.prod(x.shape[:lead]), math.prod(x.shape[lead:]))


def gather_winners(pool: Pool, x: Array, v: Array) -> Array:
    """The elements of v where the first maxima of the windows of x lie."""
    winner = winners(pool, x)
    return np.take_along_axis(_flat(pool, v), _flat(pool, winner), axis=1).reshape(winner.shape)


def scatter_winners(pool: Pool, x: Array, gz: Array) -> Array:
    """gz added up where the first maxima of the windows of x lie."""
    winner = _flat(pool, winners(pool, x))
    package = array_module(x)
    total = package.zeros(_flat(pool, x).shape, dtypes.accumulator(x.dtype.name))
    add_at(total, (package.arange(len(winner))[:, None], winner), _flat(pool, gz).astype(total.dtype))
    return total.reshape(x.shape).astype(x.dtype)


def _divisor(pool: Pool, image: tuple[int, ...]) -> Array:
    """By what the sum of each window is divided, [windows along axis 1, axis 2, …]."""
    counts = _counts(pool, image)
    if pool.mode == "sum":
        return np.ones(counts, np.int64)
    with_padding = pool.mode == "average_inc_pad"
    held = [window_counts(size, pool.window[axis], pool.stride[axis], pool.pad_lo[axis], pool.pad_hi[axis], counts[axis],
                          with_padding) for axis, size in enumerate(image)]
    return reduce(np.multiply, _grid(held))


def window_averages(pool: Pool, x: Array) -> Array:
    """The sum or average of every window."""
    lead = x.ndim - pool.rank
    image = x.shape[lead:]
    accumulator = np.dtype(dtypes.accumulator(x.dtype.name))
    package = array_module(x)
    total: Array = package.zeros(x.shape[:lead] + _counts(pool, image), accumulator)
    for places, inside in _offsets(pool, image, package):
        total += np.where(inside, x[places].astype(accumulator), accumulator.type(0))
    if pool.mode != "sum":
        total = total / package.asarray(_divisor(pool, image).astype(accumulator))
    return total.astype(x.dtype)


def spread_averages(pool: Pool, gz: Array, shape: tuple[int, ...]) -> Array:
    """The adjoint of `window_averages` for images of this shape."""
    image = shape[len(shape) - pool.rank:]
    accumulator = np.dtype(dtypes.accumulator(gz.dtype.name))
    package, share = array_module(gz), gz.astype(accumulator)
    if pool.mode != "sum":
        share = share / package.asarray(_divisor(pool, image).astype(accumulator))
    total = package.zeros(shape, accumulator)
    for places, inside in _offsets(pool, image, package):
        add_at(total, places, np.where(inside, share, accumulator.type(0)))
    return total.astype(gz.dtype)
