"""Reduction kernels for CUDA: sum, prod, max, min, any, all of a scalar program, over any axes of inputs with any strides.

By what the innermost loop is: a kept axis ("columns": neighbouring threads make neighbouring results), a short reduced axis
("warps": one for each result), a long one ("blocks").  Where there are few results the reduced elements are split into parts, whose
results a second launch puts together.  How many parts there are, and the order in which everything is put together, depend on
the sizes only: the same bits every time.  Floats are accumulated in float32 (float64 in float64), as many short sums.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from ...graph import Op
from ...ops.lowered.reduce_many import ReduceMany
from ...ops.reductions import Reduce
from ...ops.scalar import ScalarProgram
from ...target import Target
from ..access import Accesses
from ..elementwise import label
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..reductions import Accumulation, accumulation_of, finished, reduction_nest, reduction_of, summarize
from ..scalar_printer import compute_type, literal, load, storage_type
from .kernel import WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .looping import index_type
from .printing import print_cuda_program, render_cuda

THREADS = 256
ACROSS = 32  # results beside each other of one block of "columns"
WARP_ELEMENTS = 1024  # reduced elements up to which a warp makes a result
BLOCKS_WANTED = 512  # a few for each multiprocessor of a large GPU
LEAST_ELEMENTS = 16  # of one thread, in a part
MOST_ELEMENTS = 1024  # of one thread, so that float sums stay short
MOST_PARTS = 1024
_PARTIAL_BYTES = 8
_LAUNCH_SECONDS = 3e-6


class CudaReduction(CudaImplementation):
    """Trees of sums over any strides, with the prologue of a fused reduction inside."""

    name = "reduce_cuda"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """All inputs may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic at the target's copy rate, and two launches."""
        nbytes = sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs))
        return 2 * _LAUNCH_SECONDS + target.copy_seconds(nbytes)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch, or two where the reduced elements are split; none without results."""
        op, ops, program = reduction_of(problem)
        if problem.outputs[0].size == 0:
            return LaunchPlan(())
        accumulations = [cuda_accumulation(each, dtype) for each, dtype in zip(ops, program.output_dtypes, strict=True)]
        return _Reduction(program, accumulations, problem, op.axes).plan()


def cuda_accumulation(op: Reduce, value: str) -> Accumulation:
    """How the op's values are accumulated: as on the CPU, but floats narrower than float64 in float32."""
    found = accumulation_of(op, value)
    if found.dtype == "float64" and op.kind in ("sum", "prod") and op.dtype != "float64":
        return Accumulation(op.kind, "float32", literal(0 if op.kind == "sum" else 1, "float32"))
    return found


class _Reduction:
    """One reduction in the making."""

    def __init__(self, program: ScalarProgram, accumulations: Sequence[Accumulation], problem: Problem,
                 axes: Sequence[int]) -> None:
        self.program, self.accumulations, self.problem = program, accumulations, problem
        self.nest = nest = reduction_nest(problem.inputs, axes)
        self.index = index_type(nest, nest.total // 2 + (1 << 16))  # the end of the last part may lie beyond the elements
        self.kept = [axis for axis in range(nest.rank) if nest.strides[0][axis] != 0]
        self.reduced = [axis for axis in range(nest.rank) if nest.strides[0][axis] == 0]
        self.n_out = problem.outputs[0].size
        self.n_reduced = math.prod(nest.sizes[axis] for axis in self.reduced)
        is_column = bool(self.kept) and self.kept[-1] == nest.rank - 1 and self.n_out > 1
        self.structure = "columns" if is_column else "warps" if self.n_reduced <= WARP_ELEMENTS else "blocks"
        arrays = ["out0", *(f"in{number}" for number in range(len(problem.inputs)))]
        self.accesses = Accesses(nest, arrays, [problem.outputs[0].dtype, *program.inputs], 1, inner=[nest.rank - 1])
        self.parts, self.part_size = self._split()

    @property
    def _results_of_block(self) -> int:
        return {"columns": ACROSS, "warps": THREADS // 32, "blocks": 1}[self.structure]

    @property
    def _step(self) -> int:
        """Threads that share the reduced elements of a result."""
        return {"columns": THREADS // ACROSS, "warps": 32, "blocks": THREADS}[self.structure]

    def _split(self) -> tuple[int, int]:
        """Parts, and reduced elements of each; what a warp does alone is never worth a second launch."""
        if self.structure == "warps":
            return 1, max(1, self.n_reduced)
        blocks = -(-self.n_out // self._results_of_block)
        wanted = min(-(-BLOCKS_WANTED // blocks), self.n_reduced // (self._step * LEAST_ELEMENTS))
        parts = min(max(1, wanted, self.n_reduced // (self._step * MOST_ELEMENTS)), MOST_PARTS)
        size = max(1, -(-self.n_reduced // parts))
        return max(1, -(-self.n_reduced // size)), size

    def plan(self) -> LaunchPlan:
        """The launches."""
        launches = [self._main()] if self.parts == 1 else [self._main(), self._joining()]
        operands = (*self.problem.inputs, *self.problem.outputs)
        partial_bytes = self.parts * self.n_out * _PARTIAL_BYTES * len(self.accumulations)
        return LaunchPlan(tuple(launches), partial_bytes if self.parts > 1 else 0,
                          flops=self.nest.total * (len(self.accumulations) + len(self.program.body)),
                          bytes=sum(operand.nbytes for operand in operands))

    def _name(self, ending: str) -> str:
        kinds, dtype = "_".join(each.kind for each in self.accumulations), self.program.output_dtypes[0]
        prologue = f"_of_{label(self.program)}" if self.program.body else ""
        return f"sc_{kinds}{prologue}_{SUFFIXES[dtype]}_{ending}{'_long' if self.index == 'int64_t' else ''}"

    def _main(self) -> CudaKernel:
        is_split = self.parts > 1
        name = self._name(f"{self.nest.rank}d_{self.structure}{'_split' if is_split else ''}")
        before, body, values = self._statements()
        outputs = [] if is_split else [f"sc_global<{storage_type(operand.dtype)}> out{number}"
                                       for number, operand in enumerate(self.problem.outputs)]
        inputs = [f"sc_global<const {storage_type(dtype)}> SC_RESTRICT in{number}"
                  for number, dtype in enumerate(self.program.inputs)]
        numbers = [*self.accesses.names, "n_out", "n_reduced", "part_size", "parts"]
        source = render_cuda(
            "reduction.cu.j2", name=name, summary=self._summary(), before=before, body=body, results=self._results(values),
            structure=self.structure, step=self._step, across=ACROSS, down=THREADS // ACROSS, is_split=is_split, at=self._at(),
            kept_axes=self._levels(self.kept), reduced_axes=self._levels(self.reduced), partial_bytes=_PARTIAL_BYTES,
            parameters=[*outputs, *inputs, *(["sc_global<uint8_t> workspace"] if is_split else []),
                        *(f"{self.index} {number}" for number in numbers)], **self._common())
        first = len(self.problem.outputs)
        read = range(first, first + len(self.problem.inputs))
        return CudaKernel(name, source, (-(-self.n_out // self._results_of_block), self.parts, 1), (THREADS, 1, 1),
                          (*read, WORKSPACE) if is_split else (*range(first), *read),
                          self._scalars(*self.accesses.values, self.n_out, self.n_reduced, self.part_size, self.parts))

    def _joining(self) -> CudaKernel:
        name = self._name(f"{len(self.kept)}d_parts")
        strides = [name for name in self.accesses.names if name.startswith("out0_")]
        numbers = dict(zip(self.accesses.names, self.accesses.values, strict=True))
        sizes = [self.accesses.sizes[axis] for axis in self.kept]
        names = [*sizes, *strides]
        outputs = [f"sc_global<{storage_type(operand.dtype)}> out{number}" for number, operand in enumerate(self.problem.outputs)]
        source = render_cuda(
            "reduction_parts.cu.j2", name=name, summary=self._summary(), results=self._results([""] * len(outputs)), at=self._at(),
            kept_axes=self._levels(self.kept), partial_bytes=_PARTIAL_BYTES, parameters=[
                *outputs, "sc_global<const uint8_t> workspace", *(f"{self.index} {each}" for each in (*names, "n_out", "parts"))],
            **self._common())
        return CudaKernel(name, source, (-(-self.n_out // (THREADS // 32)), 1, 1), (THREADS, 1, 1),
                          (*range(len(outputs)), WORKSPACE),
                          self._scalars(*(numbers[each] for each in names), self.n_out, self.parts))

    def _scalars(self, *values: int) -> tuple[Scalar, ...]:
        return tuple(Scalar(self.index[:-2], value) for value in values)

    def _common(self) -> dict[str, object]:
        return {"index": self.index, "unsigned": f"u{self.index}", "threads": THREADS}

    def _levels(self, axes: Sequence[int]) -> list[dict[str, str]]:
        """Loops, innermost first, as their flat number is taken apart."""
        return [{"index": f"i{axis}", "size": self.accesses.sizes[axis]} for axis in reversed(axes)]

    def _at(self) -> str:
        return self.accesses.offset(0, {axis: f"i{axis}" for axis in self.kept})

    def _results(self, values: Sequence[str]) -> list[dict[str, str]]:
        rows = zip(self.accumulations, values, self.program.output_dtypes, self.problem.outputs, strict=True)
        return [{"number": str(number), "accumulator": compute_type(each.dtype), "identity": each.identity,
                 "combined": each.combine(f"so_far{number}", value, dtype) if value else "",
                 "joined": each.combine(f"so_far{number}", "value", each.dtype),
                 "finished": finished(f"so_far{number}", each.dtype, output.dtype)}
                for number, (each, value, dtype, output) in enumerate(rows)]

    def _statements(self) -> tuple[list[str], list[str], Sequence[str]]:
        """Lines before the loop (where each input's elements begin), lines of its body, and the values to be reduced."""
        before, body = [], []
        for number, dtype in enumerate(self.program.inputs):
            array, pointer = number + 1, f"sc_global<const {storage_type(dtype)}>"
            before.append(f"const {pointer} at{number} = {self.accesses.place(array, {axis: f'i{axis}' for axis in self.kept})};")
            place = f"at{number}[{self.accesses.offset(array, {axis: f'i{axis}' for axis in self.reduced})}]"
            body.append(f"const {compute_type(dtype)} x{number} = {load(dtype, place)};")
        printed = print_cuda_program(self.program, [f"x{number}" for number in range(len(self.program.inputs))])
        return before, [*body, *printed.lines], printed.outputs

    def _summary(self) -> str:
        return summarize(self.program, self.accumulations, self.nest)


_GENERATED = (CudaReduction(),)
IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {Reduce: _GENERATED, ReduceMany: _GENERATED}
