"""Kernels of softmax, log-softmax and their gradients along one axis.

Up to three passes over a row (along the axis), which comes from memory once and then from the first cache: maximum, sum,
result.  Where the axis is not the innermost one, or short, rows are done together ("columns"): one vector lane for each.  NaN needs
no care in the maximum: it comes back through the sum.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import InternalError
from ..graph import Op
from ..ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from ..target import Target
from .access import Accesses
from .elementwise import PARALLEL_ELEMENTS, contiguous_pairs
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem
from .loops import LoopNest, collapse
from .scalar_printer import compute_type, stored
from .templates import render_kernel

WIDTH = 64
SHORT = 32  # elements of a row below which rows are done together wherever they lie: short rows do not fill vectors
_FEWEST = 16
_COST = 12  # additions that one element is worth


@dataclass(frozen=True, slots=True)
class Stage:
    """One pass over a row. `lines` are C; a pass that reduces has `target` (what holds the result), its C `type`, the OpenMP
    `operator`, `identity`, `combined` (`so_far` with one more value) and `joined` (a block's `so_far` into the target).
    `finish` follows the pass.
    """

    lines: tuple[str, ...]
    target: str = ""
    type: str = ""
    operator: str = ""
    identity: str = ""
    combined: str = ""
    joined: str = ""
    finish: str = ""


class GeneratedSoftmax(Implementation):
    """Loops in C over any strides."""

    name = "softmax_c"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """All inputs may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic, twice: a row is read again for its sum."""
        nbytes = sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs))
        return 2 * target.copy_seconds(nbytes, working_set=nbytes)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel for the op's axis."""
        op, (out,) = problem.op, problem.outputs
        if not isinstance(op, (Softmax, LogSoftmax, SoftmaxGrad, LogSoftmaxGrad)):
            raise InternalError(f"{op} is no softmax")
        operands = (out, *problem.inputs)
        nest = _row_loops(operands, op.axis)
        is_short = out.shape[op.axis] <= SHORT and nest.rank > 1 and nest.sizes[-2] >= _FEWEST
        is_column = math.prod(out.shape[op.axis + 1:]) != 1 or is_short
        axis, kept = nest.rank - 1, list(range(nest.rank - (2 if is_column else 1)))
        arrays = ["out0", *(f"in{number}" for number in range(len(problem.inputs)))]
        accesses = Accesses(nest, arrays, [operand.dtype for operand in operands], 1, inner=[-2 if is_column else -1])
        indexes = {number: f"i{number}" for number in kept} | ({axis: "i"} if is_column else {})
        structure = "columns" if is_column else "rows"
        name = f"sc_{_snake(op)}_{SUFFIXES[out.dtype]}_{nest.rank}d_{structure}"
        source = render_kernel(
            "softmax.c.j2", name=name, summary=f"{op.name} of {out.dtype}, {structure}",
            declarations=accesses.declarations(), sizes=accesses.names, type=compute_type(out.dtype), width=WIDTH,
            kept=[{"index": f"i{number}", "size": accesses.sizes[number]} for number in kept],
            columns=accesses.sizes[-2] if is_column else "", axis=accesses.sizes[axis],
            rows=[accesses.row(array, indexes) for array in range(len(operands))],
            stages=_stages(op, accesses, "start + c" if is_column else "i", axis - 1 if is_column else axis),
            total=" * ".join(accesses.sizes), threshold=PARALLEL_ELEMENTS // _COST)
        return Kernel(name, source, tuple(accesses.values), in_place=contiguous_pairs(problem.inputs, problem.outputs),
                      flops=out.size * _COST, bytes=sum(operand.nbytes for operand in operands))


def _snake(op: Op) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in type(op).__name__).lstrip("_")


def _row_loops(operands: Sequence[Operand], axis: int) -> LoopNest:
    """The kept loops, joined where possible, and last the loop along the axis."""
    kept = [number for number in range(len(operands[0].shape)) if number != axis]
    nest = collapse([operands[0].shape[number] for number in kept],
                    [tuple(operand.strides[number] for number in kept) for operand in operands])
    return LoopNest((*nest.sizes, operands[0].shape[axis]),
                    tuple((*steps, operand.strides[axis]) for steps, operand in zip(nest.strides, operands, strict=True)))


def _stages(op: Op, accesses: Accesses, element: str, axis: int) -> list[Stage]:
    """The passes of the op, over elements with the index `element` along the loop `axis`."""
    dtype = accesses.dtypes[0]
    c_type, suffix = compute_type(dtype), "f64" if dtype == "float64" else "f32"
    reads = tuple(accesses.reading(array, element, axis) for array in range(1, len(accesses.arrays)))
    place = f"out0_row[{element if accesses.steps[0][axis] == '1' else f'({element}) * {accesses.steps[0][axis]}'}]"

    def summing(value: str, *before: str, finish: str = "") -> Stage:
        return Stage((*reads, *before), "total[c]", "double", "+", "0", f"so_far + {value}", "total[c] += so_far;", finish)

    def writing(value: str) -> Stage:
        return Stage((*reads, f"{place} = {stored(dtype, value)};"))

    total, power = f"({c_type})total[c]", f"sc_exp_{suffix}(x0 - largest[c])"
    if isinstance(op, SoftmaxGrad):
        return [summing("x0 * x1"), writing(f"(x0 - {total}) * x1")]
    if isinstance(op, LogSoftmaxGrad):
        return [summing("x0"), writing(f"x0 - sc_exp_{suffix}(x1) * {total}")]
    finite = "largest[c] = fabs(largest[c]) < INFINITY ? largest[c] : 0;" if isinstance(op, LogSoftmax) else ""
    largest = Stage(reads, "largest[c]", c_type, "max", "-INFINITY", "x0 > so_far ? x0 : so_far",
                    "largest[c] = so_far > largest[c] ? so_far : largest[c];", finite)
    if isinstance(op, LogSoftmax):
        return [largest, summing(power, finish="total[c] = log(total[c]);"), writing(f"x0 - largest[c] - {total}")]
    if dtype in ("float16", "bfloat16"):  # the powers would lose precision if they were left in the output
        return [largest, summing(power), writing(f"{power} / {total}")]
    return [largest, summing("power", f"const {c_type} power = {power};", f"{place} = power;"),
            Stage((f"{place} = {place} / {total};",))]


_GENERATED = (GeneratedSoftmax(),)
IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {
    Softmax: _GENERATED, LogSoftmax: _GENERATED, SoftmaxGrad: _GENERATED, LogSoftmaxGrad: _GENERATED}
