"""Depthwise convolutions for CUDA on the checked emulator, against float64 loops; what they refuse; their parts and order."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import op_and_inputs, operands
from cuda_convolutions import bilinear_form, check_epilogue, check_values, conv_operands, refusal
from cuda_launching import TARGET, run

from symconv.codegen.cuda.conv_depthwise import CudaConvDepthwise, CudaConvWgradDepthwise
from symconv.codegen.cuda.convolution import ConvImplicitGemm
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind

CORNERS = """
    n2 c8 h10 w10 k8 r3 s3 p1 g8 f32
    n2 c8 h10 w9 k16 r3 s3 u2 p1 g8 flip f32
    n3 c3 h7 w7 k3 r7 s7 p3 g3 f32
    n1 c2 h41 w37 k4 r5 s5 p2 u2 g2 f32
    n1 c3 h14 w70 k3 r3 s3 p1 l2x3 g3 f32
    n2 c3 h9 w12 k3 r3 s2 u2x1 p0:1x2 l1x2 g3 flip f64
    n1 c2 h35 w33 k2 r3 s3 u1x2 p1 g2 f64
    n2 c3 h13 w11 k6 r3 s3 p1 g3 f16
    n2 c3 h8 w8 k3 r5 s5 u2 p1:2 g3 bf16
    n1 c2 h6 w5 k2 r3 s3 p1 g2 f32@f64
    n2 c4 w300 k8 s5 u2 p2 g4 f32
    n2 c2 w9 k2 s3 p4 l4 g2 f32
    n1 c1 h1 w1 k1 r1 s1 f32
    n2 c2 h5 w6 k4 r1 s1 u2 g2 f32
    n0 c3 h7 w9 k3 r3 s3 p1 g3 f32
    n1 c2 h3 w3 k2 r3 s3 p6 g2 f32
    n1 c2 h64 w9 k2 r2 s2 u2 g2 f32
""".strip().splitlines()
REFUSED = {
    "n1 c4 h8 w8 k4 r3 s3 g2 f32": "one input channel",
    "n1 c2 d4 h8 w8 k2 t3 r3 s3 g2 f32": "along one or two axes, not 3",
    "n1 c2 h12 w12 k2 r8 s8 g2 f32": "at most 49 taps, and the kernel has 64",
    "n1 c2 h12 w12 k2 r3 s3 u3 g2 f32": "strides 1 and 2, not 3",
    "n1 c2 h999 w999 k2 r7 s7 l90 g2 f32": "bytes of shared memory",
}


def implementation(kind: Kind):
    return CudaConvWgradDepthwise() if kind is Kind.WGRAD else CudaConvDepthwise()


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("setting", CORNERS, ids=str.strip)
def test_values(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting.strip()}")
    check_values(implementation(conv.kind), conv)


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_epilogue(kind, dtype):
    check_epilogue(CudaConvDepthwise(), ConvProblem.parse(f"{kind} n2 c6 h7 w9 k6 r3 s3 p1 g6 {dtype}"))


def test_the_three_kinds_are_adjoint():
    text = "n3 c5 h11 w13 k10 r3 s5 u2x1 p1:0x2 l1x2 g5 f64"
    problems = [ConvProblem.parse(f"{kind} {text}") for kind in ("fprop", "dgrad", "wgrad")]
    forms = [bilinear_form(implementation(conv.kind), conv) for conv in problems]
    np.testing.assert_allclose(forms, forms[0], rtol=1e-11)


def test_filter_gradients_in_parts_repeat_to_the_bit():
    conv = ConvProblem.parse("wgrad n9 c2 h40 w40 k2 r3 s3 p1 g2 f32")
    plan = CudaConvWgradDepthwise().build(conv_operands(conv), TARGET)
    assert len(plan.launches) == 2
    assert plan.workspace_bytes > 0
    op, inputs = op_and_inputs(conv, *operands(conv))
    first, second = (run(CudaConvWgradDepthwise(), op, *inputs, checked=False)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_infinities_outside_what_a_tap_meets_stay_outside():
    """A tap's gradient sums what it meets: an infinite element of the image that it never meets is not multiplied by 0."""
    conv = ConvProblem.parse("wgrad n1 c1 h5 w5 k1 r3 s3 f32")
    x, w, y = operands(conv)
    x[0, 0, 4, 4] = np.inf
    op, inputs = op_and_inputs(conv, x, w, y)
    (found,) = run(CudaConvWgradDepthwise(), op, *inputs)
    assert np.isinf(found[0, 0, 2, 2])
    assert np.isfinite(found.reshape(-1)[:-1]).all()


@pytest.mark.parametrize("setting", REFUSED)
def test_refusals(setting):
    for kind in ("fprop", "wgrad"):
        conv = ConvProblem.parse(f"{kind} {setting}")
        assert REFUSED[setting] in refusal(implementation(conv.kind), conv)


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_it_is_expected_to_beat_the_implicit_matrix_product(kind):
    """A layer of MobileNetV2, whose matrix products would be of one row each."""
    conv = ConvProblem.parse(f"{kind} n32 c144 h56 w56 k144 r3 s3 p1 g144 f32")
    problem = conv_operands(conv)
    own, other = (each.estimate(problem, TARGET) for each in (implementation(conv.kind), ConvImplicitGemm()))
    assert own < other / 2


@pytest.mark.parametrize("kind", ["fprop", "wgrad"])
def test_a_grid_has_room_for_large_batches(kind):
    """Planes beyond 65535 are counted along the grid's first axis; elements beyond 2^31 in 64 bits."""
    conv = ConvProblem.parse(f"{kind} n70000 c512 h14 w14 k512 r3 s3 p1 g512 f32")
    plan = implementation(conv.kind).build(conv_operands(conv), TARGET)
    assert conv.x_shape[0] * 512 * 196 > 2**31
    assert all(max(launch.grid[1:]) == 1 for launch in plan.launches)
    assert "* ((int64_t)in1 * in2)" in plan.launches[0].source or "in_plane = (int64_t)in1 * in2" in plan.launches[0].source
