"""Memory asked for ahead, in loops over rows that do not lie one behind the other.

A reduction over the batch and the pixels reads, for each channel, one row of every image.  The processor's own prefetching follows
one row at a time and begins anew at each.  So while a piece of a row is computed, the lines of the next piece are asked for, from
each quarter of it in turn: memory answers several places at once faster than one.  On the machine this was measured on, one core
read rows of 12 KB with 12.0 instead of 8.5 GB/s; mean and variance took 8 to 17 % less time on both of its cores.  Two inputs are
several places already, and what the caches hold gains nothing: there it was measured as no faster, or slower.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .. import dtypes
from .access import Accesses
from .loops import LoopNest

PIECE_BYTES = 16 << 10  # half of a core's first cache
UNIT_BYTES = 1 << 10
FAR_BYTES = 2 << 10  # where rows are shorter, one after the next is asked for
CACHED_BYTES = 12 << 20  # caches may hold an input of this size


@dataclass(frozen=True, slots=True)
class LaterRow:
    """C of the rows of an input: where this one starts, the line that declares the pointer `name` to a later one."""

    row: str
    name: str
    declaration: str
    itemsize: int


def later_row(nest: LoopNest, accesses: Accesses, reduced: Sequence[int], kept: Sequence[int], start: str) -> LaterRow | None:
    """The row to ask for where one input is read in one loop of rows and the innermost loop, both reduced; else None.

    Two run-time numbers are added: `ahead` says how many rows later it comes, `piece` how many bytes are asked for at once, 0 where
    that gains nothing.  `start`: C of the first element in a row.
    """
    rows = [axis for axis in reduced if axis != nest.rank - 1]
    inputs = [array for array in range(1, len(accesses.arrays)) if nest.strides[array][-1]]
    if len(rows) != 1 or len(inputs) != 1 or nest.strides[inputs[0]][-1] != 1:
        return None
    (axis,), (array,) = rows, inputs
    itemsize = dtypes.itemsize(accesses.dtypes[array])
    row_bytes = max(1, nest.sizes[-1] * itemsize)
    n_bytes = itemsize * math.prod(size for size, stride in zip(nest.sizes, nest.strides[array], strict=True) if stride)
    accesses.number("ahead", min(nest.sizes[axis], -(-FAR_BYTES // row_bytes)))
    accesses.number("piece", piece_of(row_bytes) if n_bytes > CACHED_BYTES else 0)
    name = accesses.arrays[array]
    return LaterRow(f"{name}_row + {start}", f"{name}_later", _declaration(accesses, array, axis, kept, start), itemsize)


def piece_of(row_bytes: int) -> int:
    """Bytes of equal pieces of a row.

    >>> piece_of(12544), piece_of(50176), piece_of(784)
    (13312, 13312, 1024)
    """
    pieces = -(-row_bytes // PIECE_BYTES)
    return -(-row_bytes // (pieces * UNIT_BYTES)) * UNIT_BYTES


def _declaration(accesses: Accesses, array: int, axis: int, kept: Sequence[int], start: str) -> str:
    """Behind the last row of a result come the first ones of the next.

    That is no more than a guess; behind the last result nothing lies there, which memory that is only asked for may do.
    """
    name, step = accesses.arrays[array], accesses.steps[array][axis] or "0"
    across = accesses.steps[array][kept[-1]] if kept else ""
    wrapped = f"(ahead - n{axis}) * {step}{f' + {across}' if across else ''}"
    return f"const void *const {name}_later = {name}_row + (i{axis} + ahead < n{axis} ? ahead * {step} : {wrapped}) + {start};"
