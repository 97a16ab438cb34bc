"""Share of the FMA peak that symconv's convolutions reach, by direct FLOPs: direct kernels, and Winograd's where it serves."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from symconv.ops.conv_problem import ConvProblem

from . import symconv_side
from .contender import SYMCONV, Contender, Row, Timing
from .report import Goal, Section
from .rows_layers import is_dense_3x3, problem_arrays, problem_lines


def peak_section(peak: float, time_rows: Callable[[list[Row]], list[Timing]]) -> Section:
    """The dense 3×3 and 1×1 layers of batch 8."""
    rows = []
    for line in problem_lines():
        problem = ConvProblem.parse(line)
        if problem.x_shape[0] == 8 and (is_dense_3x3(problem) or problem.w_shape[2:] == (1, 1)):
            direct = "conv_direct" if is_dense_3x3(problem) else ""
            for forced in dict.fromkeys(("", direct)):
                builders = {SYMCONV: partial(_layer, problem, forced)}
                rows.append(Row("peak", f"{problem}{f' ({forced})' if forced else ''}", builders, problem.flops, problem.bytes))
    section = Section("Share of the FMA peak", time_rows(rows))
    for timing in section.timings:
        share = timing.row.flops / timing.median(SYMCONV) / peak
        wanted = 1.8 if "winograd" in timing.notes.get(SYMCONV, "") else 0.85
        section.goals.append(Goal(f"{timing.row.name} by {timing.notes.get(SYMCONV, '')}", wanted, share))
    return section


def _layer(problem: ConvProblem, implementation: str) -> Contender:
    return symconv_side.layer(problem, problem_arrays(problem), implementation)
