"""Share of the FMA peak that symconv's convolutions reach, by direct FLOPs: direct kernels, and Winograd's where it serves."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from symconv.config import config
from symconv.ops.conv_problem import ConvProblem

from . import symconv_side
from .contender import SYMCONV, Contender, Row, Timing
from .report import Goal, Section
from .rows_layers import is_dense_3x3, problem_arrays, problem_lines


def peak_section(peak: Callable[[], float], time_rows: Callable[[list[Row]], list[Timing]]) -> Section:
    """The dense 3×3 and 1×1 layers of batch 8, as chosen and, for 3×3, by the best kernel of direct sums.

    `peak` measures the machine's peak, the best of several runs; it is asked just before and just after each row, since the clock
    wanders, and compared with the fastest tenth of the calls.
    """
    section = Section("Share of the FMA peak", [])
    for row in _rows():
        before = peak()
        for timing in time_rows([row]):
            share = row.flops / timing.fastest(SYMCONV) / max(before, peak())
            wanted = 1.8 if "winograd" in timing.notes.get(SYMCONV, "") else 0.85
            section.timings.append(timing)
            section.goals.append(Goal(f"{row.name} by {timing.notes.get(SYMCONV, '')}", wanted, share))
    return section


def _rows() -> list[Row]:
    rows = []
    for line in problem_lines():
        problem = ConvProblem.parse(line)
        if problem.x_shape[0] != 8 or not (is_dense_3x3(problem) or problem.w_shape[2:] == (1, 1)):
            continue
        for winograd in ("auto", "off") if is_dense_3x3(problem) else ("auto",):
            name = f"{problem}{' (direct sums)' if winograd == 'off' else ''}"
            rows.append(Row("peak", name, {SYMCONV: partial(_layer, problem, winograd)}, problem.flops, problem.bytes))
    return rows


def _layer(problem: ConvProblem, winograd: str) -> Contender:
    with config.change(conv__winograd=winograd):
        return symconv_side.layer(problem, problem_arrays(problem))
