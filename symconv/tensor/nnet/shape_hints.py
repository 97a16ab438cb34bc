"""Sizes that a user says a tensor has: checked against its type at once, and against its value on every call."""
from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ...graph import Variable
from ...ops.border_modes import is_whole_number
from ...ops.shape_rules import shape_text
from ...ops.sizes import known_scalar
from ...ops.specify_shape import specify_shape


def with_shape_hint(x: Variable, hint: Any, name: str, ndim: int) -> Variable:
    """x with the sizes of `hint` (None: no hint; an entry None: not known) in its type.

    An entry is an int or a symbolic scalar whose value is known without a run.  ArgumentError for a hint that is none,
    ShapeError where it contradicts the type of x.
    """
    if hint is None or x.ndim != ndim:  # a wrong rank has an error of its own
        return x
    if not isinstance(hint, (tuple, list)):
        raise GraphTypeError(explain_error(f"{name} is a tuple of sizes, None where a size is not known", repr(hint)))
    if len(hint) != ndim:
        raise ArgumentError(explain_error(f"{name} must have {ndim} elements", f"{hint!r} with {len(hint)}"))
    sizes = tuple(_size(entry, name, hint) for entry in hint)
    if any(None not in (a, b) and a != b for a, b in zip(sizes, x.type.shape, strict=True)):
        raise ShapeError(explain_error(f"{name} contradicts the shape of {x.label}",
                                       f"{name} {shape_text(sizes)}, {x.label} has the shape {shape_text(x.type.shape)}",
                                       f"correct {name} or leave it out"))
    return specify_shape(x, sizes)


def _size(entry: Any, name: str, hint: Any) -> int | None:
    if isinstance(entry, Variable) and entry.ndim == 0:
        entry = known_scalar(entry)
        if entry is None:
            raise ArgumentError(explain_error(f"{name} takes sizes that are known when the graph is built", repr(hint),
                                              "write None for the symbolic one"))
    if entry is not None and (not is_whole_number(entry) or entry < 0):
        raise ArgumentError(explain_error(f"{name} takes whole numbers from 0, or None", repr(hint)))
    return None if entry is None else int(entry)
