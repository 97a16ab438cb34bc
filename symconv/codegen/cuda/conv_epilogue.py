"""The epilogue of a convolution as CUDA text: parameters of the kernel, statements over `value`, and what is stored."""
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ... import dtypes
from ...ops.convolution import Conv
from ...ops.epilogue import FULL
from ..kernel import Problem
from ..scalar_printer import load, storage_type, stored
from .printing import print_cuda_program


@dataclass(frozen=True, slots=True)
class EpilogueOperand:
    """A parameter of the kernel: the C type and name, whether it has the result's shape (else one element a channel), its bytes."""

    type: str
    name: str
    is_full: bool
    itemsize: int


@dataclass(frozen=True, slots=True)
class CudaEpilogue:
    """Operands, statements and the expression of the element stored."""

    operands: tuple[EpilogueOperand, ...]
    lines: tuple[str, ...]
    value: str

    @property
    def uses_channel(self) -> bool:
        """Whether an operand has one element for each channel."""
        return any(not operand.is_full for operand in self.operands)


def cuda_epilogue(problem: Problem, full: str = "{}[place]") -> CudaEpilogue:
    """The epilogue of a problem over `value`, the rounded sum; `full` reads an operand of the result's shape, by its name.

    Operands of channels are read at `channel`.
    """
    epilogue, dtype = cast(Conv, problem.op).epilogue, problem.inputs[0].dtype
    if epilogue is None:
        return CudaEpilogue((), (), stored(dtype, "value"))
    operands, names = [], ["value"]
    for number, (place, each) in enumerate(zip(epilogue.operands, epilogue.program.inputs[1:], strict=True)):
        operand = EpilogueOperand(storage_type(each), f"operand_{number}", place == FULL, dtypes.itemsize(each))
        operands.append(operand)
        names.append(load(each, full.format(operand.name) if operand.is_full else f"{operand.name}[channel]"))
    printed = print_cuda_program(epilogue.program, names)
    return CudaEpilogue(tuple(operands), printed.lines, stored(epilogue.dtype, printed.outputs[0]))
