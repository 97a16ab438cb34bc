"""A claim about a shape: the same values, in a type that says more, checked when the function is called."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .constants import as_variable
from .shape_rules import shape_text


@dataclass(frozen=True, slots=True)
class SpecifyShape(Op):
    """x, whose sizes must be those of `known` (None: any). A view; a ShapeError where a size differs."""

    known: tuple[int | None, ...]

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        claimed = x.with_shape(self.known)
        if not claimed.accepts(x):
            raise ShapeError(explain_error(f"a tensor was said to have the shape {shape_text(self.known)}",
                                           f"it has the shape {shape_text(x.shape)}"))
        return (x.meet(claimed),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        return tuple(cotangents)

    def reference(self, x: Array) -> tuple[Array, ...]:
        self.infer(TensorType(x.dtype.name, x.shape))
        return (x,)

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        return 0, strides

    def __str__(self) -> str:
        return f"SpecifyShape{{{shape_text(self.known)}}}"


def specify_shape(x: Any, shape: Sequence[int | None]) -> Variable:
    """x with a static type that knows these sizes (None: not known); x itself where its type knows them all already.

    A size that contradicts the type is a ShapeError at once, one that contradicts the value when the function is called.

    >>> import numpy as np
    >>> specify_shape(np.zeros((2, 3)), (2, None)).type.shape
    (2, 3)
    """
    x = as_variable(x)
    result = apply_op(SpecifyShape(tuple(shape)), x)
    return x if result.type == x.type else result
