"""Gathers and scatters by index arrays on CUDA. Every index is checked before the element is touched.

The first axis has the largest error code, so that of several errors the first is told.
"""
from __future__ import annotations

import math
from typing import cast

from ...graph import Op
from ...ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from ...target import Target
from ..boxes import word_type
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..indexing import index_errors, joined_loops, scatter_loops
from ..kernel import Problem, contiguous_strides
from ..loops import LoopNest
from ..scalar_printer import load, storage_type, stored
from .kernel import ERROR_FLAG, WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan
from .looping import THREADS, element_kernel, flat_rows, int64_scalars
from .printing import render_cuda

_PARTS = 1024  # ranges of the result that a scatter is shared out in: a few blocks for each multiprocessor


class GatherElements(CudaImplementation):
    """`Gather`: a thread for each element of the result."""

    name = "gather_elements"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """The index arrays."""
        return position > 0

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        n, (x, *indices), (z,) = cast(Gather, problem.op).n_index_axes, problem.inputs, problem.outputs
        nest = joined_loops(z.shape[:len(indices[0].shape)], indices)
        block, word = math.prod(x.shape[n:]), word_type(x.dtype)
        if nest.total == 0:
            return LaunchPlan(())
        name = f"sc_gather_{n}_indices_{nest.rank}d_{word.removesuffix('_t')}"
        source = render_cuda("gather.cu.j2", title=f"gather by {n} index arrays", name=name, threads=THREADS, word=word,
                             indices=tuple(range(n)), nest=nest.rank, axes=tuple(range(nest.rank)))
        numbers = [nest.total, block, *flat_rows(x.shape[:n], x.strides[:n]), *_nest_numbers(nest, n)]
        kernel = element_kernel(name, source, nest.total * max(block, 1), (0, 1, *range(2, 2 + n), ERROR_FLAG), numbers)
        return LaunchPlan((kernel,), errors=index_errors(n)[::-1], bytes=2 * z.nbytes + sum(each.nbytes for each in indices))


class ScatterRanges(CudaImplementation):
    """`ScatterAdd` and `ScatterSet`: first the places, checked; then every range of the result by a block of its own, in order."""

    name = "scatter_ranges"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """y and the index arrays."""
        return position > 0

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """Two launches; the places lie in the workspace."""
        n, (x, y, *indices) = len(problem.inputs) - 2, problem.inputs
        nest, blocks = scatter_loops(n, x, y, indices)
        block, n_blocks = blocks.total if 0 not in x.shape[n:] else 0, math.prod(x.shape[:n])
        adds = isinstance(problem.op, ScatterAdd)
        name = f"sc_scatter_{'add' if adds else 'set'}_{n}_indices_{nest.rank}d_{blocks.rank}d_{SUFFIXES[x.dtype]}"
        source = render_cuda("scatter.cu.j2", title=f"scatter by {n} index arrays", name=name, threads=THREADS,
                             word=storage_type(x.dtype), indices=tuple(range(n)), axes=tuple(range(nest.rank)),
                             block_axes=tuple(range(blocks.rank)),
                             combined=sum_expression(x.dtype, "z[place * block + r]") if adds else "value")
        launches = []
        if nest.total:
            numbers = [nest.total, *flat_rows(x.shape[:n], contiguous_strides(x.shape[:n])), *_nest_numbers(nest, n)]
            buffers = (WORKSPACE, *range(3, 3 + n), ERROR_FLAG)
            launches.append(element_kernel(name + "_places", source, nest.total, buffers, numbers))
        numbers = [nest.total, n_blocks, block, *flat_rows(nest.sizes, nest.strides[n]),
                   *flat_rows(blocks.sizes, blocks.strides[1])]
        if x.size:
            launches.append(CudaKernel(name, source, (min(max(n_blocks, 1), _PARTS), 1, 1), (THREADS, 1, 1), (0, 1, 2, WORKSPACE),
                                       int64_scalars(numbers)))
        moved = 2 * x.nbytes + y.nbytes + sum(each.nbytes for each in indices)
        return LaunchPlan(tuple(launches), 8 * max(1, nest.total), errors=index_errors(n)[::-1], bytes=moved)


def sum_expression(dtype: str, there: str) -> str:
    """The sum of what is there and of `value`, as it is stored: unsigned where integers wrap, "or" for bools."""
    if dtype == "bool":
        return f"(bool)({there} | value)"
    if dtype in ("int32", "int64"):
        return f"({dtype}_t)((u{dtype}_t){there} + (u{dtype}_t)value)"
    if dtype.startswith(("int", "uint")):
        return f"({dtype}_t)({there} + value)"
    return stored(dtype, f"{load(dtype, there)} + {load(dtype, 'value')}")


def _nest_numbers(nest: LoopNest, n: int) -> list[int]:
    """The size of each axis, and what a step along it counts in each of the first n arrays."""
    return flat_rows(nest.sizes, *nest.strides[:n])


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {
    Gather: (GatherElements(),), ScatterAdd: (ScatterRanges(),), ScatterSet: (ScatterRanges(),)}
