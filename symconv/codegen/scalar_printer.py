"""Scalar programs as C: one assignment for each instruction, for the body of a loop.

    const float mul_2 = x0 * x1;
    const float add_3 = mul_2 + 0.5f;

Values have the dtype's C type; float16 and bfloat16 are computed in float and rounded where they are cast to and stored.
Every operation means what NumPy's does, also for NaN, infinities, overflow and division by zero; nothing is a signal.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .. import dtypes
from ..ops.scalar import Instruction, ScalarProgram
from .helpers import SUFFIXES

_HALVES = ("float16", "bfloat16")
_INFIX = {"add": "+", "sub": "-", "mul": "*", "true_div": "/", "and_": "&", "or_": "|", "xor": "^"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_HELPERS = frozenset(("floor_div", "mod", "maximum", "minimum", "logaddexp", "sign", "relu", "sigmoid", "softplus", "exp",
                      "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf"))
_LIBRARY = {"sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
            "sinh": "sinh", "cosh": "cosh", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "rint",
            "arctan2": "atan2"}
_SLOW = frozenset(("sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arctan2", "pow", "floor_div", "mod"))
_MEDIUM = _HELPERS - {"maximum", "minimum", "sign", "relu", "floor_div", "mod"}


@dataclass(frozen=True, slots=True)
class PrintedProgram:
    """C statements (without indentation) and the C expression of each output."""

    lines: tuple[str, ...]
    outputs: tuple[str, ...]


def compute_type(dtype: str) -> str:
    """The C type that a value of this dtype is computed in."""
    return "float" if dtype in _HALVES else dtypes.DTYPES[dtype].c_name


def storage_type(dtype: str) -> str:
    """The C type of an element in memory (float16 and bfloat16 as their bits)."""
    return "uint16_t" if dtype in _HALVES else dtypes.DTYPES[dtype].c_name


def load(dtype: str, place: str) -> str:
    """The C expression that reads an element."""
    return f"sc_load_{SUFFIXES[dtype]}({place})" if dtype in _HALVES else place


def stored(dtype: str, value: str) -> str:
    """The C expression of a value as it is put in memory."""
    return f"sc_store_{SUFFIXES[dtype]}({value})" if dtype in _HALVES else value


def literal(value: float | int | bool, dtype: str) -> str:
    """A number as a C constant of the dtype, exact to the last bit.

    >>> literal(0.1, "float32"), literal(-1, "int64"), literal(float("inf"), "float64"), literal(True, "bool")
    ('0.1f', '(-1)', 'INFINITY', '1')
    """
    if not dtypes.is_float(dtype):
        return _integer_literal(int(value), dtype)
    number = float(dtypes.numpy_dtype(dtype).type(value)) if dtype in _HALVES else float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    text = repr(number) + ("" if dtype == "float64" else "f")
    return f"({text})" if text.startswith("-") else text


def _integer_literal(number: int, dtype: str) -> str:
    bits = 8 * dtypes.itemsize(dtype)
    if dtype == "bool":
        return str(int(bool(number)))
    number &= (1 << bits) - 1
    if dtypes.kind(dtype) == "u":
        return f"{number}u" if bits < 64 else f"UINT64_C({number})"
    if number >= 1 << (bits - 1):
        number -= 1 << bits
    if number == -(1 << (bits - 1)) and bits >= 32:
        return f"INT{bits}_MIN"
    text = f"INT64_C({number})" if bits == 64 and abs(number) >= 1 << 31 else str(number)
    return f"({text})" if number < 0 else text


_LARGEST_LITERAL = 2
_PLAIN = frozenset(("add", "sub", "mul", "true_div"))


def run_time_constants(program: ScalarProgram) -> dict[int, float]:
    """The constants that a kernel takes as run-time numbers, by the number of their value.

    A learning rate, or one over the number of elements, is another number for another batch size and needs no other kernel.  Whole
    numbers and halves up to 2 stay in the source, where the compiler can make something of them; so does what is compared or
    chosen (the limits of a clip), for loops with choices between unknown numbers are not vectorised.

    >>> body = (Instruction("constant", (), "float32", 0.01), Instruction("mul", (0, 1), "float32"))
    >>> run_time_constants(ScalarProgram(("float32",), body, (2,)))
    {1: 0.01}
    """
    found, fixed = {}, _used_in_choices(program)
    for number, step in enumerate(program.body, len(program.inputs)):
        if number not in fixed and step.op == "constant" and step.dtype in ("float32", "float64") and step.value is not None:
            value = float(step.value)
            if math.isfinite(value) and not (abs(value) <= _LARGEST_LITERAL and (2 * value).is_integer()):
                found[number] = value
    return found


def _used_in_choices(program: ScalarProgram) -> set[int]:
    """The values that something else than plain arithmetic reads, or that are outputs."""
    return {number for step in program.body if step.op not in _PLAIN for number in step.args} | set(program.outputs)


def print_program(program: ScalarProgram, inputs: Sequence[str], prefix: str = "",
                  constants: Mapping[int, str] | None = None) -> PrintedProgram:
    """The program over C expressions (names) of its inputs; every name made starts with `prefix`.

    `constants` names those of its constants that are not to be written as literals, by the number of their value.
    """
    names, types, lines = list(inputs), program.dtypes, []
    for step in program.body:
        if step.op == "constant":
            assert step.value is not None
            names.append((constants or {}).get(len(names)) or literal(step.value, step.dtype))
            continue
        name = f"{prefix}{step.op.rstrip('_')}_{len(names)}"
        text = expression(step, [names[number] for number in step.args], [types[number] for number in step.args])
        lines.append(f"const {compute_type(step.dtype)} {name} = {text};")
        names.append(name)
    return PrintedProgram(tuple(lines), tuple(names[number] for number in program.outputs))


def expression(step: Instruction, arguments: Sequence[str], types: Sequence[str]) -> str:
    """One instruction as a C expression of its arguments' names or literals."""
    if step.op == "cast":
        return cast_expression(arguments[0], types[0], step.dtype)
    if step.op in _COMPARISONS:
        return f"{arguments[0]} {_COMPARISONS[step.op]} {arguments[1]}"
    if step.op == "where":
        return f"{arguments[0]} ? {arguments[1]} : {arguments[2]}"
    return _arithmetic(step.op, arguments, types[0])


def _arithmetic(op: str, arguments: Sequence[str], dtype: str) -> str:
    c_type, suffix = compute_type(dtype), "f32" if dtype in _HALVES else SUFFIXES[dtype]
    narrow = "" if dtypes.is_float(dtype) else f"({c_type})"  # C widens small integers; wrap them again
    f = "f" if c_type == "float" else ""
    if dtype == "bool" and op in ("maximum", "minimum", "invert"):
        return f"!{arguments[0]}" if op == "invert" else f"{arguments[0]} {'|' if op == 'maximum' else '&'} {arguments[1]}"
    if op in _INFIX:
        both = f"{arguments[0]} {_INFIX[op]} {arguments[1]}"
        return f"{narrow}({both})" if narrow else both
    if op in ("maximum", "minimum", "clip") and not narrow:
        return _limited(op, arguments, suffix)
    if op in _SPECIAL:
        return _SPECIAL[op](arguments, f, suffix, narrow)
    if op in _HELPERS:
        return f"sc_{op}_{suffix}({', '.join(arguments)})"
    return f"{_LIBRARY[op]}{f}({', '.join(arguments)})"


def _limited(op: str, arguments: Sequence[str], suffix: str) -> str:
    """The larger or smaller of floats; against a number that is no NaN one comparison does (NaN fails it and stays)."""
    if op == "clip":
        value, low, high = arguments
        if not is_number(high) or not is_number(low):
            return f"sc_minimum_{suffix}(sc_maximum_{suffix}({value}, {low}), {high})"
        return f"{value} <= {low} ? {_limited('minimum', [low, high], suffix)} : {_limited('minimum', [value, high], suffix)}"
    value, limit = arguments
    if not is_number(limit):
        return f"sc_{op}_{suffix}({value}, {limit})"
    return f"({value} {'<=' if op == 'maximum' else '>='} {limit} ? {limit} : {value})"


def is_number(text: str) -> bool:
    """Whether the C text of a float is a literal, and not NaN."""
    return text.lstrip("(-")[0].isdigit() or text.strip("(-)") == "INFINITY"


Printer = Callable[[Sequence[str], str, str, str], str]
_SPECIAL: dict[str, Printer] = {
    "pow": lambda a, f, suffix, narrow: f"sc_pow_{suffix}({a[0]}, {a[1]})" if narrow else f"pow{f}({a[0]}, {a[1]})",
    "masked_mul": lambda a, f, suffix, narrow: f"({a[0]} == 0) | ({a[1]} == 0) ? 0 : {a[0]} * {a[1]}",
    "neg": lambda a, f, suffix, narrow: f"{narrow}(-{a[0]})",
    "invert": lambda a, f, suffix, narrow: f"{narrow}(~{a[0]})",
    "abs": lambda a, f, suffix, narrow: f"sc_abs_{suffix}({a[0]})" if narrow else f"fabs{f}({a[0]})",
    "square": lambda a, f, suffix, narrow: f"{narrow}({a[0]} * {a[0]})",
    "rsqrt": lambda a, f, suffix, narrow: f"1 / sqrt{f}({a[0]})",
    "reciprocal": lambda a, f, suffix, narrow: f"1 / {a[0]}",
    "isnan": lambda a, f, suffix, narrow: f"{a[0]} != {a[0]}",
    "isinf": lambda a, f, suffix, narrow: f"fabs{f}({a[0]}) == INFINITY",
    "isfinite": lambda a, f, suffix, narrow: f"fabs{f}({a[0]}) < INFINITY",
    "clip": lambda a, f, suffix, narrow: f"sc_minimum_{suffix}(sc_maximum_{suffix}({a[0]}, {a[1]}), {a[2]})",
}


def cast_expression(value: str, source: str, target: str) -> str:
    """A value of dtype `source` as one of dtype `target`, as NumPy's `astype`."""
    if source == target:
        return value
    if target == "bool":
        return f"{value} != 0"
    if dtypes.is_float(source) and dtypes.is_integer(target):
        return f"sc_cast_{'f32' if source in _HALVES else SUFFIXES[source]}_{SUFFIXES[target]}({value})"
    if target in _HALVES:
        return f"sc_load_{SUFFIXES[target]}(sc_store_{SUFFIXES[target]}((float){value}))"
    return f"({compute_type(target)}){value}"


def instruction_cost(op: str, dtype: str) -> int:
    """Roughly how many additions one instruction is worth, to decide when threads pay."""
    if op in _SLOW and dtypes.is_float(dtype):
        return 25
    if op in _MEDIUM:
        return 25 if dtype == "float64" else 6
    return 0 if op == "constant" else 6 if op in _SLOW else 1


def program_cost(program: ScalarProgram) -> int:
    """Cost of the program for one element, in additions."""
    return sum(instruction_cost(step.op, step.dtype) for step in program.body)
