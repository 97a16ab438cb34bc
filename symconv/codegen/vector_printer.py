"""Scalar programs over whole vectors of floats: one assignment for each instruction, for sums that are still in registers.

    const vec add_2 = sum + channel_0;
    const vec clip_5 = smaller_lanes(SPLAT(6.0f), larger_lanes(SPLAT(0.0f), add_2));

A loop over lanes means the same, but GCC makes nine instructions of a clip there, where the processor has two: C's choices are not
allowed to become its `max` and `min`, whose answer for a NaN depends on the order of their operands.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ops.scalar import Instruction, ScalarProgram
from .scalar_printer import PrintedProgram, is_number, literal

_INFIX = {"add": "+", "sub": "-", "mul": "*", "true_div": "/"}

Printer = Callable[[Sequence[str]], str]
_CHOICES: dict[str, Printer] = {
    "neg": lambda a: f"-{a[0]}",
    "square": lambda a: f"{a[0]} * {a[0]}",
    "relu": lambda a: f"positive_lanes({a[0]})",
    "maximum": lambda a: f"larger_lanes({a[1]}, {a[0]})",
    "minimum": lambda a: f"smaller_lanes({a[1]}, {a[0]})",
    "clip": lambda a: f"smaller_lanes({a[2]}, larger_lanes({a[1]}, {a[0]}))",
}


def print_in_vectors(program: ScalarProgram, inputs: Sequence[str], dtype: str) -> PrintedProgram | None:
    """The program over C expressions (names) of vectors; None where it has another dtype or an operation that vectors lack.

    The functions and the macro SPLAT that it uses are in lanes.c.j2.

    >>> body = (Instruction("constant", (), "float32", 0.0), Instruction("maximum", (0, 1), "float32"))
    >>> print_in_vectors(ScalarProgram(("float32",), body, (2,)), ["sum"], "float32").lines
    ('const vec maximum_2 = larger_lanes(SPLAT(0.0f), sum);',)
    """
    if any(each != dtype for each in program.dtypes):
        return None
    names, lines = list(inputs), list[str]()
    for step in program.body:
        if step.op == "constant":
            assert step.value is not None
            names.append(f"SPLAT({literal(step.value, dtype)})")
            continue
        text = _expression(step, [names[number] for number in step.args])
        if text is None:
            return None
        name = f"{step.op.rstrip('_')}_{len(names)}"
        lines.append(f"const vec {name} = {text};")
        names.append(name)
    return PrintedProgram(tuple(lines), tuple(names[number] for number in program.outputs))


def _expression(step: Instruction, arguments: Sequence[str]) -> str | None:
    if step.op in _INFIX:
        return f"{arguments[0]} {_INFIX[step.op]} {arguments[1]}"
    limits = arguments[1:]
    if step.op not in _CHOICES or not all(limit.startswith("SPLAT(") and is_number(limit[6:-1]) for limit in limits):
        return None  # against what may be a NaN itself, larger and smaller take two instructions more: not worth a second form
    return _CHOICES[step.op](arguments)
