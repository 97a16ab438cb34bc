"""Pooling as users call it; the rules of shape, padding, ties and NaN are in `ops/pool_shape.py` and `ops/pooling.py`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, GraphTypeError, explain_error
from ...graph import Variable, apply_op
from ...ops.constants import as_variable
from ...ops.pooling import MODES, Pool

__all__ = ["average_pool_1d", "average_pool_2d", "average_pool_3d", "global_average_pool", "global_max_pool",
           "max_pool_1d", "max_pool_2d", "max_pool_3d", "pool_1d", "pool_2d", "pool_3d"]

_NEW_NAMES = {"ds": "ws", "st": "stride", "padding": "pad"}


def pool_1d(input: Any, ws: Any = None, ignore_border: bool = True, stride: Any = None, pad: Any = 0, mode: str = "max",
            **old_names: Any) -> Variable:
    """Pooling over the last axis of an input of any rank from 1; arguments as in `pool_2d`."""
    return _pool(1, input, ws, ignore_border, stride, pad, mode, old_names)


def pool_2d(input: Any, ws: Any = None, ignore_border: bool = True, stride: Any = None, pad: Any = 0, mode: str = "max",
            **old_names: Any) -> Variable:
    """Pooling over the last two axes of an input of any rank from 2; all axes before are kept.

    Args:
        input: the images, [..., rows, columns], of any number type (averages: floats). The result has the same dtype.
        ws: window size: an int for both axes or a pair of ints.
        ignore_border: True: only windows inside the padded image, floor((n + padding - ws) / stride) + 1 of them.
            False: also a last window that reaches over the border, but none that starts in the padding after the image.
            Theano's default was False, with a warning; cuDNN and the common nets mean True.
        stride: step of the window: an int or a pair; `ws` by default.
        pad: padding: an int, or for each axis an int or a pair (before, after); smaller than the window. Works with both
            values of `ignore_border` (in Theano with True only).
        mode: "max" (padding never wins, NaN does; the gradient goes to the first maximum of a window in row-major order),
            "sum", "average_inc_pad" (padded zeros count) or "average_exc_pad" (they do not).

    Raises:
        ArgumentError: an unknown mode, a window or stride below 1, padding that is negative or not smaller than the window.
        GraphTypeError: arguments that are no ints (a symbolic `ws` among them), a rank below 2, averages of integers.
        TypeError: Theano's old argument names ds, st and padding.

    >>> x = as_variable([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    >>> pool_2d(x, 2).static_shape, pool_2d(x, (2, 3), ignore_border=False, stride=(1, 2)).static_shape
    ((1, 2), (1, 2))
    """
    return _pool(2, input, ws, ignore_border, stride, pad, mode, old_names)


def pool_3d(input: Any, ws: Any = None, ignore_border: bool = True, stride: Any = None, pad: Any = 0, mode: str = "max",
            **old_names: Any) -> Variable:
    """Pooling over the last three axes of an input of any rank from 3; arguments as in `pool_2d`."""
    return _pool(3, input, ws, ignore_border, stride, pad, mode, old_names)


def max_pool_1d(input: Any, ws: Any, stride: Any = None, pad: Any = 0, ignore_border: bool = True) -> Variable:
    """`pool_1d` with mode "max"."""
    return pool_1d(input, ws, ignore_border, stride, pad)


def max_pool_2d(input: Any, ws: Any, stride: Any = None, pad: Any = 0, ignore_border: bool = True) -> Variable:
    """`pool_2d` with mode "max"."""
    return pool_2d(input, ws, ignore_border, stride, pad)


def max_pool_3d(input: Any, ws: Any, stride: Any = None, pad: Any = 0, ignore_border: bool = True) -> Variable:
    """`pool_3d` with mode "max"."""
    return pool_3d(input, ws, ignore_border, stride, pad)


def average_pool_1d(input: Any, ws: Any, stride: Any = None, pad: Any = 0, ignore_border: bool = True,
                    include_pad: bool = False) -> Variable:
    """`pool_1d` with mode "average_exc_pad", or "average_inc_pad" where `include_pad`."""
    return pool_1d(input, ws, ignore_border, stride, pad, _average_mode(include_pad))


def average_pool_2d(input: Any, ws: Any, stride: Any = None, pad: Any = 0, ignore_border: bool = True,
                    include_pad: bool = False) -> Variable:
    """`pool_2d` with mode "average_exc_pad", or "average_inc_pad" where `include_pad`."""
    return pool_2d(input, ws, ignore_border, stride, pad, _average_mode(include_pad))


def average_pool_3d(input: Any, ws: Any, stride: Any = None, pad: Any = 0, ignore_border: bool = True,
                    include_pad: bool = False) -> Variable:
    """`pool_3d` with mode "average_exc_pad", or "average_inc_pad" where `include_pad`."""
    return pool_3d(input, ws, ignore_border, stride, pad, _average_mode(include_pad))


def global_average_pool(input: Any, keepdims: bool = False) -> Variable:
    """Mean over all spatial axes, which are those after the first two: [N, C, ...] → [N, C], or [N, C, 1, ...]."""
    variable = _with_spatial_axes(input)
    return variable.mean(axis=tuple(range(2, variable.ndim)), keepdims=keepdims)


def global_max_pool(input: Any, keepdims: bool = False) -> Variable:
    """Maximum over all spatial axes, which are those after the first two: [N, C, ...] → [N, C], or [N, C, 1, ...].

    NaN wins, and the gradient goes to the first maximum in row-major order, as in `pool_2d`.
    """
    variable = _with_spatial_axes(input)
    return variable.max(axis=tuple(range(2, variable.ndim)), keepdims=keepdims)


def _with_spatial_axes(input: Any) -> Variable:
    variable = as_variable(input)
    if variable.ndim < 3:
        raise GraphTypeError(explain_error("global pooling needs axes after batch and channels", str(variable.type),
                                           "pass a tensor [N, C, ...] of rank 3 or more"))
    return variable


def _average_mode(include_pad: bool) -> str:
    return "average_inc_pad" if include_pad else "average_exc_pad"


def _pool(rank: int, input: Any, ws: Any, ignore_border: Any, stride: Any, pad: Any, mode: str,
          old_names: dict[str, Any]) -> Variable:
    _check_names(f"pool_{rank}d", ws, old_names)
    if mode not in MODES:
        raise ArgumentError(explain_error("there is no such pooling mode", repr(mode), f"use one of {', '.join(MODES)}"))
    if not isinstance(ignore_border, bool):
        raise GraphTypeError(explain_error("ignore_border is True or False", repr(ignore_border)))
    window = _per_axis("ws", ws, rank, 1)
    steps = window if stride is None else _per_axis("stride", stride, rank, 1)
    low, high = _padding(pad, window)
    return apply_op(Pool(mode, window, steps, low, high, ignore_border), as_variable(input))


def _check_names(function: str, ws: Any, old_names: dict[str, Any]) -> None:
    for name in old_names:
        if name in _NEW_NAMES:
            raise GraphTypeError(explain_error(f"{function} has no argument {name!r}", do=f"call it {_NEW_NAMES[name]!r}"))
        raise GraphTypeError(explain_error(f"{function} has no argument {name!r}",
                                           do="use ws, ignore_border, stride, pad and mode"))
    if ws is None:
        raise GraphTypeError(explain_error(f"{function} needs the window size", do="pass ws, an int or one int for each axis"))


def _per_axis(what: str, value: Any, rank: int, least: int) -> tuple[int, ...]:
    entries = list(value) if _is_sequence(value) else [value] * rank
    if len(entries) != rank:
        raise ArgumentError(explain_error(f"{what} has one int for each of the {rank} pooled axes", repr(value)))
    return tuple(_whole(what, entry, least) for entry in entries)


def _padding(pad: Any, window: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(window)
    entries = list(pad) if _is_sequence(pad) else [pad] * rank
    if len(entries) != rank:
        raise ArgumentError(explain_error(f"pad has one entry for each of the {rank} pooled axes", repr(pad)))
    sides = [_per_axis("pad", entry, 2, 0) for entry in entries]
    for axis, (size, pair) in enumerate(zip(window, sides, strict=True)):
        if max(pair) >= size:
            raise ArgumentError(explain_error("padding must be smaller than the window, else a window may hold padding only",
                                              f"pad {max(pair)} and window {size} on pooled axis {axis}"))
    return tuple(pair[0] for pair in sides), tuple(pair[1] for pair in sides)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) or (getattr(value, "ndim", 0) == 1 and not isinstance(value, Variable))


def _whole(what: str, value: Any, least: int) -> int:
    if isinstance(value, (bool, Variable)) or not hasattr(value, "__index__"):
        raise GraphTypeError(explain_error(f"{what} is made of Python ints, known when the expression is built",
                                           repr(value)))
    if int(value) < least:
        raise ArgumentError(explain_error(f"{what} starts at {least}", repr(value)))
    return int(value)
