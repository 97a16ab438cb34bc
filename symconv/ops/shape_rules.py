"""Arithmetic on shapes, free of graphs: what a reshape gives, when it needs no copy, what broadcasts to what.

A size None is one that is not known yet.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ..errors import ShapeError, explain_error

StaticShape = tuple[int | None, ...]


def shape_text(shape: Sequence[int | None]) -> str:
    """A shape for messages, `?` for what is not known.

    >>> shape_text((None, 3))
    '(?, 3)'
    """
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def known_product(shape: Sequence[int | None]) -> int | None:
    """The number of elements, None where it is not known (a size 0 makes it 0 whatever the others are)."""
    known = [size for size in shape if size is not None]
    return None if len(known) < len(shape) and 0 not in known else math.prod(known)


def reshaped(old: Sequence[int | None], new: Sequence[int | None]) -> StaticShape:
    """The sizes of a reshape from `old` to `new` as far as they are known, -1 filled in; a ShapeError where they do not fit.

    >>> reshaped((None, 4, 6), (None, -1)), reshaped((2, 6), (3, -1)), reshaped((2, 3), (None, 2))
    ((None, None), (3, 4), (3, 2))
    """
    text = f"from {shape_text(old)} to {shape_text(new)}"
    if any(size is not None and size < -1 for size in new) or list(new).count(-1) > 1:
        raise ShapeError(explain_error("a new shape has sizes from 0 and at most one -1", text))
    result: list[int | None] = [None if size == -1 else size for size in new]
    total = known_product(old)
    if total is None:
        return tuple(result)
    open_axes = [axis for axis, size in enumerate(result) if size is None]
    given = math.prod(size for size in result if size is not None)
    if not open_axes and given != total:
        raise ShapeError(explain_error("a reshape keeps the number of elements", f"{text}: {total} elements and {given}"))
    if open_axes and (total % given if given else total):
        raise ShapeError(explain_error(f"the given sizes of the new shape do not divide {total} elements",
                                       f"{text}: {given} elements in the sizes that are given"))
    if open_axes == [axis for axis, size in enumerate(new) if size == -1] and open_axes and not given:
        raise ShapeError(explain_error("the size of -1 cannot be told beside a size of 0", text, "write the size itself"))
    if len(open_axes) == 1 and given:
        result[open_axes[0]] = total // given
    return tuple(result)


def reshaped_strides(shape: tuple[int, ...], strides: tuple[int, ...], result: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that show memory of this shape and strides in the shape `result`; None where only a copy can.

    Axes are matched in groups with equal numbers of elements; inside a group the old axes must lie evenly.
    After NumPy's `_attempt_nocopy_reshape` (numpy/_core/src/multiarray/shape.c).

    >>> reshaped_strides((2, 3, 4), (12, 4, 1), (6, 4)), reshaped_strides((3, 2), (1, 3), (6,))
    ((4, 1), None)
    """
    new_strides = [1] * len(result)
    if 0 in shape:
        return tuple(new_strides)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    first_old = first_new = 0
    while first_old < len(old) and first_new < len(result):
        end_old, end_new = _matched_group(old, first_old, result, first_new)
        group = old[first_old:end_old]
        if any(left[1] != right[0] * right[1] for left, right in pairwise(group)):
            return None
        stride = group[-1][1]
        for axis in range(end_new - 1, first_new - 1, -1):
            new_strides[axis] = stride
            stride *= result[axis]
        first_old, first_new = end_old, end_new
    return tuple(new_strides)


def _matched_group(old: Sequence[tuple[int, int]], first_old: int, new: Sequence[int], first_new: int) -> tuple[int, int]:
    """The ends of the shortest runs of old and new axes that hold equally many elements."""
    end_old, end_new = first_old + 1, first_new + 1
    count_old, count_new = old[first_old][0], new[first_new]
    while count_old != count_new:
        if count_old < count_new:
            count_old *= old[end_old][0]
            end_old += 1
        else:
            count_new *= new[end_new]
            end_new += 1
    return end_old, end_new


def check_broadcasts_to(old: Sequence[int | None], new: Sequence[int | None]) -> None:
    """A ShapeError where an array of shape `old` can not be broadcast to `new`."""
    text = f"from {shape_text(old)} to {shape_text(new)}"
    if len(old) > len(new):
        raise ShapeError(explain_error("broadcasting takes no axes away", text))
    for distance, size in enumerate(reversed(old), start=1):
        wanted = new[-distance]
        if size is not None and wanted is not None and size not in (1, wanted):
            wrong = f"axis {len(old) - distance} of size {size} does not broadcast to size {wanted}"
            raise ShapeError(explain_error(wrong, text, "a size must be 1 or the wanted one, counted from the last axis"))
