"""Depthwise convolutions for CUDA with channels last, on the checked emulator, against float64 loops."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_oracle import expected, op_and_inputs, operands
from cuda_convolutions import TOLERANCE
from cuda_launching import TARGET, operand_of, run

from symconv.codegen.cuda.conv_depthwise_last import CudaConvDepthwiseLast, CudaConvWgradDepthwiseLast
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import CHANNELS_LAST, Layout, array_from_blocked, array_to_blocked
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind

LAST = Layout(CHANNELS_LAST, CHANNELS_LAST)
CORNERS = """
    n2 c8 h10 w10 k8 r3 s3 p1 g8 f32
    n2 c12 h10 w9 k12 r3 s3 u2 p1 g12 flip f32
    n1 c3 h7 w9 k3 r7 s7 p3 g3 f32
    n1 c160 h5 w6 k160 r3 s3 p1 g160 f32
    n1 c4 h21 w17 k4 r5 s5 p2 u2 g4 f32
    n1 c6 h9 w30 k6 r3 s3 p1 l2x3 g6 f32
    n2 c4 h9 w12 k4 r3 s2 u2x1 p0:1x2 l1x2 g4 flip f64
    n2 c24 h9 w7 k24 r3 s3 p1 g24 f16
    n1 c16 h8 w8 k16 r5 s5 u2 p1:2 g16 bf16
    n1 c2 h6 w5 k2 r3 s3 p1 g2 f32@f64
    n2 c4 w300 k4 s5 u2 p2 g4 f32
    n1 c1 h1 w1 k1 r1 s1 f32
    n2 c2 h5 w6 k2 r1 s1 u2 g2 f32
    n0 c3 h7 w9 k3 r3 s3 p1 g3 f32
    n1 c2 h3 w3 k2 r3 s3 p6 g2 f32
""".strip().splitlines()


def implementation(kind: Kind):
    return CudaConvWgradDepthwiseLast() if kind is Kind.WGRAD else CudaConvDepthwiseLast()


def in_memory(conv: ConvProblem, op, inputs):
    """The op in its layout, and its two tensors as they lie in it."""
    blocks = [LAST.block(role) for role in conv.kind.reads]
    tensors = [np.ascontiguousarray(array_to_blocked(array, block)) for array, block in zip(inputs[:2], blocks, strict=True)]
    return replace(op, layout=LAST), [*tensors, *inputs[2:]]


def result_of(conv: ConvProblem, extra=(), epilogue=None):
    arrays = operands(conv)
    op, inputs = in_memory(conv, *op_and_inputs(conv, *arrays, epilogue))
    (found,) = run(implementation(conv.kind), op, *inputs, *extra)
    return array_from_blocked(found, LAST.block(conv.kind.produces)), arrays


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("setting", CORNERS, ids=str.strip)
def test_values(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting.strip()}")
    if conv.dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    found, arrays = result_of(conv)
    wanted, magnitude = expected(conv, *arrays)
    assert (found.dtype, found.shape) == (conv.dtype, wanted.shape)
    assert (np.abs(found.astype(np.float64) - wanted) <= TOLERANCE[conv.dtype] * magnitude + 1e-7).all()


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
def test_epilogue(kind):
    conv = ConvProblem.parse(f"{kind} n2 c8 h7 w9 k8 r3 s3 p1 g8 f16")
    program = ScalarProgram(("float16",) * 3, (
        Instruction("add", (0, 1), "float16"), Instruction("mul", (3, 2), "float16"), Instruction("tanh", (4,), "float16"),
        Instruction("cast", (5,), "float32")), (6,))
    rng = np.random.default_rng(1)
    bias, gate = rng.standard_normal(8).astype(np.float16), rng.standard_normal((2, 7, 9, 8)).astype(np.float16)
    found, arrays = result_of(conv, (bias, gate), Epilogue(program, ("channel", "full")))
    assert found.dtype == np.float32
    plain = expected(conv, *arrays)[0] + bias.astype(np.float64)[:, None, None]
    np.testing.assert_allclose(found, np.tanh(plain * np.moveaxis(gate, -1, 1)), atol=2e-2)


def test_the_three_kinds_are_adjoint():
    forms = []
    for kind in ("fprop", "dgrad", "wgrad"):
        conv = ConvProblem.parse(f"{kind} n3 c6 h11 w13 k6 r3 s5 u2x1 p1:0x2 l1x2 g6 f64")
        found, (x, w, y) = result_of(conv)
        forms.append(float((found * {"x": x, "w": w, "y": y}[conv.kind.produces]).sum()))
    np.testing.assert_allclose(forms, forms[0], rtol=1e-11)


def test_filter_gradients_repeat_to_the_bit_and_keep_infinities_where_they_are():
    conv = ConvProblem.parse("wgrad n2 c4 h12 w12 k4 r3 s3 g4 f32")
    first, second = (result_of(conv)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    x, w, y = operands(conv)
    x[0, :, -1, -1] = np.inf
    op, inputs = in_memory(conv, *op_and_inputs(conv, x, w, y))
    (found,) = run(CudaConvWgradDepthwiseLast(), op, *inputs)
    assert np.isinf(found[:, 0, 2, 2]).all()
    assert np.isfinite(found.reshape(4, 9)[:, :-1]).all()


@pytest.mark.parametrize(("setting", "layout", "reason"), [
    ("n1 c8 h8 w8 k16 r3 s3 g8 f32", LAST, "one filter for each channel, not 16"),
    ("n1 c8 h8 w8 k4 r3 s3 f32", LAST, "one filter for each channel"),
    ("n1 c8 h8 w8 k8 r3 s3 g8 f32", Layout(8, 8), "channels last only"),
    ("n1 c8 h8 w8 k8 r3 s3 g8 f32", Layout(CHANNELS_LAST, 0), "channels last only"),
    ("n1 c2 h8 w8 k2 r3 s3 u3 g2 f32", LAST, "strides 1 and 2"),
    ("n1 c2 d4 h8 w8 k2 t1 r3 s3 g2 f32", LAST, "one or two axes"),
    ("n1 c2 h20 w20 k2 r9 s9 g2 f32", LAST, "at most 49 taps"),
])
def test_refusals(setting, layout, reason):
    conv = ConvProblem.parse(f"fprop {setting}")
    op, (x, w) = op_and_inputs(conv, *operands(conv))
    x, y = (np.ascontiguousarray(array_to_blocked(array, block)) for array, block in (
        (x, layout.x), (np.zeros(conv.y_shape, np.float32), layout.y)))
    problem = Problem(replace(op, layout=layout), (operand_of(x), operand_of(w)), (Operand.contiguous("float32", y.shape),))
    assert reason in CudaConvDepthwiseLast().refuse(problem, TARGET)
