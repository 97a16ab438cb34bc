"""Positions of maxima and minima for CUDA: the first of equal ones, NaN before all.

One thread for each result where results lie beside each other, else a warp, or a block for long axes; which candidate wins depends
on values and positions only, so the result is the same for any of them.
"""
from __future__ import annotations

from typing import cast

from ... import dtypes
from ...graph import Op
from ...ops.reductions import ArgReduce
from ...target import Target
from ..access import Accesses
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..reductions import reduction_nest
from ..scalar_printer import compute_type, load, storage_type
from .kernel import CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .looping import index_type
from .printing import render_cuda

THREADS = 256
WARP_ELEMENTS = 1024  # elements up to which a warp makes a result
_LAUNCH_SECONDS = 3e-6


class CudaArgReduction(CudaImplementation):
    """Argmax and argmin along one axis of an input with any strides."""

    name = "arg_reduce_cuda"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """The input may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic at the target's copy rate, and a launch."""
        return _LAUNCH_SECONDS + target.copy_seconds(sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs)))

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; none without results."""
        if problem.outputs[0].size == 0:
            return LaunchPlan(())
        op, (x,) = cast(ArgReduce, problem.op), problem.inputs
        return LaunchPlan((_kernel(op, problem),), bytes=x.nbytes + problem.outputs[0].nbytes)


def _kernel(op: ArgReduce, problem: Problem) -> CudaKernel:
    (x,), (result,) = problem.inputs, problem.outputs
    nest = reduction_nest((x,), (op.axis,))
    kept = [axis for axis in range(nest.rank) if nest.strides[0][axis] != 0]
    reduced = [axis for axis in range(nest.rank) if axis not in kept and nest.sizes[axis] > 1]  # none: an axis of size 1
    n_reduced = nest.sizes[reduced[0]] if reduced else 1
    lanes = 1 if kept and kept[-1] == nest.rank - 1 else 32 if n_reduced <= WARP_ELEMENTS else THREADS
    index = index_type(nest, (1 << 16) + result.size * lanes)
    accesses = Accesses(nest, ["out0", "in0"], [result.dtype, x.dtype], 1, inner=[nest.rank - 1])
    name = f"sc_{op.kind}_{SUFFIXES[x.dtype]}_{nest.rank}d_{lanes}{'_long' if index == 'int64_t' else ''}"
    numbers = [*accesses.names, "n_out", "n_reduced"]
    place = f"row[{accesses.offset(1, dict.fromkeys(reduced, 'reduced'))}]"
    source = render_cuda(
        "arg_reduction.cu.j2", name=name, summary=f"{op.kind} of {x.dtype}", threads=THREADS, lanes=lanes, index=index,
        unsigned=f"u{index}", sign=">" if op.kind == "argmax" else "<", is_float=dtypes.is_float(x.dtype),
        type=compute_type(x.dtype), storage=storage_type(x.dtype), value=load(x.dtype, place),
        row=accesses.place(1, {axis: f"i{axis}" for axis in kept}), at=accesses.offset(0, {axis: f"i{axis}" for axis in kept}),
        kept_axes=[{"index": f"i{axis}", "size": accesses.sizes[axis]} for axis in reversed(kept)],
        parameters=["sc_global<int64_t> out0", f"sc_global<const {storage_type(x.dtype)}> SC_RESTRICT in0",
                    *(f"{index} {number}" for number in numbers)])
    scalars = tuple(Scalar(index[:-2], value) for value in (*accesses.values, result.size, n_reduced))
    return CudaKernel(name, source, (-(-result.size * lanes // THREADS), 1, 1), (THREADS, 1, 1), (0, 1), scalars)


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {ArgReduce: (CudaArgReduction(),)}
