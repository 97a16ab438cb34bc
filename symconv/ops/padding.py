"""Padding: `Pad` puts a constant around a tensor; the other modes read the tensor's own elements through indices."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .basic_indexing import IncSubtensor, Slice, Subtensor, nothing
from .constants import as_variable, constant
from .creation import arange
from .elementwise import clip, minimum
from .indexing import take
from .promotion import common_dtype
from .shape import size_of

Widths = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Pad(Op):
    """x with before[axis] elements put before and after[axis] behind each axis, all equal to `value`.

    Inputs: x, value (a scalar of x's dtype).  The widths are ints from 0, one for each axis.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]

    def infer(self, x: TensorType, value: TensorType) -> tuple[TensorType, ...]:
        if not x.ndim == len(self.before) == len(self.after) or min((*self.before, *self.after), default=0) < 0:
            raise GraphTypeError(explain_error(f"padding by {self.before} and {self.after} is impossible", str(x),
                                               "give a width from 0 for each axis"))
        if value != TensorType(x.dtype, ()):
            raise GraphTypeError(explain_error(f"the value of a padding is a scalar of {x.dtype}", str(value)))
        return (x.with_shape([None if size is None else low + size + high
                              for low, size, high in zip(self.before, x.shape, self.after, strict=True)]),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        (gz,) = cotangents
        if gz is None:
            return (None, None)
        inner = tuple(Slice(low or None, -high or None) for low, high in zip(self.before, self.after, strict=True))
        border = apply_op(IncSubtensor(inner, "set"), gz, nothing(gz.dtype, gz.ndim))
        return (apply_op(Subtensor(inner), gz), border.sum())

    def reference(self, x: Array, value: Array) -> tuple[Array, ...]:
        widths = list(zip(self.before, self.after, strict=True))
        return (np.pad(x, widths, constant_values=value.item()) if widths else x.copy(),)

    def __str__(self) -> str:
        return f"Pad{{{self.before}, {self.after}}}"


MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Variable:
    """x with elements put before and behind its axes, as NumPy's pad.

    `pad_width`: one int for all sides, a pair (before, after) for all axes, or one pair for each axis; ints from 0.
    `mode`: "constant" (`constant_values`, a number or symbolic scalar), "edge" (the outermost element), "reflect" (mirrored
    at the outermost element), "symmetric" (mirrored beside it) or "wrap" (from the other side).

    >>> pad(np.zeros((2, 3)), ((0, 1), (2, 2))).type.shape
    (3, 7)
    """
    x = as_variable(x)
    widths = _widths(pad_width, x)
    if mode == "constant":
        return _constant_padded(x, widths, constant_values)
    if mode not in MODES:
        raise ArgumentError(explain_error("pad has no such mode", repr(mode), f"use one of {', '.join(MODES)}"))
    for axis, (before, after) in enumerate(widths):
        if before or after:
            _check_not_empty(x, axis)
            x = take(x, _source_indices(x, axis, before, after, mode), axis)
    return x


def _constant_padded(x: Variable, widths: Widths, value: Any) -> Variable:
    if x.dtype == "bool" and isinstance(value, int) and value in (0, 1):
        value = bool(value)  # as NumPy: the default, 0, is False
    if common_dtype([x, value]) != x.dtype:
        raise GraphTypeError(explain_error(f"{x.dtype} can not hold the value of the padding", f"{as_variable(value).type}",
                                           f"cast it to {x.dtype}"))
    fill = as_variable(value, x.dtype)
    if fill.ndim:
        raise GraphTypeError(explain_error("the value of a padding is a scalar", str(fill.type)))
    return apply_op(Pad(tuple(low for low, _ in widths), tuple(high for _, high in widths)), x, fill)


def _widths(given: Any, x: Variable) -> Widths:
    """The pairs of all axes from what NumPy's pad takes."""
    try:
        array = np.asarray(given)
        pairs = np.broadcast_to(array, (x.ndim, 2))
    except (ValueError, TypeError):
        pairs = np.empty((0, 0))
    if pairs.shape != (x.ndim, 2) or (pairs.size and (pairs.dtype.kind not in "iu" or pairs.min() < 0)):
        raise ArgumentError(explain_error("pad_width is an int from 0, a pair, or a pair for each axis",
                                           f"{given!r} for {x.type}"))
    return tuple((int(low), int(high)) for low, high in pairs)


def _check_not_empty(x: Variable, axis: int) -> None:
    if x.type.shape[axis] == 0:
        raise ShapeError(explain_error(f"axis {axis} is empty, so there is nothing to pad it with", str(x.type),
                                       'use mode="constant"'))


def _source_indices(x: Variable, axis: int, before: int, after: int, mode: str) -> Variable:
    """For each place of the padded axis the index of the element of x that it shows."""
    size = size_of(x, axis)
    if isinstance(size, int):
        shown = np.pad(np.arange(size), (before, after), mode=mode)  # type: ignore[call-overload]
        return constant(shown, "int64")
    places = arange(-before, size + after)
    if mode == "edge":
        return clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    turn = 2 * size - (2 if mode == "reflect" else 0)
    inside = places % turn
    return minimum(inside, turn - inside - (0 if mode == "reflect" else 1))
