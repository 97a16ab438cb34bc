"""Several reductions of the same elements in one pass. Made by rewrites, after gradients are taken."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InternalError
from ...graph import Apply, Op, TensorType, Variable
from ...graph.node import Array
from ..broadcasting import broadcast_types
from ..reductions import Reduce
from ..scalar import ScalarProgram


@dataclass(frozen=True, slots=True)
class ReduceMany(Op):
    """Each output of `program`, computed from the inputs broadcast together, reduced by the part of the same number.

    All `parts` reduce the same axes, have no prologue of their own, and agree on `keepdims`.
    """

    parts: tuple[Reduce, ...]
    program: ScalarProgram

    @property
    def name(self) -> str:
        """The kinds of reductions, joined (`sum_sum`)."""
        return "_".join(part.kind for part in self.parts)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that all parts reduce."""
        return self.parts[0].axes

    @property
    def keepdims(self) -> bool:
        """Whether the reduced axes stay, with size 1."""
        return self.parts[0].keepdims

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """One type for each part."""
        shape = broadcast_types(self.name, types)
        values = (TensorType(dtype, shape) for dtype in self.program.output_dtypes)
        return tuple(part.infer(value)[0] for part, value in zip(self.parts, values, strict=True))

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """An InternalError: merging comes after gradients."""
        raise InternalError(f"the gradient of the merged reductions {self.name} was asked for; merging comes after gradients")

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """Part by part with NumPy."""
        shape = np.broadcast_shapes(*(array.shape for array in inputs))
        values = self.program.evaluate(*inputs)
        return tuple(part.reference(np.broadcast_to(value, shape))[0]
                     for part, value in zip(self.parts, values, strict=True))

    def __str__(self) -> str:
        options = f"axes={self.axes}{', keepdims' if self.keepdims else ''}"
        return f"{self.name}{{{options}, {self.program}}}"
