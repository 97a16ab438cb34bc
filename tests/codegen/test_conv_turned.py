"""Convolutions with channels in the lanes of plain tensors, against loops over the kernel's elements in float64."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import check_elements, check_epilogue, check_threads, expected, op_and_inputs, operands
from kernel_runner import make_problem, run_kernel

from symconv.codegen.conv_turned import ConvTurned
from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.ops.conv_problem import ConvProblem
from symconv.target import Target

PROBLEMS = """
    n1 c1 h1 w1 k1 r1 s1
    n2 c16 h9 w11 k24 r3 s3 u2 p1
    n1 c20 h9 w10 k9 r1 s1 u2
    n1 c9 h17 w23 k17 r1 s1 u2x3 p1x0:2
    n2 c13 h9 w11 k7 r3 s3 p1
    n2 c3 h19 w21 k20 r7 s7 u2 p3
    n2 c5 h9 w21 k5 r3 s5 u2x1 p0:2x3:1 flip
    n1 c18 h17 w13 k27 r2 s3 p1x0:2 g3
    n2 c20 h20 w20 k9 r3 s3 l2x3 p2x4
    n1 c12 h9 w9 k18 r3 s4 u4x5
    n1 c6 w50 k16 s5 l3 p6:0
    n2 c8 d5 h6 w7 k18 t3 r2 s3 p1x0x1 u2x1x2
    n1 c40 d7 h5 w5 k8 t2 r1 s2 l3x1x2
    n0 c3 h8 w8 k4 r3 s3 p1
    n2 c3 h6 w6 k0 r3 s3 p1
    n2 c0 h6 w6 k4 r3 s3 p1
    n1 c100 h7 w7 k40 r3 s3 p1
    n1 c8 w601 k16 s3 u2
""".strip().splitlines()


def _check(text: str, threads: int, vector_bytes: int = Target().vector_bytes) -> None:
    conv = ConvProblem.parse(text)
    check_elements(ConvTurned(), conv, Target(threads=threads, vector_bytes=vector_bytes))


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
@pytest.mark.parametrize("sizes", [line.strip() for line in PROBLEMS])
def test_against_loops(kind: str, sizes: str) -> None:
    _check(f"{kind} {sizes} f32", threads=2)
    _check(f"{kind} {sizes} f64", threads=1)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_narrow_vectors(dtype: str) -> None:
    _check(f"dgrad n2 c13 h9 w11 k7 r3 s3 u2 p1 {dtype}", threads=2, vector_bytes=16)


@pytest.mark.parametrize("text", ["fprop n3 c64 h17 w30 k40 r3 s3 u2 p1 f32", "dgrad n3 c64 h17 w30 k40 r3 s3 u2 p1 f32"])
def test_threads_do_not_change_bits(text: str) -> None:
    check_threads(ConvTurned(), ConvProblem.parse(text))


@pytest.mark.parametrize("text", ["fprop n2 c9 h9 w21 k12 r3 s3 p1 f32", "dgrad n2 c12 h11 w9 k5 r2 s2 u4x1 p0:3x5 f32"])
def test_epilogue(text: str) -> None:
    check_epilogue(ConvTurned(), ConvProblem.parse(text))


def test_what_is_not_a_number_stays_where_the_taps_reach() -> None:
    conv = ConvProblem.parse("dgrad n1 c9 h11 w13 k12 r3 s3 u2 f32")
    x, w, y = operands(conv)
    y[0, 1, 4, 5] = np.nan
    op, inputs = op_and_inputs(conv, x, w, y)
    wanted, _ = expected(conv, x, w, y)
    (found,) = run_kernel(ConvTurned(), op, *inputs, threads=1)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))


@pytest.mark.parametrize(("text", "reason"), [
    ("wgrad n1 c4 h5 w5 k4 r3 s3 f32", "filter gradients"), ("fprop n1 c8 h9 w9 k8 r3 s3 g8 f32", "lanes empty"),
    ("fprop n1 c2 h5 w5 k2 r3 s3 f16", "float16")])
def test_refusals_say_why(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    assert reason in (ConvTurned().refuse(make_problem(op, *inputs), Target()) or "")


@pytest.mark.parametrize("text", ["dgrad n8 c128 h56 w56 k128 r3 s3 u2 p1 f32", "fprop n8 c128 h56 w56 k128 r3 s3 u2 p1 f32",
                                  "dgrad n1 c256 h56 w56 k512 r1 s1 u2 f32"])
def test_it_is_chosen_for_strides(text: str) -> None:
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    problem, target = make_problem(op, *inputs), Target()
    asked = [each for each in CONV_IMPLEMENTATIONS if each.serves(op) and each.refuse(problem, target) is None]
    assert min(asked, key=lambda each: each.estimate(problem, target)).name == "conv_turned"
