"""Scattered image gradients against loops over the kernel's elements in float64: corner shapes, epilogues, NaN, threads."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import check_elements, check_epilogue, check_threads, expected, op_and_inputs, operands
from kernel_runner import make_problem, run_kernel

from symconv.codegen.conv_scatter import ConvScatter
from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.ops.conv_problem import ConvProblem
from symconv.target import Target

PROBLEMS = """
    n1 c1 h1 w1 k1 r1 s1
    n4 c20 h12 w12 k50 r5 s5
    n2 c13 h9 w11 k7 r3 s3 p1
    n2 c3 h9 w21 k5 r3 s5 u2x1 p0:2x3:1 flip
    n1 c6 h17 w13 k9 r2 s3 p1x0:2 g3
    n2 c2 h20 w20 k3 r3 s3 l2x3 p2x4
    n1 c2 h9 w9 k3 r4 s3 u4x1
    n1 c2 h11 w9 k3 r2 s2 u4x1 p0:3x5
    n1 c3 w50 k6 s5 l3 p6:0
    n2 c3 d5 h6 w7 k4 t3 r2 s3 p1x0x1 u2x1x1
    n0 c3 h8 w8 k4 r3 s3 p1
    n2 c3 h6 w6 k0 r3 s3 p1
    n2 c0 h6 w6 k4 r3 s3 p1
    n1 c3 h8 w24 k300 r3 s3 p1
    n3 c7 h1 w1 k5 r3 s3 p1
""".strip().splitlines()


def _check(text: str, threads: int, vector_bytes: int = Target().vector_bytes) -> None:
    conv = ConvProblem.parse(text)
    check_elements(ConvScatter(), conv, Target(threads=threads, vector_bytes=vector_bytes))


@pytest.mark.parametrize("sizes", [line.strip() for line in PROBLEMS])
def test_against_loops(sizes: str) -> None:
    _check(f"dgrad {sizes} f32", threads=2)
    _check(f"dgrad {sizes} f64", threads=1)


def test_narrow_vectors() -> None:
    _check("dgrad n2 c13 h9 w11 k7 r3 s3 p1 f32", threads=2, vector_bytes=16)


def test_threads_do_not_change_bits() -> None:
    conv = ConvProblem.parse("dgrad n5 c20 h12 w12 k50 r5 s5 f32")
    check_threads(ConvScatter(), conv)


@pytest.mark.parametrize("sizes", ["n2 c3 h9 w11 k5 r3 s3 p1 f32", "n2 c3 h11 w9 k5 r2 s2 u4x1 p0:3x5 f32"])
def test_epilogue(sizes: str) -> None:
    conv = ConvProblem.parse(f"dgrad {sizes}")
    check_epilogue(ConvScatter(), conv)


def test_what_is_not_a_number_stays_where_the_taps_reach() -> None:
    conv = ConvProblem.parse("dgrad n1 c3 h11 w13 k4 r3 s3 f32")
    x, w, y = operands(conv)
    y[0, 1, 4, 10] = np.nan
    w[2, 1, 0, 0] = np.inf  # the lanes behind a line's end are no part of it, whatever the filters are
    op, inputs = op_and_inputs(conv, x, w, y)
    wanted, _ = expected(conv, x, w, y)
    (found,) = run_kernel(ConvScatter(), op, *inputs, threads=1)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))


@pytest.mark.parametrize(("text", "reason"), [
    ("fprop n1 c4 h5 w5 k4 r3 s3 f32", "images"), ("dgrad n1 c2 h9 w9 k2 r3 s3 u2 f32", "stride of 2"),
    ("dgrad n1 c2 h5 w5 k2 r3 s3 f16", "float16"), ("dgrad n1 c2 h512 w512 k2 r3 s3 f32", "padded image")])
def test_refusals_say_why(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    assert reason in (ConvScatter().refuse(make_problem(op, *inputs), Target()) or "")


def _seconds(text: str) -> dict[str, float]:
    """What each implementation that takes a problem is expected to need."""
    op, inputs = op_and_inputs(ConvProblem.parse(text), *operands(ConvProblem.parse(text)))
    problem, target = make_problem(op, *inputs), Target(threads=2)
    return {each.name: each.estimate(problem, target) for each in CONV_IMPLEMENTATIONS
            if each.serves(op) and each.refuse(problem, target) is None}


def test_it_is_chosen_for_lenet() -> None:
    seconds = _seconds("dgrad n128 c20 h12 w12 k50 r5 s5 f32")
    assert min(seconds, key=seconds.__getitem__) == "conv_scatter"


@pytest.mark.parametrize("text", ["dgrad n8 c16 h112 w112 k96 r1 s1 f32", "dgrad n1 c16 h112 w112 k16 r1 s1 f32"])
def test_it_is_left_where_large_images_leave_room_for_one_channel_at_a_time(text: str) -> None:
    """The first was timed on two cores: 15.0 ms, conv_gemm 5.7, conv_turned 4.1; so not even a fast machine's ceilings take it."""
    seconds = _seconds(text)
    assert seconds["conv_scatter"] > 2 * min(seconds.values())


def test_the_response_read_again_counts() -> None:
    alone, eight = (_seconds(f"dgrad n8 c{channels} h112 w112 k96 r1 s1 f32")["conv_scatter"] for channels in (1, 8))
    assert eight > 7 * alone  # a channel fills a task, so that each costs as much as one alone
