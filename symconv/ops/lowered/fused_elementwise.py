"""Several elementwise operations as one node. Made by rewrites, after gradients are taken."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import GraphTypeError, InternalError, explain_error
from ...graph import Apply, Op, TensorType, Variable
from ...graph.node import Array
from ..array_module import array_module
from ..broadcasting import broadcast_types
from ..scalar import ScalarProgram


@dataclass(frozen=True, slots=True)
class FusedElementwise(Op):
    """`program` on every element of the inputs, broadcast as NumPy; every output has the full broadcast shape."""

    program: ScalarProgram

    @property
    def name(self) -> str:
        """The operations of the program, joined (`mul_add_relu`)."""
        return "_".join(step.op for step in self.program.body if step.op != "constant") or "identity"

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """One type for each output; ShapeError where sizes clash, GraphTypeError where dtypes are not the program's."""
        dtypes = tuple(type.dtype for type in types)
        if dtypes != self.program.inputs:
            raise GraphTypeError(explain_error("a fused kernel gets other dtypes than it was made for",
                                               f"{dtypes}, not {self.program.inputs}"))
        shape = broadcast_types(self.name, types)
        return tuple(TensorType(dtype, shape) for dtype in self.program.output_dtypes)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """An InternalError: fusing comes after gradients."""
        raise InternalError(f"the gradient of the fused {self.name} was asked for; fusing comes after gradients")

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """The program step by step with NumPy."""
        shape = np.broadcast_shapes(*(array.shape for array in inputs))
        package = array_module(*inputs)
        values = map(package.asarray, self.program.evaluate(*inputs))
        return tuple(package.array(package.broadcast_to(value, shape)) for value in values)

    def __str__(self) -> str:
        return f"fused{{{self.program}}}"
