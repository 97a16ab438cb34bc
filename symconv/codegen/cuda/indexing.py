"""Gathers and scatters by index arrays on CUDA. Every index is checked before the element is touched."""
from __future__ import annotations

import math
from typing import Any, cast

from ...graph import Op
from ...ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from ...target import Target
from ..boxes import word_type
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Operand, Problem, contiguous_strides
from ..loops import LoopNest, broadcast_strides, collapse
from ..scalar_printer import load, storage_type, stored
from .kernel import ERROR_FLAG, WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .printing import render_cuda

THREADS = 256
MOST_BLOCKS = 1 << 16
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
        nest = _joined(z.shape[:len(indices[0].shape)], indices)
        block, word = math.prod(x.shape[n:]), word_type(x.dtype)
        if nest.total == 0:
            return LaunchPlan(())
        name = f"sc_gather_{n}_indices_{nest.rank}d_{word.removesuffix('_t')}"
        source = render_cuda("gather.cu.j2", title=f"gather by {n} index arrays", name=name, threads=THREADS, word=word,
                             indices=tuple(range(n)), nest=nest.rank, axes=tuple(range(nest.rank)))
        numbers = [nest.total, block, *_sizes_and_strides(x, n), *_nest_numbers(nest, range(n))]
        kernel = CudaKernel(name, source, (_blocks(nest.total * max(block, 1)), 1, 1), (THREADS, 1, 1),
                            (0, 1, *range(2, 2 + n), ERROR_FLAG), _scalars(numbers))
        return LaunchPlan((kernel,), errors=_index_errors(n), bytes=2 * z.nbytes + sum(each.nbytes for each in indices))


class ScatterRanges(CudaImplementation):
    """`ScatterAdd` and `ScatterSet`: first the places, checked; then every range of the result by a block of its own, in order."""

    name = "scatter_ranges"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """y and the index arrays."""
        return position > 0

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """Two launches; the places lie in the workspace."""
        n, (x, y, *indices) = len(problem.inputs) - 2, problem.inputs
        nest, blocks = _scatter_loops(n, x, y, indices)
        block, n_blocks = blocks.total if 0 not in x.shape[n:] else 0, math.prod(x.shape[:n])
        adds = isinstance(problem.op, ScatterAdd)
        name = f"sc_scatter_{'add' if adds else 'set'}_{n}_indices_{nest.rank}d_{blocks.rank}d_{SUFFIXES[x.dtype]}"
        source = render_cuda("scatter.cu.j2", title=f"scatter by {n} index arrays", name=name, threads=THREADS,
                             word=storage_type(x.dtype), indices=tuple(range(n)), axes=tuple(range(nest.rank)),
                             block_axes=tuple(range(blocks.rank)),
                             combined=sum_expression(x.dtype, "z[place * block + r]") if adds else "value")
        launches = []
        if nest.total:
            numbers = [nest.total, *_places(x, n), *_nest_numbers(nest, range(n))]
            launches.append(CudaKernel(name + "_places", source, (_blocks(nest.total), 1, 1), (THREADS, 1, 1),
                                       (WORKSPACE, *range(3, 3 + n), ERROR_FLAG), _scalars(numbers)))
        numbers = [nest.total, n_blocks, block, *(pair for pair in zip(nest.sizes, nest.strides[n], strict=True)),
                   *(pair for pair in zip(blocks.sizes, blocks.strides[1], strict=True))]
        if x.size:
            launches.append(CudaKernel(name, source, (min(max(n_blocks, 1), _PARTS), 1, 1), (THREADS, 1, 1), (0, 1, 2, WORKSPACE),
                                       _scalars(numbers)))
        moved = 2 * x.nbytes + y.nbytes + sum(each.nbytes for each in indices)
        return LaunchPlan(tuple(launches), 8 * max(1, nest.total), errors=_index_errors(n), bytes=moved)


def sum_expression(dtype: str, there: str) -> str:
    """The sum of what is there and of `value`, as it is stored: unsigned where integers wrap, "or" for bools."""
    if dtype == "bool":
        return f"(bool)({there} | value)"
    if dtype in ("int32", "int64"):
        return f"({dtype}_t)((u{dtype}_t){there} + (u{dtype}_t)value)"
    if dtype.startswith(("int", "uint")):
        return f"({dtype}_t)({there} + value)"
    return stored(dtype, f"{load(dtype, there)} + {load(dtype, 'value')}")


def _blocks(elements: int) -> int:
    return max(1, min(-(-elements // THREADS), MOST_BLOCKS))


def _scalars(numbers: Any) -> tuple[Scalar, ...]:
    flat: list[int] = []
    for number in numbers:
        flat += number if isinstance(number, tuple) else (number,)
    return tuple(Scalar("int64", number) for number in flat)


def _sizes_and_strides(x: Operand, n: int) -> list[tuple[int, int]]:
    return list(zip(x.shape[:n], x.strides[:n], strict=True))


def _places(x: Operand, n: int) -> list[tuple[int, int]]:
    """Sizes of the indexed axes, and what a step along each counts in blocks."""
    return list(zip(x.shape[:n], contiguous_strides(x.shape[:n]), strict=True))


def _nest_numbers(nest: LoopNest, arrays: Any) -> list[tuple[int, ...]]:
    return [(size, *(nest.strides[number][axis] for number in arrays)) for axis, size in enumerate(nest.sizes)]


def _joined(shape: tuple[int, ...], arrays: list[Operand]) -> LoopNest:
    return collapse(shape, [broadcast_strides(each, shape) for each in arrays])


def _scatter_loops(n: int, x: Operand, y: Operand, indices: list[Operand]) -> tuple[LoopNest, LoopNest]:
    """Joined axes of the index arrays (last strides: of y), and of a block (strides in x, then in y)."""
    rank = len(indices[0].shape)
    shape = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*(each.shape for each in indices), strict=True))
    outer, inner = Operand(y.dtype, y.shape[:rank], y.strides[:rank]), Operand(y.dtype, y.shape[rank:], y.strides[rank:])
    return _joined(shape, [*indices, outer]), _joined(x.shape[n:], [Operand.contiguous(x.dtype, x.shape[n:]), inner])


def _index_errors(n: int) -> tuple[str, ...]:
    """The text of each code: the first axis has the largest, so that of several the first is told."""
    return tuple(f"an index is outside axis {axis}: indices go from -size to size - 1 of that axis" for axis in reversed(range(n)))


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {
    Gather: (GatherElements(),), ScatterAdd: (ScatterRanges(),), ScatterSet: (ScatterRanges(),)}
