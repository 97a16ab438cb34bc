"""Slices and integers read from memory on CUDA: x[pattern] and x[pattern] = y where bounds are values of the call."""
from __future__ import annotations

import re
from typing import cast

from ...graph import Op
from ...ops.basic_indexing import IncSubtensor, Pattern, Subtensor, pattern_text
from ...target import Target
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..indexing import region_calls, region_errors
from ..kernel import Operand, Problem, contiguous_strides
from ..scalar_printer import storage_type
from .indexing import sum_expression
from .kernel import ERROR_FLAG, CudaImplementation, LaunchPlan
from .looping import THREADS, element_kernel, flat_rows
from .printing import render_cuda

_SCALAR = re.compile(r"\*\(const int64_t \*\)scalars\[(\d+)\]")
_SIZES = re.compile(r"x_sizes\[(\d+)\], x_strides\[\1\]")


class SubtensorElements(CudaImplementation):
    """`Subtensor`: every thread finds the region, then copies its elements."""

    name = "subtensor_elements"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """x."""
        return position == 0

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch, also for an empty result: indices are checked all the same."""
        pattern, x, (z,) = cast(Subtensor, problem.op).pattern, problem.inputs[0], problem.outputs
        name = _name("subtensor", pattern, x.dtype)
        source, n_scalars = _source(name, pattern, z, x.dtype, is_set=False, adds=False)
        numbers = [z.size, *flat_rows(x.shape, x.strides), *flat_rows(z.shape, z.strides)]
        kernel = element_kernel(name, source, z.size, (0, 1, *range(2, 2 + n_scalars), ERROR_FLAG), numbers)
        return LaunchPlan((kernel,), errors=region_errors(pattern), bytes=2 * z.nbytes)


class IncSubtensorElements(CudaImplementation):
    """`IncSubtensor`: a copy of x, then the region set or added to."""

    name = "inc_subtensor_elements"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """y."""
        return position == 1

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """Two launches."""
        op, (x, y) = cast(IncSubtensor, problem.op), problem.inputs[:2]
        name = _name(f"{op.mode}_subtensor", op.pattern, x.dtype)
        source, n_scalars = _source(name, op.pattern, y, x.dtype, is_set=True, adds=op.mode == "add")
        strides = tuple(0 if size == 1 else stride for size, stride in zip(y.shape, y.strides, strict=True))
        numbers = [y.size, *flat_rows(x.shape, contiguous_strides(x.shape)), *flat_rows(y.shape, strides)]
        copy = element_kernel(name + "_copy", source, x.size, (0, 1), [x.size])
        change = element_kernel(name, source, x.size, (0, 2, *range(3, 3 + n_scalars), ERROR_FLAG), numbers)
        return LaunchPlan((copy, change), errors=region_errors(op.pattern), bytes=2 * x.nbytes + y.nbytes)


def _source(name: str, pattern: Pattern, region: Operand, dtype: str, is_set: bool, adds: bool) -> tuple[str, int]:
    """The source, and how many scalars the pattern reads."""
    calls = [_SIZES.sub(r"x_size\1, x_stride\1", _SCALAR.sub(r"scalar\1[0]", call))
             for call in region_calls(pattern)]
    n_scalars = len(set(re.findall(r"scalar(\d+)\[0\]", " ".join(calls))))
    source = render_cuda("subtensor.cu.j2", title=f"x[{pattern_text(pattern)}]", name=name, threads=THREADS,
                         word=storage_type(dtype), rank=len(region.shape), axes=tuple(range(len(region.shape))),
                         x_axes=tuple(range(len(pattern))),
                         scalars=tuple(range(n_scalars)), calls=tuple(calls), is_set=is_set, adds=adds,
                         combined=sum_expression(dtype, "z[to]") if adds else "value")
    return source, n_scalars


def _name(word: str, pattern: Pattern, dtype: str) -> str:
    return f"sc_{word}_{len(pattern)}d_{SUFFIXES[dtype]}"


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {
    Subtensor: (SubtensorElements(),), IncSubtensor: (IncSubtensorElements(),)}
