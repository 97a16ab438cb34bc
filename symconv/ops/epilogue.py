"""What a convolution's kernel does to every element of its result before it is stored."""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import InternalError
from .scalar import Instruction, ScalarProgram

CHANNEL = "channel"
FULL = "full"


@dataclass(frozen=True, slots=True)
class Epilogue:
    """A scalar program over the result of a convolution and further operands.

    Value 0 of `program` is the convolution's own result, already rounded to the operands' dtype, so that fusing never
    changes an answer; value 1 + i is operand i.  `operands[i]` is "channel" (a vector along axis 1 of the result) or "full"
    (the result's shape).  The program has one output; its dtype is the dtype of the convolution's result.

    >>> bias = ScalarProgram(("float32", "float32"), (Instruction("add", (0, 1), "float32"),
    ...                                               Instruction("relu", (2,), "float32")), (3,))
    >>> str(Epilogue(bias, ("channel",)))
    '+bias+relu'
    """

    program: ScalarProgram
    operands: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.program.inputs) != 1 + len(self.operands) or len(self.program.outputs) != 1:
            raise InternalError(f"an epilogue with {len(self.operands)} operands for the program {self.program}")
        if not set(self.operands) <= {CHANNEL, FULL}:
            raise InternalError(f"epilogue operands must be 'channel' or 'full', not {self.operands}")

    @property
    def dtype(self) -> str:
        """The dtype of the result."""
        return self.program.output_dtypes[0]

    def __str__(self) -> str:
        words = [self._word(step) for step in self.program.body]
        return "".join(f"+{word}" for word in words if word)

    def _word(self, step: Instruction) -> str:
        """The field's name of an instruction: bias, scale, residual, gate, else the scalar operation's own."""
        if step.op == "constant":
            return ""
        places = {self.operands[arg - 1] for arg in step.args if 1 <= arg <= len(self.operands)}
        names = {("add", CHANNEL): "bias", ("mul", CHANNEL): "scale", ("add", FULL): "residual", ("mul", FULL): "gate"}
        for place in sorted(places):
            if (step.op, place) in names:
                return names[step.op, place]
        return f"cast:{step.dtype}" if step.op == "cast" else step.op
