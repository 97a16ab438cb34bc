"""Convolutions of few channels for CUDA on the checked emulator, against float64 loops; what they refuse; parts and order."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import op_and_inputs, operands
from cuda_convolutions import bilinear_form, check_epilogue, check_values, conv_operands, refusal
from cuda_launching import TARGET, run

from symconv.codegen.cuda.conv_small import CudaConvSmall, CudaConvWgradSmall
from symconv.codegen.cuda.convolution import ConvImplicitGemm
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind

CORNERS = """
    n2 c3 h32 w33 k20 r7 s7 u2 p3 f32
    n2 c1 h12 w40 k6 r5 s5 p2 f32
    n3 c3 h9 w7 k13 r3 s3 p1 flip f32
    n1 c4 h20 w11 k8 r3 s3 u2 p0:1 f16
    n1 c2 h9 w10 k3 r4 s2 u1x2 p1x0 l2x1 f64
    n2 c8 h8 w8 k12 r3 s3 p1 g4 f32
    n1 c3 h8 w8 k5 r3 s3 p1 f32@f64
    n2 c2 w200 k9 s7 u2 p3:4 l3 f32
    n2 c3 h5 w6 k4 r1 s1 f32
    n1 c3 h8 w9 k9 r3 s3 u2 p1 bf16
    n0 c3 h7 w9 k3 r3 s3 p1 f32
    n2 c3 h7 w9 k0 r3 s3 p1 f32
""".strip().splitlines()
REFUSED = {
    "n1 c5 h8 w8 k4 r3 s3 f32": "one to 4 channels in a group, not 5",
    "n1 c0 h8 w8 k4 r3 s3 f32": "one to 4 channels in a group, not 0",
    "n1 c3 d4 h8 w8 k2 t3 r3 s3 f32": "along one or two axes, not 3",
    "n1 c3 h12 w12 k2 r8 s8 f32": "at most 49 taps, and the kernel has 64",
    "n1 c3 h12 w12 k2 r3 s3 u4 f32": "strides 1 and 2, not 4",
}


def implementation(kind: Kind):
    return CudaConvWgradSmall() if kind is Kind.WGRAD else CudaConvSmall()


@pytest.mark.parametrize("kind", ["fprop", "wgrad"])
@pytest.mark.parametrize("setting", CORNERS, ids=str.strip)
def test_values(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting.strip()}")
    check_values(implementation(conv.kind), conv)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_epilogue(dtype):
    check_epilogue(CudaConvSmall(), ConvProblem.parse(f"fprop n2 c3 h7 w9 k10 r3 s3 u2 p1 {dtype}"))


def test_fprop_and_wgrad_are_adjoint():
    problems = [ConvProblem.parse(f"{kind} n2 c3 h11 w13 k10 r3 s5 u2x1 p1:0x2 l1x2 f64") for kind in ("fprop", "wgrad")]
    first, second = (bilinear_form(implementation(conv.kind), conv) for conv in problems)
    np.testing.assert_allclose(first, second, rtol=1e-11)


def test_filter_gradients_in_parts_repeat_to_the_bit():
    conv = ConvProblem.parse("wgrad n3 c2 h40 w40 k4 r5 s5 p2 f32")
    assert len(CudaConvWgradSmall().build(conv_operands(conv), TARGET).launches) == 2
    op, inputs = op_and_inputs(conv, *operands(conv))
    first, second = (run(CudaConvWgradSmall(), op, *inputs, checked=False)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("setting", REFUSED)
def test_refusals(setting):
    for kind in ("fprop", "wgrad"):
        conv = ConvProblem.parse(f"{kind} {setting}")
        assert REFUSED[setting] in refusal(implementation(conv.kind), conv)


def test_it_is_expected_to_beat_the_implicit_matrix_product_in_a_first_layer():
    problem = conv_operands(ConvProblem.parse("fprop n32 c3 h224 w224 k64 r7 s7 u2 p3 f32"))
    assert CudaConvSmall().estimate(problem, TARGET) < ConvImplicitGemm().estimate(problem, TARGET)
