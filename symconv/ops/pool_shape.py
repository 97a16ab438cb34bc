"""Where pooling windows lie: one rule for inferred shapes, run-time shapes and values.

Along an axis of size n with padding (lo, hi), window w and stride s, window i covers the positions i·s - lo …
i·s - lo + w - 1 of the image.  The number of windows is

- `ignore_border=True`: (n + lo + hi - w) // s + 1, every window inside the padded image (0 where none fits);
- `ignore_border=False`: at least 1 and otherwise the same with the division rounded up, so that the last window may reach
  over the border, without windows that start in the padding after the image.

An axis of size 0 has no windows.  Padding is smaller than the window, so every window holds an element of the image.
This file knows arrays only, no graph.
"""
from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pooled_size(size: int, window: int, stride: int, low: int, high: int, ignore_border: bool) -> int:
    """Number of windows along one axis.

    >>> pooled_size(5, 2, 2, 0, 0, True), pooled_size(5, 2, 2, 0, 0, False)
    (2, 3)
    """
    if size == 0:
        return 0
    room = size + low + high - window
    if ignore_border:
        return max(0, room // stride + 1)
    count = max(0, -(-room // stride)) + 1
    starts_in_image = (size + low - 1) // stride + 1
    return min(count, starts_in_image)


def window_positions(size: int, window: int, stride: int, low: int, count: int) -> tuple[Array, Array]:
    """Image positions of every element of every window along one axis, [window, count], and whether they lie inside.

    Positions outside are given as 0.
    """
    positions = np.arange(count)[None, :] * stride - low + np.arange(window)[:, None]
    inside = (positions >= 0) & (positions < size)
    return np.where(inside, positions, 0), inside


def window_counts(size: int, window: int, stride: int, low: int, high: int, count: int, with_padding: bool) -> Array:
    """How many elements each window of an axis holds: of the image, or of the padded image."""
    starts = np.arange(count) * stride - low
    first, last = (-low, size + high) if with_padding else (0, size)
    return np.minimum(starts + window, last) - np.maximum(starts, first)
