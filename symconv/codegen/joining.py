"""Concatenating and padding on the CPU: elements moved by their size alone, whatever their dtype and strides."""
from __future__ import annotations

from typing import cast

from ..graph import Op
from ..ops.joining import Concatenate
from ..ops.padding import Pad
from ..target import Target
from .boxes import PARALLEL_ELEMENTS, from_rank_one, word_type
from .implementation import Implementation
from .kernel import Kernel, Problem
from .templates import render_kernel


class ConcatenateBoxes(Implementation):
    """Each part copied to its box of the result; the number of parts and all sizes are run-time arguments."""

    name = "concatenate_boxes"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        return True

    def build(self, problem: Problem, target: Target) -> Kernel:
        axis, (z,) = cast(Concatenate, problem.op).axis, problem.outputs
        rank, word = len(z.shape), word_type(z.dtype)
        name = f"sc_concatenate_{rank}d_{word.removesuffix('_t')}"
        source = render_kernel("concatenate.c.j2", function=name, problem=f"arrays of rank {rank} joined along an axis",
                               rank=rank, word=word, adds=None, parallel_from=PARALLEL_ELEMENTS)
        parts = [number for x in problem.inputs for number in (*x.shape, *x.strides)]
        return Kernel(name, source, (len(problem.inputs), axis, *z.strides, *parts), bytes=_moved(problem))


class PadRows(Implementation):
    """Row by row: the value, the row of x where there is one, the value."""

    name = "pad_rows"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        return position == 0

    def build(self, problem: Problem, target: Target) -> Kernel:
        op, x, (z,) = cast(Pad, problem.op), problem.inputs[0], problem.outputs
        word, rank = word_type(z.dtype), max(1, len(z.shape))
        name = f"sc_pad_{rank}d_{word.removesuffix('_t')}"
        source = render_kernel("pad.c.j2", function=name, problem=f"an array of rank {rank} padded with a value", rank=rank,
                               word=word, parallel_from=PARALLEL_ELEMENTS)
        sizes = (*from_rank_one(x.shape), *from_rank_one(x.strides), *(op.before or (0,)), *from_rank_one(z.shape))
        return Kernel(name, source, sizes, bytes=_moved(problem))


def _moved(problem: Problem) -> int:
    return sum(operand.nbytes for operand in (*problem.outputs, *problem.inputs))


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {Concatenate: (ConcatenateBoxes(),), Pad: (PadRows(),)}
