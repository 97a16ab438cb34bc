"""A value through which no gradient flows."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .constants import as_variable


@dataclass(frozen=True, slots=True)
class StopGradient(Op):
    """x itself, without a gradient. Means nothing once gradients are taken, so rewrites may put x in its place."""

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """The type of x."""
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """None."""
        return (None,)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """x."""
        return (x,)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        """The memory of x as it lies."""
        return 0, strides


def disconnected_grad(x: Any) -> Variable:
    """x, treated as a constant by gradients.

    Theano: `theano.gradient.disconnected_grad`.
    """
    return apply_op(StopGradient(), as_variable(x))
