"""Building scalar programs from elementwise nodes, without knowing beforehand how many inputs there will be."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from ..graph import Apply, Constant, Variable
from ..ops.elementwise import Elementwise
from ..ops.scalar import Instruction, ScalarProgram

Place = int
"""A value of a program under construction: -1 - i is input i, j ≥ 0 is the result of instruction j."""


class ProgramBuilder:
    """A scalar program that grows; equal instructions are made once."""

    def __init__(self) -> None:
        self.inputs: list[str] = []
        self._body: dict[Instruction, Place] = {}

    def input(self, dtype: str) -> Place:
        """One more input."""
        self.inputs.append(dtype)
        return -len(self.inputs)

    def instruction(self, op: str, args: Iterable[Place], dtype: str, value: float | int | bool | None = None) -> Place:
        """The result of an instruction."""
        made = Instruction(op, tuple(args), dtype, value)
        return self._body.setdefault(made, len(self._body))

    def inline(self, program: ScalarProgram, args: Iterable[Place]) -> tuple[Place, ...]:
        """The outputs of another program on values of this one."""
        places = list(args)
        for step in program.body:
            places.append(self.instruction(step.op, (places[arg] for arg in step.args), step.dtype, step.value))
        return tuple(places[number] for number in program.outputs)

    def finish(self, outputs: Iterable[Place]) -> ScalarProgram:
        """The program, its values numbered from the inputs on."""
        count = len(self.inputs)

        def number(place: Place) -> int:
            return -1 - place if place < 0 else count + place

        body = tuple(Instruction(step.op, tuple(map(number, step.args)), step.dtype, step.value) for step in self._body)
        return ScalarProgram(tuple(self.inputs), body, tuple(map(number, outputs)))


def scalar_constant(variable: Variable) -> float | int | bool | None:
    """The number of a constant with one element that a program can hold (a NaN is no number here), else None."""
    if not isinstance(variable, Constant) or variable.data.size != 1:
        return None
    value: float | int | bool = variable.data.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def add_nodes(builder: ProgramBuilder, nodes: Iterable[Apply], places: Mapping[Variable, Place],
              operand: Callable[[Variable], Place]) -> dict[Variable, Place]:
    """Add elementwise nodes (inputs before readers); what they read is in `places`, a constant, or asked of `operand`.

    Gives the places of all values, those of `places` included.
    """
    known = dict(places)
    for node in nodes:
        for each in node.inputs:
            if each not in known:
                known[each] = operand(each)
        assert isinstance(node.op, Elementwise)
        (result,) = node.outputs
        known[result] = builder.instruction(node.op.scalar, (known[each] for each in node.inputs), result.dtype)
    return known
