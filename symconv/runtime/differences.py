"""Where two arrays differ by more than rounding, in words; and values that are not what a computation should give."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""Of the largest value: sums may be taken in another order, and convolutions in Winograd's form."""

SMALLEST = 1e-37
"""What counts as rounding where all values are 0."""

_AROUND = 4.0
"""How many times as far as the nearby values a result may be: they are a sample of what rounding does."""

_FLIPPED_SHARE = 1e-3
"""Comparisons of rounded values may come out differently for this share of elements."""


def difference(wanted: Array, found: Array, only_finite: bool = False, nearby: Sequence[Array] = ()) -> str | None:
    """How `found` differs from `wanted`, with the first place; None where it is the same up to rounding.

    `only_finite`: only where `wanted` is finite.  `nearby` are values for arguments that differ from the true ones by rounding
    (`nudged`): what these change by is what any rounding inside may do (sums that cancel, steps at a threshold).
    """
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"{found.dtype}{list(found.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if not wanted.size:
        return None
    wrong = _wrong_places(wanted, found, only_finite, _swing(wanted, nearby))
    count = int(wrong.sum())
    if not count or (wanted.dtype.kind in "biu" and count <= _FLIPPED_SHARE * wanted.size):
        return None
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (f"{count} of {wrong.size} elements; the first at {list(place)}: {found[place]!s} instead of {wanted[place]!s}")


def nudged(array: Array, number: int) -> Array:
    """The values moved by a few units in the last place: all up (number 0), all down (1), at random (from 2)."""
    if array.dtype.kind in "biu" or array.dtype.kind == "c":
        return array
    step = 4 * float(2.0 ** -(10 if array.dtype.itemsize == 2 else 23 if array.dtype.itemsize == 4 else 52))
    signs = np.random.default_rng(number).choice([-1.0, 1.0], array.shape) if number > 1 else (1.0, -1.0)[number]
    with np.errstate(all="ignore"):
        return np.asarray((array * (1 + step * signs)).astype(array.dtype))


def _swing(wanted: Array, nearby: Sequence[Array]) -> Any:
    """How much the nearby values differ from the wanted ones: where, for integers; by how much at most, for floats."""
    if wanted.dtype.kind in "biu":
        return reduce(np.logical_or, [wanted != each for each in nearby], np.False_)
    with np.errstate(all="ignore"):
        moved = [np.abs(each.astype(np.complex128) - wanted) for each in nearby]
    return _AROUND * max([float(each[np.isfinite(each)].max(initial=0.0)) for each in moved], default=0.0)


def _wrong_places(wanted: Array, found: Array, only_finite: bool, swing: Any) -> Array:
    if wanted.dtype.kind in "biu":
        return np.asarray((wanted != found) & ~np.asarray(swing))
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    one, other = wanted.astype(kind), found.astype(kind)
    finite = np.isfinite(one)
    scale = float(np.abs(one[finite]).max(initial=0.0))
    limit = TOLERANCE.get(wanted.dtype.name, 1e-4) * max(scale, SMALLEST) + swing
    with np.errstate(invalid="ignore", over="ignore"):
        wrong = finite & ~(np.abs(one - other) <= limit)
    if not only_finite:
        wrong |= ~finite & ~((one == other) | (np.isnan(one) & np.isnan(other)))
    return np.asarray(wrong)


def is_strange(array: Array, limit: float) -> bool:
    """Whether a float array holds a NaN, an infinity, or a value beyond the limit."""
    return bool(_strange(array, limit).any()) if array.dtype.kind not in "biu" else False


def _strange(array: Array, limit: float) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(~(np.abs(array.astype(np.float64)) <= limit))


def strange_text(array: Array, limit: float) -> str:
    """What is strange about an array, and where first."""
    wrong = _strange(array, limit)
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    value = float(array[place])
    kind = "NaN" if np.isnan(value) else "an infinity" if np.isinf(value) else f"{value:g}, beyond {limit:g},"
    return f"{kind} at {list(place)} ({int(wrong.sum())} of {array.size} elements are not finite or beyond {limit:g})"
