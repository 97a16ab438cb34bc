"""What stands between the brackets of `x[...]`, checked and in one form: a list of entries with nothing left implicit.

Entries are None (a new axis), an int, an int64 scalar variable, a `Range` (a slice with such bounds) or an int64 array
variable of rank 1 or more; together they name every axis of x.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, GraphTypeError, IndexRangeError, ShapeError, explain_error
from ..graph import Constant, TensorType, Variable
from .constants import as_variable, constant
from .sizes import known_scalar

RangeBound = int | Variable | None


@dataclass(frozen=True, slots=True)
class Range:
    """A slice as the user wrote it."""

    start: RangeBound = None
    stop: RangeBound = None
    step: RangeBound = None

    @property
    def bounds(self) -> tuple[RangeBound, RangeBound, RangeBound]:
        """start, stop, step."""
        return self.start, self.stop, self.step


IndexEntry = None | int | Variable | Range


@dataclass(frozen=True, slots=True)
class ParsedIndex:
    """The entries, and before which of them a `...` stood that takes no axis (NumPy lets it part integer arrays)."""

    entries: list[IndexEntry]
    gap: int | None = None


def parse_index(x: TensorType, index: Any) -> ParsedIndex:
    """The entries of an index of x; a UserError for what is no index, too many entries, and masks that are computed."""
    raw = list(index) if isinstance(index, tuple) else [index]
    entries: list[Any] = []
    for each in raw:
        entries.extend(_entries(each, x))
    named = sum(entry is not None and entry is not Ellipsis for entry in entries)
    if named > x.ndim:
        raise IndexRangeError(explain_error(f"the index names {named} axes", f"a tensor of rank {x.ndim}: {x}"))
    dots = [place for place, entry in enumerate(entries) if entry is Ellipsis]
    if len(dots) > 1:
        raise IndexRangeError(explain_error("an index holds at most one ...", f"{len(dots)} of them"))
    place = dots[0] if dots else len(entries)
    filled = [*entries[:place], *[Range()] * (x.ndim - named), *entries[place + 1:]]
    return ParsedIndex(filled, place if dots and named == x.ndim else None)


def _entries(raw: Any, x: TensorType) -> list[Any]:
    if raw is None or raw is Ellipsis:
        return [raw]
    if isinstance(raw, slice):
        return [Range(_bound(raw.start), _bound(raw.stop), _step(raw.step))]
    if isinstance(raw, (bool, np.bool_)):
        raise GraphTypeError(explain_error("a bool is no index", repr(raw), "use an int, or None for a new axis"))
    if not isinstance(raw, (Variable, np.ndarray, list, tuple)):
        return [_integer(raw, "an index")]
    array = index_array(raw)
    if array.ndim == 0:
        return [_integer(array, "an index")]
    return _mask_positions(array, x) if array.dtype == "bool" else [array]


def index_array(raw: Any) -> Variable:
    """Indices as an int64 variable (a bool one stays as it is); an empty list holds no integers but is one of them."""
    array = constant(raw, "int64") if isinstance(raw, (list, tuple)) and not raw else as_variable(raw)
    if dtypes.is_float(array.dtype):
        raise GraphTypeError(explain_error("an index is made of integers", f"{array.label}: {array.type}",
                                           'cast it: i.astype("int64"); masks are bool'))
    return array if array.dtype == "bool" else _as_int64(array)


def _as_int64(index: Variable) -> Variable:
    """An index as int64; uint64 ones past its end stay past the end of every axis (wrapped they would count from the end)."""
    if index.dtype != "uint64":
        return index.astype("int64")
    from .elementwise import minimum

    return minimum(index, constant(np.iinfo(np.int64).max, "uint64")).astype("int64")


def _mask_positions(mask: Variable, x: TensorType) -> list[Variable]:
    """A mask whose values are fixed, as the integer arrays of its true positions."""
    if not isinstance(mask, Constant):
        raise GraphTypeError(explain_error(
            "a computed boolean mask is no index: the size of the result would depend on its values", str(mask.type),
            "use T.where(mask, x, other), or multiply by the mask; a NumPy array of bools may stand as an index"))
    sizes = x.shape[:mask.ndim]
    if mask.ndim > x.ndim or any(size not in (None, own) for size, own in zip(sizes, mask.data.shape, strict=True)):
        raise ShapeError(explain_error("the mask has not the shape of what it indexes", f"{mask.type} on {x}"))
    return [constant(places, "int64") for places in np.nonzero(mask.data)]


def _integer(raw: Any, what: str) -> int | Variable:
    """An int (also where the value of a symbolic scalar is known) or an int64 scalar."""
    if isinstance(raw, Variable):
        if raw.ndim or not dtypes.is_integer(raw.dtype):
            raise GraphTypeError(explain_error(f"{what} is an integer scalar", f"{raw.label}: {raw.type}"))
        value = known_scalar(raw)
        return _as_int64(raw) if value is None else value
    if isinstance(raw, (bool, np.bool_)) or not hasattr(raw, "__index__"):
        raise GraphTypeError(explain_error(f"{what} is an int or an integer scalar", f"{raw!r} ({type(raw).__name__})"))
    return int(raw.__index__())


def _bound(raw: Any) -> RangeBound:
    return None if raw is None else _integer(raw, "the bound of a slice")


def _step(raw: Any) -> RangeBound:
    step = _bound(raw)
    if isinstance(step, int) and step == 0:
        raise ArgumentError(explain_error("the step of a slice can not be 0"))
    return step
