"""What cuDNN is asked to do to the result of a convolution: a chain of steps, read from an epilogue or from its text.

The vocabulary is small on purpose.  cuDNN takes many more pointwise graphs, but says only when asked which; a chain of these
steps is what networks have, and `support.py` knows when cuDNN takes it.  Other epilogues belong to generated kernels.

    +bias +scale         a vector along the channels, added or multiplied
    +residual +gate      a tensor of the result's shape, added or multiplied
    +relu +sigmoid +tanh +softplus
    +sigmoid+mul         v · sigmoid(v): cuDNN's swish
    +gt+where            relu's gradient: v where another tensor is positive, else 0

Floats: a chain runs in float32 (float64 for float64) and is rounded once, when the result is stored.  Without fusing, a 16-bit
result of the convolution is rounded before the chain too; so a fused chain differs from it by at most that rounding.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...ops.epilogue import CHANNEL, FULL, Epilogue
from ...ops.scalar import Instruction

_PAIRS = {"bias": CHANNEL, "scale": CHANNEL, "residual": FULL, "gate": FULL}
ACTIVATIONS = ("relu", "sigmoid", "tanh", "softplus", "swish")
RELU_GRADIENT = "relu_gradient"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain. `operand` is the position of its operand among the epilogue's, None where it has none."""

    name: str
    operand: int | None = None

    @property
    def place(self) -> str | None:
        """CHANNEL or FULL: where its operand varies; None without one."""
        return FULL if self.name == RELU_GRADIENT else _PAIRS.get(self.name)


@dataclass(frozen=True, slots=True)
class Fusion:
    """The chain behind a convolution; `dtypes` are those of the operands in order."""

    steps: tuple[Step, ...] = ()
    dtypes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The steps' names."""
        return tuple(step.name for step in self.steps)

    def places(self) -> tuple[str, ...]:
        """CHANNEL or FULL of every operand, in order."""
        found = {step.operand: step.place for step in self.steps if step.operand is not None}
        return tuple(found[number] or FULL for number in range(len(self.dtypes)))


def parse_fusion(text: str, dtype: str) -> Fusion | str:
    """The chain of an epilogue's text, all operands of `dtype`; a reason where cuDNN is not asked for it.

    >>> parse_fusion("+bias+residual+relu", "float32").names
    ('bias', 'residual', 'relu')
    """
    words = text.split("+")[1:]
    steps: list[Step] = []
    position = operands = 0
    while position < len(words):
        word, following = words[position], words[position + 1:position + 2]
        if word == "gt" and following == ["where"]:
            steps.append(Step(RELU_GRADIENT, operands))
        elif word == "sigmoid" and following == ["mul"]:
            steps.append(Step("swish"))
        elif word in _PAIRS:
            steps.append(Step(word, operands))
        elif word in ACTIVATIONS:
            steps.append(Step(word))
        else:
            return _outside(word)
        operands += steps[-1].operand is not None
        position += 2 if steps[-1].name in (RELU_GRADIENT, "swish") and word != "swish" else 1
    return Fusion(tuple(steps), (dtype,) * operands)


def fusion_of(epilogue: Epilogue | None) -> Fusion | str:
    """The chain that an epilogue is; a reason where it is none."""
    if epilogue is None:
        return Fusion()
    reader = _Reader(epilogue)
    for number, instruction in enumerate(epilogue.program.body, len(epilogue.program.inputs)):
        reason = reader.read(number, instruction)
        if reason is not None:
            return reason
    if reader.value != epilogue.program.outputs[0]:
        return "the epilogue's result is not the last step of a chain"
    return Fusion(tuple(reader.steps), epilogue.program.inputs[1:])


class _Reader:
    """Follows the value of a chain through an epilogue's program."""

    def __init__(self, epilogue: Epilogue) -> None:
        self.operands = epilogue.operands
        self.steps: list[Step] = []
        self.value = 0
        self._constants: dict[int, float] = {}
        self._masks: dict[int, int] = {}
        self._gate: int | None = None  # the value whose sigmoid was taken just before

    def read(self, number: int, instruction: Instruction) -> str | None:
        """Take one instruction; a reason where it is no step of a chain."""
        if instruction.op == "constant":
            self._constants[number] = float(instruction.value or 0)
            return None
        if instruction.op == "gt" and self._is_full(instruction.args[0]) and self._constants.get(instruction.args[1]) == 0:
            self._masks[number] = instruction.args[0] - 1
            return None
        step = self._step(instruction)
        if step is None:
            return _outside(str(instruction))
        self._gate = self.value if step.name == "sigmoid" else None
        self.steps.append(step)
        self.value = number
        return None

    def _step(self, instruction: Instruction) -> Step | None:
        op, args = instruction.op, instruction.args
        if op == "where":
            plain = len(args) == 3 and args[1] == self.value and self._constants.get(args[2]) == 0
            return Step(RELU_GRADIENT, self._masks[args[0]]) if plain and args[0] in self._masks else None
        if op == "mul" and set(args) == {self.value, self._gate}:
            self.steps.pop()
            return Step("swish")
        if op in ACTIVATIONS and args == (self.value,):
            return Step(op)
        if op in ("add", "mul") and self.value in args and len(set(args)) == 2:
            (other,) = set(args) - {self.value}
            names = {("add", CHANNEL): "bias", ("mul", CHANNEL): "scale", ("add", FULL): "residual", ("mul", FULL): "gate"}
            if 1 <= other <= len(self.operands):
                return Step(names[op, self.operands[other - 1]], other - 1)
        return None

    def _is_full(self, number: int) -> bool:
        return 1 <= number <= len(self.operands) and self.operands[number - 1] == FULL


def _outside(what: str) -> str:
    return f"cuDNN is not asked for the epilogue step {what}: generated kernels fuse it"
