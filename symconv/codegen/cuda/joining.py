"""Concatenating and padding on CUDA: elements moved by their size alone, whatever their dtype and strides."""
from __future__ import annotations

from typing import cast

from ...graph import Op
from ...ops.joining import Concatenate
from ...ops.padding import Pad
from ...target import Target
from ..boxes import word_type
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..loops import collapse
from .kernel import CudaImplementation, LaunchPlan
from .looping import THREADS, element_kernel, flat_rows
from .printing import render_cuda


class ConcatenateParts(CudaImplementation):
    """A launch for each part."""

    name = "concatenate_parts"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """All parts."""
        return True

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch for each part that is not empty."""
        axis, (z,) = cast(Concatenate, problem.op).axis, problem.outputs
        launches, offset, word = [], 0, word_type(z.dtype)
        for number, x in enumerate(problem.inputs):
            if x.size:
                nest = collapse(x.shape, [x.strides, z.strides])
                name = f"sc_concatenate_{nest.rank}d_{word.removesuffix('_t')}"
                source = render_cuda("concatenate.cu.j2", title=f"a part of {nest.rank} joined axes put into a larger array",
                                     name=name, threads=THREADS, word=word, axes=tuple(range(nest.rank)))
                numbers = (x.size, offset * z.strides[axis], *flat_rows(nest.sizes, *nest.strides))
                launches.append(element_kernel(name, source, x.size, (0, 1 + number), numbers))
            offset += x.shape[axis]
        return LaunchPlan(tuple(launches), bytes=2 * z.nbytes)


class PadElements(CudaImplementation):
    """A thread for each element of the result."""

    name = "pad_elements"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """The array."""
        return position == 0

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        op, x, (z,) = cast(Pad, problem.op), problem.inputs[0], problem.outputs
        if z.size == 0:
            return LaunchPlan(())
        rank, word = len(z.shape), word_type(z.dtype)
        name = f"sc_pad_{rank}d_{word.removesuffix('_t')}"
        source = render_cuda("pad.cu.j2", title=f"an array of rank {rank} padded with a value", name=name, threads=THREADS,
                             word=word, axes=tuple(range(rank)))
        numbers = (z.size, *flat_rows(z.shape, x.shape, x.strides, op.before))
        kernel = element_kernel(name, source, z.size, (0, 1, 2), numbers)
        return LaunchPlan((kernel,), bytes=x.nbytes + z.nbytes)


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {Concatenate: (ConcatenateParts(),), Pad: (PadElements(),)}
