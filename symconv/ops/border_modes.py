"""Border modes: what a user may write for the padding of a convolution, and what each rule comes to.

For one axis with image size n, kernel size k, dilation l and stride s, and dk = (k - 1) * l + 1:

| mode | before, after | output size |
|---|---|---|
| `valid` | 0, 0 | (n - dk) // s + 1 |
| `full` | dk - 1, dk - 1 | (n + dk - 2) // s + 1 |
| `half` | dk // 2, dk // 2 | (n + 2 * (dk // 2) - dk) // s + 1 |
| `causal` | dk - 1, 0 | (n - 1) // s + 1 |
| `same` (= `same_upper`) | total // 2, total - total // 2 | ceil(n / s) |
| `same_lower` | total - total // 2, total // 2 | ceil(n / s) |
| int p | p, p | (n + 2p - dk) // s + 1 |
| pair (a, b) | a, b | (n + a + b - dk) // s + 1 |

where total = max(0, (ceil(n / s) - 1) * s + dk - n).  A list or tuple with one entry for each axis mixes them.
`valid`, `full`, `half`, int and pairs are Theano's; `same` is TensorFlow's and ONNX's rule; `causal` lets no output see a
later input.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, GraphTypeError, explain_error

RULES = ("full", "half", "causal", "same", "same_lower")

AxisPadding = tuple[int, int] | str
"""Padding of one axis: zeros before and after, or the name of a rule."""

_NAMES: dict[str, AxisPadding] = {"valid": (0, 0), "full": "full", "half": "half", "causal": "causal", "same": "same",
                                  "same_upper": "same", "same_lower": "same_lower"}


def is_whole_number(value: Any) -> bool:
    """Whether a value is a Python or NumPy integer (bool is not)."""
    return hasattr(value, "__index__") and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0


def parse_border_mode(mode: Any, ndim: int, name: str = "border_mode") -> tuple[AxisPadding, ...]:
    """The padding of every axis from what a user wrote.

    >>> parse_border_mode("half", 2), parse_border_mode((1, (0, 2)), 2), parse_border_mode(3, 1)
    (('half', 'half'), ((1, 1), (0, 2)), ((3, 3),))
    """
    if isinstance(mode, str) or is_whole_number(mode):
        return (_axis_padding(mode, ndim, name),) * ndim
    if not isinstance(mode, (tuple, list)):
        raise GraphTypeError(_unknown_mode(mode, ndim, name))
    if len(mode) != ndim:
        raise ArgumentError(explain_error(
            f"{name} must have one entry for each of the {ndim} spatial axes", f"{mode!r} with {len(mode)} entries",
            f"give {ndim} entries, each a whole number, a pair (before, after) or a mode name"))
    return tuple(_axis_padding(entry, ndim, name) for entry in mode)


def _axis_padding(entry: Any, ndim: int, name: str) -> AxisPadding:
    if isinstance(entry, str):
        if entry not in _NAMES:
            raise ArgumentError(_unknown_mode(entry, ndim, name))
        known = _NAMES[entry]
        return known
    sides: Sequence[Any] = (entry, entry) if is_whole_number(entry) else entry
    if not isinstance(sides, (tuple, list)) or len(sides) != 2 or not all(map(is_whole_number, sides)):
        raise ArgumentError(_unknown_mode(entry, ndim, name))
    if min(sides) < 0:
        raise ArgumentError(explain_error(f"{name} must not be negative", repr(entry),
                                          "pad by 0 or more; cut the image with slices instead"))
    return int(sides[0]), int(sides[1])


def _unknown_mode(mode: Any, ndim: int, name: str) -> str:
    return explain_error(
        f"{name} does not take this value", repr(mode),
        f"use {', '.join(map(repr, _NAMES))}, a whole number, or {ndim} entries: whole numbers or pairs (before, after)")


def axis_values(value: Any, ndim: int, name: str) -> tuple[int, ...]:
    """A positive whole number for each axis, from one number for all or a sequence of `ndim`.

    >>> axis_values(2, 3, "stride"), axis_values([1, 2], 2, "stride")
    ((2, 2, 2), (1, 2))
    """
    values = [value] * ndim if is_whole_number(value) else value
    if not isinstance(values, (tuple, list)) or not all(map(is_whole_number, values)):
        raise GraphTypeError(explain_error(f"{name} must be a whole number or {ndim} of them, known when the graph is built",
                                           repr(value)))
    if len(values) != ndim:
        raise ArgumentError(explain_error(f"{name} must have {ndim} elements, one for each spatial axis",
                                          f"{value!r} with {len(values)}"))
    if min(values) < 1:
        raise ArgumentError(explain_error(f"{name} must be 1 or more", repr(value)))
    return tuple(int(each) for each in values)


def rule_padding(rule: str, size: int | None, kernel: int | None, stride: int, dilation: int) -> tuple[int, int] | None:
    """What a rule comes to for an image of `size` and a kernel, or None while a size that it needs is not known.

    `half`, `full` and `causal` need the kernel; `same` needs the kernel, and the image too where the stride is not 1.

    >>> rule_padding("same", 8, 3, 2, 1), rule_padding("same_lower", 8, 3, 2, 1), rule_padding("half", None, 4, 2, 1)
    ((0, 1), (1, 0), (2, 2))
    """
    if kernel is None:
        return None
    dilated = (kernel - 1) * dilation + 1
    if rule == "full":
        return dilated - 1, dilated - 1
    if rule == "half":
        return dilated // 2, dilated // 2
    if rule == "causal":
        return dilated - 1, 0
    if stride == 1:
        total = dilated - 1
    elif size is None:
        return None
    else:
        total = max(0, (-(-size // stride) - 1) * stride + dilated - size)
    small = total // 2
    return (small, total - small) if rule == "same" else (total - small, small)
