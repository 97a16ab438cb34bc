"""`Assert` on CUDA: the value is copied, and a condition that fails raises the flag that the runtime reads."""
from __future__ import annotations

from typing import cast

from ...graph import Op
from ...ops.effects import Assert
from ...target import Target
from ..boxes import word_type
from ..implementation import AnyImplementation
from ..kernel import Problem
from .kernel import ERROR_FLAG, CudaImplementation, LaunchPlan
from .looping import THREADS, element_kernel
from .printing import render_cuda


class CheckedCopy(CudaImplementation):
    """A thread for each element of the value and of the conditions."""

    name = "checked_copy"

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        (z,), (x, *conditions) = problem.outputs, problem.inputs
        word, n = word_type(x.dtype), len(conditions)
        name = f"sc_assert_{n}_{word.removesuffix('_t')}"
        source = render_cuda("assert.cu.j2", title=f"a value passed on where {n} conditions hold", name=name, threads=THREADS,
                             word=word, conditions=tuple(range(n)))
        counts = [x.size, *(each.size for each in conditions)]
        moved = x.nbytes + z.nbytes + sum(each.nbytes for each in conditions)
        texts = (cast(Assert, problem.op).message,)
        if max(counts) == 0:
            return LaunchPlan((), errors=texts)
        kernel = element_kernel(name, source, max(counts), (0, *range(1, 2 + n), ERROR_FLAG), counts)
        return LaunchPlan((kernel,), errors=texts, bytes=moved)


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {Assert: (CheckedCopy(),)}
