"""`Assert` on the CPU: the conditions are looked at first, then the value is passed on (in its own memory where that may be)."""
from __future__ import annotations

from typing import cast

from ..graph import Op
from ..ops.effects import Assert
from ..target import Target
from .boxes import PARALLEL_ELEMENTS, word_type
from .implementation import Implementation
from .kernel import Kernel, Problem
from .templates import render_kernel


class CheckedCopy(Implementation):
    """The number of conditions and all sizes are run-time arguments."""

    name = "checked_copy"

    def build(self, problem: Problem, target: Target) -> Kernel:
        """A kernel for each size of element."""
        (z,), (x, *conditions) = problem.outputs, problem.inputs
        word = word_type(x.dtype)
        name = f"sc_assert_{word.removesuffix('_t')}"
        source = render_kernel("assert.c.j2", function=name, problem="a value passed on where all conditions hold", word=word,
                               parallel_from=PARALLEL_ELEMENTS)
        sizes = (x.size, len(conditions), *(each.size for each in conditions))
        return Kernel(name, source, sizes, in_place=((0, 0),), errors=(cast(Assert, problem.op).message,),
                      bytes=x.nbytes + z.nbytes + sum(each.nbytes for each in conditions))


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {Assert: (CheckedCopy(),)}
