"""Convolutions one behind the other that one kernel runs together, so that what is between them never lies in memory."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ...errors import InternalError
from ...graph import Op, TensorType
from ...graph.node import Array
from ..convolution import Conv
from ..spec import Kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConvChain(Op):
    """y = stage_n(… stage_1(x)): each stage an FPROP; inputs: x, then for each stage its filters and its epilogue's operands.

    Made by rewrites only, when gradients have been taken.
    """

    stages: tuple[Conv, ...]

    def __post_init__(self) -> None:
        if len(self.stages) < 2 or any(stage.kind is not Kind.FPROP for stage in self.stages):
            raise InternalError(f"a chain of convolutions of {self.stages}")

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        value = types[0]
        for stage, extra in self.parts(types):
            (value,) = stage.infer(value, *extra)
        return (value,)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        value = inputs[0]
        for stage, extra in self.parts(inputs):
            (value,) = stage.reference(value, *extra)
        return (value,)

    def parts(self, inputs: Sequence[T]) -> Iterator[tuple[Conv, tuple[T, ...]]]:
        """Each stage with the inputs that are its own."""
        start = 1
        for stage in self.stages:
            count = 1 + len(stage.epilogue.operands if stage.epilogue is not None else ())
            yield stage, tuple(inputs[start:start + count])
            start += count
        if start != len(inputs):
            raise InternalError(f"{self} with {len(inputs)} inputs")

    def __str__(self) -> str:
        return f"ConvChain{{{' → '.join(str(stage)[5:-1] for stage in self.stages)}}}"
