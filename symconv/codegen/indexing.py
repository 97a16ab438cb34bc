"""Indexing on the CPU: slices and integers read from memory when the kernel runs, and gathers and scatters by index arrays.

Every index is checked before the element is touched; a wrong one ends the kernel with an error that names its axis.
Kernels that only move elements know their size alone.  A scatter gives each element of the result to one thread, which
writes in the order of the indices: repeated indices neither race nor make the result depend on the number of threads.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

from ..graph import Op
from ..ops.basic_indexing import INPUT, Bound, IncSubtensor, Pattern, Slice, Subtensor, pattern_text
from ..ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from ..target import Target
from .boxes import PARALLEL_ELEMENTS, from_rank_one, scalar_type, sum_statement, word_type
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem, contiguous_strides
from .loops import LoopNest, broadcast_strides, collapse
from .templates import render_kernel

_LARGEST = (1 << 63) - 1


class SubtensorBox(Implementation):
    """x[pattern] with bounds that only the run knows: the region is found, then copied."""

    name = "subtensor_box"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        return position == 0

    def build(self, problem: Problem, target: Target) -> Kernel:
        pattern, x, (z,) = cast(Subtensor, problem.op).pattern, problem.inputs[0], problem.outputs
        word = word_type(x.dtype)
        name = f"sc_subtensor_{len(x.shape)}d_to_{len(z.shape)}d_{word.removesuffix('_t')}"
        source = render_kernel("subtensor.c.j2", function=name, problem=f"x[{pattern_text(pattern)}]", word=word, adds=None,
                               **_region(pattern, len(z.shape)))
        sizes = (*x.shape, *x.strides, *from_rank_one(z.shape), *from_rank_one(z.strides))
        return Kernel(name, source, sizes, errors=region_errors(pattern), bytes=2 * z.nbytes)


class IncSubtensorBox(Implementation):
    """A copy of x (or x itself, where its memory may be used) in which the region is set or added to."""

    name = "inc_subtensor_box"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        op, dtype = cast(IncSubtensor, problem.op), problem.outputs[0].dtype
        return f"sums of {dtype} have no C type" if op.mode == "add" and sum_statement(dtype) is None else None

    def takes_strides(self, problem: Problem, position: int) -> bool:
        return position == 1

    def build(self, problem: Problem, target: Target) -> Kernel:
        op, (x, y) = cast(IncSubtensor, problem.op), problem.inputs[:2]
        adds = sum_statement(x.dtype) if op.mode == "add" else None
        word = scalar_type(x.dtype) if adds else word_type(x.dtype)
        name = f"sc_{op.mode}_subtensor_{len(x.shape)}d_{word.removesuffix('_t')}"
        source = render_kernel("inc_subtensor.c.j2", function=name, problem=f"x[{pattern_text(op.pattern)}] {adds or '='} y",
                               word=word, adds=adds, **_region(op.pattern, len(y.shape)))
        strides = tuple(0 if size == 1 else stride for size, stride in zip(y.shape, y.strides, strict=True))
        sizes = (*x.shape, *contiguous_strides(x.shape), *from_rank_one(y.shape), *(strides or (0,)), x.size)
        return Kernel(name, source, sizes, in_place=((0, 0),), errors=region_errors(op.pattern),
                      bytes=2 * x.nbytes + y.nbytes)


class GatherBlocks(Implementation):
    """x[indices, …]: a block of x for every element of the index arrays."""

    name = "gather_blocks"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        return position > 0 or _has_contiguous_blocks(problem.inputs[0], cast(Gather, problem.op).n_index_axes)

    def build(self, problem: Problem, target: Target) -> Kernel:
        n, (x, *indices), (z,) = cast(Gather, problem.op).n_index_axes, problem.inputs, problem.outputs
        nest = joined_loops(z.shape[:len(indices[0].shape)], indices)
        block, word = math.prod(x.shape[n:]), word_type(x.dtype)
        name = f"sc_gather_{n}_indices_{'elements' if block == 1 else 'blocks'}_{word.removesuffix('_t')}"
        source = render_kernel("gather.c.j2", function=name, problem=f"{n} index arrays, {nest.rank} joined axes of them",
                               word=word, single=block == 1, n_indices=n, nest=nest.rank, parallel_from=PARALLEL_ELEMENTS)
        sizes = (nest.total, block, *x.shape[:n], *x.strides[:n], *nest.sizes, *_flat(nest.strides))
        return Kernel(name, source, sizes, errors=index_errors(n),
                      bytes=2 * z.nbytes + sum(each.nbytes for each in indices))


class ScatterBlocks(Implementation):
    """A copy of x (or x itself, where its memory may be used) with a block set or added for every element of the indices."""

    name = "scatter_blocks"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        dtype = problem.outputs[0].dtype
        return f"sums of {dtype} have no C type" if isinstance(problem.op, ScatterAdd) and not sum_statement(dtype) else None

    def takes_strides(self, problem: Problem, position: int) -> bool:
        return position > 0

    def build(self, problem: Problem, target: Target) -> Kernel:
        n, (x, y, *indices) = len(problem.inputs) - 2, problem.inputs
        assign = sum_statement(x.dtype) if isinstance(problem.op, ScatterAdd) else "="
        word = word_type(x.dtype) if assign == "=" else scalar_type(x.dtype)
        nest, blocks = scatter_loops(n, x, y, indices)
        name = f"sc_scatter_{'set' if assign == '=' else 'add'}_{n}_indices_{word.removesuffix('_t')}"
        source = render_kernel("scatter.c.j2", function=name, problem=f"{n} index arrays, {nest.rank} joined axes of them, "
                               f"blocks of {blocks.rank} joined axes", word=word, assign=assign, n_indices=n, nest=nest.rank,
                               block_axes=blocks.rank, parallel_from=PARALLEL_ELEMENTS)
        *index_strides, y_strides = nest.strides
        sizes = (x.size, nest.total, blocks.total, math.prod(x.shape[:n]), max(1, target.threads), *x.shape[:n],
                 *contiguous_strides(x.shape[:n]), *nest.sizes, *_flat(index_strides), *y_strides, *blocks.sizes,
                 *_flat(blocks.strides))
        return Kernel(name, source, sizes, workspace_bytes=8 * nest.total, in_place=((0, 0),), errors=index_errors(n),
                      bytes=2 * x.nbytes + y.nbytes + sum(each.nbytes for each in indices))


def _region(pattern: Pattern, rank: int) -> dict[str, Any]:
    """What `region.c.j2` needs: the C calls that add the axes to the region, which are true where they fail."""
    return {"rank": max(1, rank), "x_rank": len(pattern), "pattern": pattern_text(pattern), "size_error": len(pattern) + 1,
            "calls": list(region_calls(pattern)), "parallel_from": PARALLEL_ELEMENTS}


def region_calls(pattern: Pattern) -> Iterator[str]:
    """The C calls that add the axes to the region, in order; each is true where it fails."""
    numbers = iter(range(len(pattern) * 3))
    for axis, entry in enumerate(pattern):
        place = f"x_sizes[{axis}], x_strides[{axis}]"
        if isinstance(entry, Slice):
            start, stop, step = (_bound(bound, numbers) for bound in entry.bounds)
            step = step or "1"
            start = start or _by_direction(entry.step, step, "INT64_MAX", "0")
            stop = stop or _by_direction(entry.step, step, "-INT64_MAX", "INT64_MAX")
            yield f"add_slice(region, {start}, {stop}, {step}, {place})"
        else:
            yield f"add_index(region, {_bound(entry, numbers)}, {place})"


def _bound(bound: Bound, numbers: Iterator[int]) -> str:
    """The C expression of a number of a pattern; nothing for None."""
    if bound is None:
        return ""
    if bound == INPUT:
        return f"*(const int64_t *)scalars[{next(numbers)}]"
    return f"INT64_C({max(-_LARGEST, min(int(bound), _LARGEST))})"


def _by_direction(step: Bound, text: str, backward: str, forward: str) -> str:
    """What a bound that is not given means: it depends on the sign of the step."""
    if step == INPUT:
        return f"({text} < 0 ? {backward} : {forward})"
    return backward if step is not None and int(step) < 0 else forward


def region_errors(pattern: Pattern) -> tuple[str, ...]:
    """The texts of the codes of a kernel that finds the region of a pattern."""
    texts = [f"the step of the slice of axis {axis} can not be 0" if isinstance(entry, Slice) else
             f"an index is outside axis {axis}: indices go from -size to size - 1 of that axis"
             for axis, entry in enumerate(pattern)]
    return (*texts, f"the value does not have the size of the region [{pattern_text(pattern)}]")


def index_errors(n: int) -> tuple[str, ...]:
    """The texts of the codes of a kernel that takes n index arrays, in the order of the axes."""
    return tuple(f"an index is outside axis {axis}: indices go from -size to size - 1 of that axis" for axis in range(n))


def _has_contiguous_blocks(x: Operand, n: int) -> bool:
    return Operand(x.dtype, x.shape[n:], x.strides[n:]).is_contiguous


def joined_loops(shape: tuple[int, ...], arrays: list[Operand]) -> LoopNest:
    """The fewest axes along which all arrays can be read as if they had this shape."""
    return collapse(shape, [broadcast_strides(each, shape) for each in arrays])


def scatter_loops(n: int, x: Operand, y: Operand, indices: list[Operand]) -> tuple[LoopNest, LoopNest]:
    """Joined axes of the index arrays (last strides: of y), and of a block (strides in x, then in y)."""
    rank = len(indices[0].shape)
    shape = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*(each.shape for each in indices), strict=True))
    outer, inner = Operand(y.dtype, y.shape[:rank], y.strides[:rank]), Operand(y.dtype, y.shape[rank:], y.strides[rank:])
    return joined_loops(shape, [*indices, outer]), joined_loops(x.shape[n:], [Operand.contiguous(x.dtype, x.shape[n:]), inner])


def _flat(strides: Any) -> tuple[int, ...]:
    return tuple(stride for each in strides for stride in each)


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {
    Subtensor: (SubtensorBox(),),
    IncSubtensor: (IncSubtensorBox(),),
    Gather: (GatherBlocks(),),
    ScatterAdd: (ScatterBlocks(),),
    ScatterSet: (ScatterBlocks(),),
}
