"""`mgrid` and `ogrid`: coordinates of a grid, written as slices.

`mgrid[0:2, 0:3]` gives for each slice its coordinate at every place of the grid, (2, 3) each; `ogrid[0:2, 0:3]` the same with
sizes that broadcast together, (2, 1) and (1, 3).  Bounds may be symbolic scalars.

>>> rows, columns = mgrid[0:2, 0:3]
>>> columns.eval().tolist()
[[0, 1, 2], [0, 1, 2]]
"""
from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, explain_error
from ..graph import Variable
from ..ops.creation import arange
from ..ops.shape import Size, broadcast_to, dimshuffle, size_of

__all__ = ["mgrid", "ogrid"]


class _Grid:
    """Made once for each way; `grid[a:b, c:d:s]` gives a coordinate tensor for each slice."""

    def __init__(self, sparse: bool) -> None:
        self._sparse = sparse

    def __getitem__(self, index: Any) -> Any:
        slices = index if isinstance(index, tuple) else (index,)
        ranges = [_range(each) for each in slices]
        rank = len(ranges)
        opened = [dimshuffle(each, ["x"] * axis + [0] + ["x"] * (rank - axis - 1)) for axis, each in enumerate(ranges)]
        sizes: list[Size] = [size_of(each, 0) for each in ranges]
        made = opened if self._sparse else [broadcast_to(each, sizes) for each in opened]
        return made if isinstance(index, tuple) else made[0]


def _range(each: Any) -> Variable:
    """The numbers of a slice; its bounds may be symbolic."""
    if not isinstance(each, slice) or each.stop is None or isinstance(each.step, complex):
        raise ArgumentError(explain_error("a grid is written with slices that have an end, mgrid[0:3, 0:5:2]", repr(each),
                                          "T.linspace gives a number of points"))
    return arange(0 if each.start is None else each.start, each.stop, 1 if each.step is None else each.step)


mgrid = _Grid(sparse=False)
ogrid = _Grid(sparse=True)
