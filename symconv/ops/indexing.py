"""`x[...]` with everything NumPy allows between the brackets but computed masks, and writing to such a region.

An index becomes at most: one `Subtensor` (slices and integers), one `DimShuffle` (new axes; indexed axes to the front), one
`Gather` (integer arrays), one `DimShuffle` (their axes to where NumPy puts them).  Steps that would do nothing are left out.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal
from weakref import WeakKeyDictionary

from ..errors import GraphTypeError, InternalError, explain_error
from ..graph import Apply, Constant, Variable, apply_op
from .axes import normalize_axis
from .basic_indexing import INPUT, IncSubtensor, Slice, Subtensor, checked_index, slice_bounds
from .constants import as_variable, constant
from .index_syntax import IndexEntry, ParsedIndex, Range, index_array, parse_index
from .integer_indexing import Gather, ScatterAdd, ScatterSet
from .promotion import common_dtype
from .shape import DimShuffle, Shape, dimshuffle, flatten
from .sizes import vector_sizes

_bases: WeakKeyDictionary[Variable, Variable] = WeakKeyDictionary()  # what each result of `getitem` indexes


def getitem(x: Any, index: Any) -> Variable:
    """x[index] as NumPy has it: ints, slices, `...`, None, integer arrays and symbolic integers as ints or bounds.

    Integer arrays (also beside ints) broadcast together; their axes stand where the first of them stood, or before all
    others where a slice or None stands between them.  NumPy arrays of bools stand for their true positions.  Raises
    GraphTypeError for floats and computed masks; IndexRangeError for an index outside its axis, at run time where it is
    not known before.
    """
    x = as_variable(x)
    parsed = parse_index(x.type, index)
    entries = parsed.entries
    known = _known_element(x, entries)
    if known is not None:
        return known
    arrays = [entry for entry in entries if isinstance(entry, Variable) and entry.ndim]
    result = _gathered(x, parsed, arrays) if arrays else _basic(x, entries)
    _bases[result] = x
    return result


def _known_element(x: Variable, entries: Sequence[IndexEntry]) -> Variable | None:
    """One size out of a shape, where it needs no node: a constant, or the scalar that a vector of sizes was made of."""
    if x.ndim != 1 or len(entries) != 1 or not isinstance(entries[0], int) or x.dtype != "int64":
        return None
    if x.apply is None and not (isinstance(x, Constant) and x.data.size <= _LARGEST_SHAPE):
        return None
    sizes = vector_sizes(x)
    if sizes is None or not -len(sizes) <= entries[0] < len(sizes):
        return None
    size = sizes[entries[0]]
    if isinstance(size, int):
        return constant(size, "int64")
    return None if x.apply is not None and isinstance(x.apply.op, Shape) else size


_LARGEST_SHAPE = 16


def _basic(x: Variable, entries: Sequence[IndexEntry]) -> Variable:
    """Integers and slices, then new axes."""
    region = _subtensor(x, [entry for entry in entries if entry is not None])
    axes = iter(range(region.ndim))
    kept = [entry for entry in entries if entry is None or _is_range(entry)]
    return dimshuffle(region, [None if entry is None else next(axes) for entry in kept])


def _is_range(entry: IndexEntry) -> bool:
    return isinstance(entry, Range)


def _subtensor(x: Variable, entries: Sequence[IndexEntry]) -> Variable:
    """x indexed by one integer or slice for each axis."""
    scalars: list[Variable] = []

    def bound(value: int | Variable | None) -> Any:
        if isinstance(value, Variable):
            scalars.append(value)
            return INPUT
        return value

    pattern: list[Any] = []
    for axis, (entry, size) in enumerate(zip(entries, x.type.shape, strict=True)):
        if isinstance(entry, Range):
            pattern.append(_tidied(Slice(*map(bound, entry.bounds)), size))
        elif isinstance(entry, int) and size is not None:
            pattern.append(checked_index(entry, axis, size))
        else:
            pattern.append(bound(entry))
    return apply_op(Subtensor(tuple(pattern)), x, *scalars)


def _tidied(entry: Slice, size: int | None) -> Slice:
    """`:` for every slice that is known to take the whole axis in order."""
    if entry.is_full:
        return Slice()
    if size is None or INPUT in entry.bounds:
        return entry
    return Slice() if slice_bounds(entry, size) == (0, 1, size) else entry


def _gathered(x: Variable, parsed: ParsedIndex, arrays: Sequence[Variable]) -> Variable:
    """Integer arrays, with all that stands beside them (see the module's text)."""
    entries = parsed.entries
    basic = [Range() if isinstance(entry, Variable) and entry.ndim else entry for entry in entries if entry is not None]
    region = x if all(entry == Range() for entry in basic) else _subtensor(x, basic)
    indexed, others = _split_axes(entries)
    gathered = apply_op(Gather(len(arrays)), dimshuffle(region, (*indexed, *others)), *_aligned(arrays))
    rank = gathered.ndim - len(others)
    first = _place(parsed)
    axes = iter(range(rank, gathered.ndim))
    kept = [entry for entry in entries if entry is None or _is_range(entry)]
    result = [None if entry is None else next(axes) for entry in kept]
    return dimshuffle(gathered, [*result[:first], *range(rank), *result[first:]])


def _split_axes(entries: Sequence[IndexEntry]) -> tuple[list[int], list[int]]:
    """Of the axes that integers leave: those that arrays index, and the others."""
    left = [entry for entry in entries if _is_range(entry) or (isinstance(entry, Variable) and entry.ndim)]
    return ([axis for axis, entry in enumerate(left) if not _is_range(entry)],
            [axis for axis, entry in enumerate(left) if _is_range(entry)])


def _place(parsed: ParsedIndex) -> int:
    """How many of the other axes stand before those of the arrays: integers count as arrays here, as in NumPy."""
    places = [place for place, entry in enumerate(parsed.entries) if entry is not None and not _is_range(entry)]
    together = places == list(range(places[0], places[-1] + 1))
    if parsed.gap is not None:
        together = together and not places[0] < parsed.gap <= places[-1]
    return places[0] if together else 0


def _aligned(arrays: Sequence[Variable]) -> list[Variable]:
    """The index arrays with axes of size 1 before theirs, so that all have one rank."""
    rank = max(array.ndim for array in arrays)
    return [dimshuffle(array, [None] * (rank - array.ndim) + list(range(array.ndim))) for array in arrays]


def set_subtensor(region: Variable, value: Any) -> Variable:
    """x in which a region is replaced: `set_subtensor(x[1:, 0], value)` gives a new x.

    `region` is the very result of `x[...]`; `value` is broadcast to it and must fit its dtype.  Of positions that integer
    arrays name twice the last wins.  Raises GraphTypeError where `region` is no x[...] or the value's dtype does not fit.
    """
    return _update(region, value, "set")


def inc_subtensor(region: Variable, value: Any) -> Variable:
    """x with `value` added to a region: `inc_subtensor(x[indices], value)`; positions named twice get both.

    Arguments and errors are those of `set_subtensor`.
    """
    return _update(region, value, "add")


Mode = Literal["set", "add"]


def _update(region: Variable, value: Any, mode: Mode) -> Variable:
    steps = _steps(region)
    dtype = common_dtype([region, value])
    if dtype != region.dtype:
        raise GraphTypeError(explain_error(f"a region of {region.dtype} can not hold the value",
                                           str(as_variable(value).type),
                                           f"cast it to {region.dtype}"))
    y = as_variable(value, region.dtype)
    if y.ndim > region.ndim:
        raise GraphTypeError(explain_error("the value has more axes than the region", f"{y.type} for {region.type}"))
    y = dimshuffle(y, [None] * (region.ndim - y.ndim) + list(range(y.ndim)))
    for step in reversed(steps):
        y, mode = _undo(step, y, mode)
    return y


def _undo(step: Apply, y: Variable, mode: Mode) -> tuple[Variable, Mode]:
    """What `step.inputs[0]` becomes when the output of the step is updated with y.

    A renaming of axes hands y on; the first step that selects makes the new values, which the steps before it set.
    """
    x, *scalars = step.inputs
    match step.op:
        case DimShuffle(pattern, ndim):
            return dimshuffle(y, [pattern.index(axis) for axis in range(ndim)]), mode
        case Subtensor(pattern):
            return apply_op(IncSubtensor(pattern, mode), x, y, *scalars), "set"
        case Gather(n):
            return apply_op(ScatterSet(n) if mode == "set" else ScatterAdd(n), x, y, *scalars), "set"
    raise InternalError(f"{step.op} is no step of an index")


def _steps(region: Any) -> list[Apply]:
    """The nodes from what is indexed to the region, in order."""
    if not isinstance(region, Variable) or region.apply is None:
        raise GraphTypeError(explain_error("only a region x[...] can be set", repr(region),
                                           "write set_subtensor(x[...], value)"))
    base = _bases.get(region)
    steps = [region.apply]
    if base is None:
        _check_one_step(region, region.apply)
        return steps
    while steps[0].inputs[0] is not base:
        before = steps[0].inputs[0].apply
        if before is None:
            raise InternalError(f"{region!r} is not computed from what it indexes")
        steps.insert(0, before)
    return steps


def _check_one_step(region: Variable, node: Apply) -> None:
    """That a region whose origin is not on record (one that was pickled, say) is one plain step."""
    below = node.inputs[0].apply if node.inputs else None
    alone = below is None or not isinstance(below.op, (Subtensor, DimShuffle))
    if not isinstance(node.op, Subtensor) and not (isinstance(node.op, Gather) and alone):
        raise GraphTypeError(explain_error("only a region x[...] can be set", f"the result of {node.op}, {region.type}",
                                           "index again: set_subtensor(x[...], value)"))


def take(x: Any, indices: Any, axis: int | None = None) -> Variable:
    """Elements by integer index along an axis (of the flattened tensor by default), as NumPy's take.

    The axes of `indices` stand in the place of `axis`.  Raises IndexRangeError at run time for an index outside the axis.
    """
    x, array = as_variable(x), index_array(indices)
    if array.dtype == "bool":
        raise GraphTypeError(explain_error("take needs integers", str(array.type)))
    if axis is None:
        return getitem(flatten(x), array)
    return getitem(x, (*[slice(None)] * normalize_axis(axis, x.ndim), array))


def length(x: Variable) -> int:
    """What `len(x)` gives: the static size of the first axis."""
    if x.ndim == 0:
        raise GraphTypeError(explain_error("a scalar has no length", repr(x)))
    size = x.type.shape[0]
    if size is None:
        raise GraphTypeError(explain_error("the length is not known before the function runs", f"{x.type}",
                                           "use x.shape[0], or declare the input with its shape"))
    return size


def iterate(x: Variable) -> Iterator[Variable]:
    """x[0], x[1], … for a static first size."""
    return iter([getitem(x, number) for number in range(length(x))])
