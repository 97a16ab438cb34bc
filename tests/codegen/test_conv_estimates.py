"""Expected times of every layer that the problem files name: numbers that a choice can be made of."""
from __future__ import annotations

import math
from pathlib import Path

import pytest

from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.conv_problem import ConvProblem, parse_problems
from symconv.ops.convolution import Conv
from symconv.ops.spec import Kind
from symconv.target import Target

FILES = sorted((Path(__file__).parents[1] / "problems").glob("*.txt"))


def problem_of(conv: ConvProblem) -> Problem:
    operands = [Operand.contiguous(conv.dtype, {"x": conv.x_shape, "w": conv.w_shape, "y": conv.y_shape}[role])
                for role in conv.kind.reads]
    if conv.kind is not Kind.FPROP:
        operands.append(Operand.contiguous("int64", (len(conv.x_shape),)))
    return Problem(Conv(conv.kind, conv.spec), tuple(operands), (Operand.contiguous(conv.result_dtype, conv.result_shape),))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_layer_has_an_implementation_with_a_time_that_is_possible(path):
    """Nothing does 40 times the direct operations of the machine's peak (Winograd saves a factor of 4), or takes a minute."""
    target = Target(threads=2)
    for conv in dict.fromkeys(parse_problems(path.read_text())):
        problem = problem_of(conv)
        if conv.dtype not in ("float32", "float64") or conv.spec.compute_dtype or conv.result_dtype != conv.dtype:
            continue
        taken = [each for each in CONV_IMPLEMENTATIONS if each.serves(problem.op) and each.refuse(problem, target) is None]
        assert taken, f"nothing runs {conv}"
        for each in taken:
            seconds = each.estimate(problem, target)
            assert math.isfinite(seconds), f"{each.name}, {conv}"
            assert conv.flops / target.peak_flops(conv.dtype) / 40 < seconds < 60, f"{each.name}, {conv}: {seconds}"
