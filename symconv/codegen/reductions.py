"""Reduction kernels: sum, prod, max, min, any, all of what a scalar program gives, over any axes of inputs with any strides.

Three loop structures, by what the innermost loop is: a kept axis ("columns": a row of accumulators), a long reduced axis
("lanes": as many accumulators as fill vector registers; what is computed first, beyond plain arithmetic, goes through a small
buffer, because compilers do not vectorise choices and lanes in one loop), a short reduced axis ("short": one accumulator).
Float sums and products are accumulated in double.  A reduction to few results is split into parts; how many depends on the
sizes only, and parts are combined in order, so that the result does not depend on the number of threads.  Several reductions
of the same elements (`ReduceMany`) go through the same loops together, each with accumulators of its own.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import dtypes
from ..errors import InternalError
from ..graph import Op
from ..ops.lowered.reduce_many import ReduceMany
from ..ops.reductions import ArgReduce, Reduce
from ..ops.scalar import ScalarProgram
from ..target import Target
from .access import Accesses
from .arg_reductions import GeneratedArgReduction
from .elementwise import PARALLEL_ELEMENTS, label
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem
from .loops import LoopNest, broadcast_strides, collapse
from .row_prefetch import later_row
from .scalar_printer import cast_expression, compute_type, literal, print_program, program_cost, storage_type, stored
from .templates import render_kernel

WIDTH = 512  # columns that one task keeps accumulators for
LANES = (32, 16, 16, 8)  # accumulators of each result, for one, two, … results: together they should fit the registers
BLOCK = 256  # elements that are computed together before they are accumulated
SHORT = 16  # reduced elements below which one accumulator is quickest
FEW_LANES = 8  # the least number of accumulators for each result
PART_ELEMENTS = 32768
MOST_TASKS = 64
_STRAIGHT = frozenset({"constant", "cast", "add", "sub", "mul", "neg", "square", "abs"})  # vectorised together with lanes
_PARTIAL_BYTES = 8  # of the widest accumulator, so that partial results of any dtype are aligned


class GeneratedReduction(Implementation):
    """Loops in C over any strides, with the prologue of a fused reduction inside."""

    name = "reduce_c"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """All inputs may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic."""
        nbytes = sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs))
        return target.copy_seconds(nbytes, working_set=nbytes)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel for the op's kinds, axes and program."""
        op, parts, program = reduction_of(problem)
        accumulations = [accumulation_of(part, dtype) for part, dtype in zip(parts, program.output_dtypes, strict=True)]
        return _Reduction(program, reduction_nest(problem.inputs, op.axes), accumulations, problem).kernel()


def reduction_of(problem: Problem) -> tuple[Reduce | ReduceMany, tuple[Reduce, ...], ScalarProgram]:
    """The op of the problem, the reductions that it is made of, and the program of the values that each reduces."""
    op = problem.op
    if isinstance(op, ReduceMany):
        return op, op.parts, op.program
    if isinstance(op, Reduce):
        return op, (op,), op.prologue or ScalarProgram((problem.inputs[0].dtype,), (), (0,))
    raise InternalError(f"{op} is no reduction")


@dataclass(frozen=True, slots=True)
class Accumulation:
    """How values are put together: dtype of the accumulator, its first value in C, and the kind."""

    kind: str
    dtype: str
    identity: str

    def combine(self, so_far: str, value: str, dtype: str) -> str:
        """C expression of what is accumulated so far with one more value of a dtype."""
        c_type, suffix = compute_type(self.dtype), SUFFIXES[self.dtype]
        value = f"({value} != 0)" if self.dtype == "bool" and dtype != "bool" else cast_expression(value, dtype, self.dtype)
        if self.kind in ("sum", "prod"):
            text = f"{so_far} {'+' if self.kind == 'sum' else '*'} {value}"
            return text if dtypes.is_float(self.dtype) else f"({c_type})({text})"
        if self.dtype == "bool":
            return f"{so_far} {'|' if self.kind in ('any', 'max') else '&'} {value}"
        return f"sc_{'maximum' if self.kind == 'max' else 'minimum'}_{suffix}({value}, {so_far})"


def accumulation_of(op: Reduce, value: str) -> Accumulation:
    """Where and how the op's values, of dtype `value`, are accumulated."""
    if op.kind in ("sum", "prod"):
        dtype = "float64" if dtypes.is_float(op.dtype) else op.dtype
        return Accumulation(op.kind, dtype, literal(0 if op.kind == "sum" else 1, dtype))
    if op.kind in ("any", "all"):
        return Accumulation(op.kind, "bool", "0" if op.kind == "any" else "1")
    dtype = "float32" if value in ("float16", "bfloat16") else value
    return Accumulation(op.kind, dtype, _extreme(dtype, lowest=op.kind == "max"))


def _extreme(dtype: str, lowest: bool) -> str:
    if dtype == "bool":
        return "0" if lowest else "1"
    if dtypes.is_float(dtype):
        return "-INFINITY" if lowest else "INFINITY"
    limits = np.iinfo(dtype)
    return literal(int(limits.min if lowest else limits.max), dtype)


def reduction_nest(inputs: Sequence[Operand], axes: Sequence[int]) -> LoopNest:
    """The loops over the inputs, the closest elements innermost; operand 0 is the output, of stride 0 in reduced loops."""
    shape = np.broadcast_shapes(*(operand.shape for operand in inputs))
    strides = [broadcast_strides(operand, shape) for operand in inputs]
    output, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        if axis not in axes:
            output[axis] = step
            step *= max(shape[axis], 1)
    main = max(range(len(inputs)), key=lambda number: inputs[number].size)
    used = [axis for axis in range(len(shape)) if shape[axis] != 1]
    order = sorted(used, key=lambda axis: -abs(strides[main][axis]) if strides[main][axis] else -math.inf)
    nest = LoopNest(shape, (tuple(output), *strides)).reordered(order)
    if not used:
        return LoopNest((1,), ((0,), *((1,) for _ in inputs)))
    return collapse(nest.sizes, nest.strides)


class _Reduction:
    """One reduction kernel in the making."""

    def __init__(self, program: ScalarProgram, nest: LoopNest, accumulations: Sequence[Accumulation],
                 problem: Problem) -> None:
        self.program, self.nest, self.accumulations, self.problem = program, nest, accumulations, problem
        self.lanes = _lanes(LANES[min(len(accumulations), len(LANES)) - 1], nest.sizes[-1])
        self.inner = nest.rank - 1
        self.is_column = nest.strides[0][-1] != 0
        self.reduced = [axis for axis in range(nest.rank) if nest.strides[0][axis] == 0]
        self.kept = [axis for axis in range(self.inner) if nest.strides[0][axis] != 0]
        self.split = max(self.reduced, key=lambda axis: nest.sizes[axis], default=None)
        self.n_reduced = math.prod(nest.sizes[axis] for axis in self.reduced)
        arrays = ["out0", *(f"in{number}" for number in range(len(problem.inputs)))]
        types = [problem.outputs[0].dtype, *program.inputs]
        self.accesses = Accesses(nest, arrays, types, 1, inner=[self.inner])

    def kernel(self) -> Kernel:
        """The kernel."""
        parts, part_size = self._parts()
        n_out = self.problem.outputs[0].size
        structure = self._structure()
        context = self._context(structure)
        for name, value in (("parts", parts), ("part_size", part_size), ("n_out", n_out)):
            self.accesses.number(name, value)
        kind, dtype = "_".join(each.kind for each in self.accumulations), self.program.output_dtypes[0]
        prologue = f"_of_{label(self.program)}" if self.program.body else ""
        name = f"sc_{kind}{prologue}_{SUFFIXES[dtype]}_{self.nest.rank}d_{structure}"
        source = render_kernel("reduction.c.j2", name=name, sizes=self.accesses.names, **context)
        operands = (*self.problem.inputs, *self.problem.outputs)
        return Kernel(name, source, tuple(self.accesses.values),
                      workspace_bytes=parts * n_out * _PARTIAL_BYTES * len(self.accumulations) if parts > 1 else 0,
                      flops=self.nest.total * (len(self.accumulations) + len(self.program.body)),
                      bytes=sum(operand.nbytes for operand in operands))

    def _structure(self) -> str:
        if self.is_column:
            return "columns"
        return "lanes" if self.n_reduced >= SHORT else "short"

    def _parts(self) -> tuple[int, int]:
        """Number of parts and how many turns of the split loop each takes."""
        if self.split is None:
            return 1, 1
        size = self.nest.sizes[self.split]
        tasks = math.prod(self.nest.sizes[axis] for axis in self.kept)
        if self.is_column:
            tasks *= -(-self.nest.sizes[-1] // WIDTH)
        parts = max(1, min(size, MOST_TASKS // max(1, tasks), self.nest.total // PART_ELEMENTS))
        part_size = max(1, -(-size // parts))
        if self.split == self.inner:
            part_size = -(-part_size // self.lanes) * self.lanes
        return max(1, -(-size // part_size)), part_size

    def _context(self, structure: str) -> dict[str, object]:
        loops = [axis for axis in self.reduced if axis != self.inner]
        indexes = {axis: f"i{axis}" for axis in range(self.nest.rank - 1)}
        is_buffered = structure == "lanes" and not all(step.op in _STRAIGHT for step in self.program.body)
        element = {"columns": "start + c", "lanes": "block + i" if is_buffered else "i + lane", "short": "i"}[structure]
        before, body, values = self._statements(indexes, element)
        inner_start, inner_end = self._range(self.inner)
        later = later_row(self.nest, self.accesses, self.reduced, self.kept, inner_start) if structure == "lanes" else None
        output = {axis: f"i{axis}" for axis in self.kept} | ({self.inner: "start + c"} if self.is_column else {})
        sizes = self.accesses.sizes
        return {"summary": self._summary(), "declarations": self._declarations(), "before": before, "body": body,
                "kept": [{"index": f"i{axis}", "size": sizes[axis]} for axis in self.kept],
                "reduced": [{"index": f"i{axis}", "start": start, "end": end}
                            for axis in loops for start, end in [self._range(axis)]],
                "split": sizes[self.split] if self.split is not None else "1",
                "inner": sizes[-1], "inner_start": inner_start, "inner_end": inner_end, "later": later,
                "column": self.is_column, "width": WIDTH,
                "lanes": self.lanes if structure == "lanes" else 0, "results": self._results(values, is_buffered),
                "is_buffered": is_buffered, "block": BLOCK,
                "partial_bytes": _PARTIAL_BYTES, "at": self.accesses.offset(0, output), "total": " * ".join(sizes),
                "threshold": max(1024, PARALLEL_ELEMENTS // max(1, 1 + program_cost(self.program)))}

    def _range(self, axis: int) -> tuple[str, str]:
        """First and last turn of a reduced loop: those of the part where the loop is split."""
        return ("part_start", "part_end") if axis == self.split else ("0", self.accesses.sizes[axis])

    def _declarations(self) -> list[str]:
        """The typed pointers, without their values; only the first output is one of the accesses, for all are alike."""
        first, *inputs = self.accesses.declarations()
        others = [f"{storage_type(operand.dtype)} *const out{number}"
                  for number, operand in enumerate(self.problem.outputs) if number]
        return [first, *others, *inputs]

    def _results(self, values: Sequence[str], is_buffered: bool) -> list[dict[str, str]]:
        """For each result how its values are accumulated, as C; `n` tells its variables from those of the others."""
        rows = zip(self.accumulations, values, self.program.output_dtypes, self.problem.outputs, strict=True)
        many = len(self.accumulations) > 1
        return [{"n": n, "number": str(number), "accumulator": compute_type(each.dtype), "identity": each.identity,
                 "value": value, "type": compute_type(dtype),
                 "combined": each.combine(f"so_far{n}", f"values{n}[i + lane]" if is_buffered else value, dtype),
                 "joined": each.combine(f"so_far{n}", "value", each.dtype),
                 "finished": finished(f"so_far{n}", each.dtype, output.dtype)}
                for number, (each, value, dtype, output) in enumerate(rows) for n in [str(number) if many else ""]]

    def _statements(self, indexes: dict[int, str], element: str) -> tuple[list[str], list[str], Sequence[str]]:
        """Lines before the innermost loop, lines of its body, and the C names of the values to be reduced."""
        before: list[str] = []
        body: list[str] = []
        for array in range(1, len(self.accesses.arrays)):
            before.append(self.accesses.row(array, indexes))
            (before if self.accesses.is_repeated(array) else body).append(self.accesses.reading(array, element))
        printed = print_program(self.program, [f"x{number}" for number in range(len(self.program.inputs))])
        return before, [*body, *printed.lines], printed.outputs

    def _summary(self) -> str:
        return summarize(self.program, self.accumulations, self.nest)


def _lanes(most: int, row: int) -> int:
    """How many accumulators leave few elements of a row over (one sixteenth), for these are added one after the other.

    >>> _lanes(32, 49), _lanes(32, 196), _lanes(16, 3136)
    (16, 32, 16)
    """
    lanes = most
    while lanes > FEW_LANES and row % lanes * 16 > row:
        lanes //= 2
    return lanes


def summarize(program: ScalarProgram, accumulations: Sequence[Accumulation], nest: LoopNest) -> str:
    """The problem in one line, without sizes."""
    loops = " ".join("kept" if stride else "reduced" for stride in nest.strides[0])
    text = str(program) if len(program.body) <= 12 else label(program)
    kinds = ", ".join(each.kind for each in accumulations)
    kept = ", ".join(dict.fromkeys(each.dtype for each in accumulations))
    return (f"{kinds} of {text}   [{', '.join(program.inputs[:12])}; loops, outermost first: {loops}; "
            f"accumulated in {kept}]")


def finished(so_far: str, source: str, dtype: str) -> str:
    """An accumulated value as an element of the result."""
    if dtype in ("float16", "bfloat16"):
        return stored(dtype, so_far if source == "float32" else f"(float){so_far}")
    return cast_expression(so_far, source, dtype)


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {Reduce: (GeneratedReduction(),),
                                                               ReduceMany: (GeneratedReduction(),),
                                                               ArgReduce: (GeneratedArgReduction(),)}
