"""Identities that change only the gradient."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InternalError
from ..graph import Apply, Op, TensorType, Variable, apply_op
from .elementwise import clip, mul

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class GradientControl(Op):
    """The input itself; its gradient is made zero ("zero"), clipped to low … high ("clip") or multiplied by low ("scale")."""

    kind: str
    low: float = 0.0
    high: float = 0.0

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """The input's type."""
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """By kind."""
        (gz,) = cotangents
        if gz is None:
            return (None,)
        if self.kind == "zero":
            from ..graph.operators import meaning

            return (meaning("zeros_like")(gz),)
        if self.kind == "clip":
            return (clip(gz, self.low, self.high),)
        if self.kind == "scale":
            return (mul(gz, self.low),)
        raise InternalError(f"no gradient control {self.kind!r}")

    def reference(self, x: Array) -> tuple[Array, ...]:
        """The input."""
        return (x,)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        """The input's own memory."""
        return 0, strides


def zero_grad(x: Variable) -> Variable:
    """`x` with a gradient of zeros."""
    return apply_op(GradientControl("zero"), x)


def grad_clip(x: Variable, low: float, high: float) -> Variable:
    """`x`; its gradient is clipped to `low` … `high`."""
    return apply_op(GradientControl("clip", float(low), float(high)), x)


def grad_scale(x: Variable, multiplier: float) -> Variable:
    """`x`; its gradient is multiplied."""
    return apply_op(GradientControl("scale", float(multiplier)), x)
