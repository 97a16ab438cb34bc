"""`ARange` and `Eye` on the CPU: sizes are run-time arguments, start, step and diagonal are read when the kernel runs."""
from __future__ import annotations

from typing import cast

from .. import dtypes
from ..graph import Op
from ..ops.creation import ARange, Eye
from ..target import Target
from .boxes import PARALLEL_ELEMENTS, word_type
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Problem
from .templates import render_kernel

_ONES = {"float16": "0x3c00", "bfloat16": "0x3f80", "float32": "0x3f800000", "float64": "0x3ff0000000000000"}


class CountedARange(Implementation):
    """Element i is start + i·step in the wide type, rounded once."""

    name = "arange_counted"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        dtype = cast(ARange, problem.op).dtype
        return f"rounding to {dtype} has no C type" if dtype in ("float16", "bfloat16") else None

    def build(self, problem: Problem, target: Target) -> Kernel:
        op, (z,) = cast(ARange, problem.op), problem.outputs
        scalar, wide = dtypes.DTYPES[op.dtype].c_name, dtypes.DTYPES[op.wide].c_name
        value = f"start + ({wide})i * step"
        value = f"({value}) != 0" if op.dtype == "bool" else f"({scalar})({value})"
        name = f"sc_arange_{SUFFIXES[op.dtype]}"
        source = render_kernel("arange.c.j2", function=name, problem=f"start, start + step, … in {op.dtype}", scalar=scalar,
                               wide=wide, value=value, parallel_from=PARALLEL_ELEMENTS)
        return Kernel(name, source, (z.size,), flops=2 * z.size, bytes=z.nbytes)


class EyeRows(Implementation):
    """Rows of zeros with a one on the diagonal."""

    name = "eye_rows"

    def build(self, problem: Problem, target: Target) -> Kernel:
        (z,) = problem.outputs
        name = f"sc_eye_{SUFFIXES[z.dtype]}"
        source = render_kernel("eye.c.j2", function=name, problem=f"ones of {z.dtype} on a diagonal, else zeros",
                               scalar=word_type(z.dtype), one=_ONES.get(z.dtype, "1"), parallel_from=PARALLEL_ELEMENTS)
        return Kernel(name, source, z.shape, bytes=z.nbytes)


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {ARange: (CountedARange(),), Eye: (EyeRows(),)}
