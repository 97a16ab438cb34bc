"""Kernels of argmax and argmin along one axis: the first position, NaN before all else.

The loops over the kept axes stay outside but for one, whose elements are searched side by side.
"""
from __future__ import annotations

from .. import dtypes
from ..errors import InternalError
from ..ops.reductions import ArgReduce
from ..target import Target
from .access import Accesses
from .elementwise import PARALLEL_ELEMENTS
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Problem, contiguous_strides
from .loops import LoopNest, collapse
from .scalar_printer import compute_type
from .templates import render_kernel

WIDTH = 64


class GeneratedArgReduction(Implementation):
    """Loops in C over any strides."""

    name = "arg_reduce_c"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """The input may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """One element in a nanosecond for each thread."""
        return problem.inputs[0].size * 1e-9 / max(1, target.threads)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel for the op's axis."""
        op, (x,), (out,) = problem.op, problem.inputs, problem.outputs
        if not isinstance(op, ArgReduce):
            raise InternalError(f"{op} is no search for a position")
        kept = [axis for axis in range(len(x.shape)) if axis != op.axis]
        nest = collapse([x.shape[axis] for axis in kept],
                        [contiguous_strides(out.shape), tuple(x.strides[axis] for axis in kept)])
        # the searched axis comes last in the list of loops, but runs outside the columns
        loops = LoopNest((*nest.sizes, x.shape[op.axis]), ((*nest.strides[0], 0), (*nest.strides[1], x.strides[op.axis])))
        accesses = Accesses(loops, ["out0", "in0"], ["int64", x.dtype], 1, inner=[-2])
        column, axis = loops.rank - 2, loops.rank - 1
        outer = {number: f"i{number}" for number in range(column)}
        name = f"sc_{op.kind}_{SUFFIXES[x.dtype]}_{loops.rank}d"
        source = render_kernel(
            "arg_reduction.c.j2", name=name, summary=f"{op.kind} along one axis of {x.dtype}, {nest.rank} other loops",
            declarations=accesses.declarations(), sizes=accesses.names, type=compute_type(x.dtype), width=WIDTH,
            kept=[{"index": index, "size": accesses.sizes[number]} for number, index in outer.items()],
            columns=accesses.sizes[column], axis=accesses.sizes[axis], row=accesses.row(1, {**outer, axis: "i"}),
            reading=accesses.reading(1, "start + c", column), better=_better(op.kind, x.dtype),
            at=accesses.offset(0, {**outer, column: "start + c"}), total=" * ".join(accesses.sizes),
            threshold=PARALLEL_ELEMENTS // 4)
        return Kernel(name, source, tuple(accesses.values), flops=x.size, bytes=x.nbytes + out.nbytes)


def _better(kind: str, dtype: str) -> str:
    sign = ">" if kind == "argmax" else "<"
    if not dtypes.is_float(dtype):
        return f"x0 {sign} so_far"
    return f"(x0 {sign} so_far) | ((x0 != x0) & (so_far == so_far))"
