"""Builders that move, add and take away axes; each makes at most one `DimShuffle`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError, explain_error
from ..graph import Variable
from .axes import normalize_axes, normalize_axis
from .constants import as_variable
from .shape import dimshuffle, shape_sizes
from .sizes import joined_size


def transpose(x: Any, axes: Sequence[int] | None = None) -> Variable:
    """Axes in another order (reversed by default).

    >>> import numpy as np
    >>> transpose(np.zeros((2, 3, 4)), (1, 2, 0)).type.shape
    (3, 4, 2)
    """
    x = as_variable(x)
    order = tuple(reversed(range(x.ndim))) if axes is None else normalize_axes(tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ArgumentError(explain_error("a transpose names every axis once", f"axes {axes} of {x.type}"))
    return dimshuffle(x, order)


def swapaxes(x: Any, first: int, second: int) -> Variable:
    """Two axes exchanged."""
    x = as_variable(x)
    order = list(range(x.ndim))
    a, b = normalize_axis(first, x.ndim), normalize_axis(second, x.ndim)
    order[a], order[b] = b, a
    return dimshuffle(x, order)


def moveaxis(x: Any, source: Any, destination: Any) -> Variable:
    """Axes moved to other positions (an int or equally many ints each); the others keep their order.

    >>> import numpy as np
    >>> moveaxis(np.zeros((2, 3, 4)), 0, -1).type.shape
    (3, 4, 2)
    """
    x = as_variable(x)
    moved, places = normalize_axes(source, x.ndim), normalize_axes(destination, x.ndim)
    if len(moved) != len(places):
        raise ArgumentError(explain_error("moveaxis takes as many destinations as sources", f"{source} and {destination}"))
    order = [axis for axis in range(x.ndim) if axis not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return dimshuffle(x, order)


def expand_dims(x: Any, axis: Any) -> Variable:
    """New axes of size 1; `axis` (an int or several) are their positions in the result.

    >>> import numpy as np
    >>> expand_dims(np.zeros((2, 3)), (0, -1)).type.shape
    (1, 2, 3, 1)
    """
    x = as_variable(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    new = normalize_axes(axis, x.ndim + count)
    rest = iter(range(x.ndim))
    return dimshuffle(x, [None if place in new else next(rest) for place in range(x.ndim + count)])


def squeeze(x: Any, axis: Any = None) -> Variable:
    """Without axes of size 1: those of `axis`, or by default all that are statically known to have size 1.

    A named axis of unknown size is checked when the function is called: a ShapeError where it is not 1.
    """
    x = as_variable(x)
    if axis is None:
        dropped: tuple[int, ...] = tuple(place for place, size in enumerate(x.type.shape) if size == 1)
    else:
        dropped = normalize_axes(axis, x.ndim)
    for place in dropped:
        if x.type.shape[place] not in (None, 1):
            raise ShapeError(explain_error("squeeze takes away axes of size 1 only", f"axis {place} of {x.type}"))
    return dimshuffle(x, [place for place in range(x.ndim) if place not in dropped])


def shape_padleft(x: Any, count: int = 1) -> Variable:
    """`count` new axes of size 1 before all others."""
    x = as_variable(x)
    return dimshuffle(x, [None] * count + list(range(x.ndim)))


def shape_padright(x: Any, count: int = 1) -> Variable:
    """`count` new axes of size 1 after all others."""
    x = as_variable(x)
    return dimshuffle(x, list(range(x.ndim)) + [None] * count)


def shape_padaxis(x: Any, axis: int) -> Variable:
    """One new axis of size 1, which is `axis` of the result."""
    return expand_dims(x, axis)


def size(x: Any) -> Variable:
    """The number of elements as an int64 scalar; a constant where every size is static."""
    return as_variable(joined_size(shape_sizes(as_variable(x))), "int64")
