"""Implicit-GEMM convolution on CUDA cores, on the checked emulator, against float64 references."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import TARGET, operand_of, run

from symconv.codegen.cuda.convolution import ConvImplicitGemm
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind

TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
SETTINGS = [
    "n2 c3 h7 w9 k5 r3 s3 p1 f32",
    "n2 c4 h8 w7 k6 r3 s2 u2x1 p0:1x1 l1x2 g2 flip f32",
    "n3 c2 w30 k4 s5 u3 l2 p4 f64",
    "n1 c2 d4 h5 w6 k3 t2 r3 s3 p1 f32",
    "n2 c3 h7 w9 k5 r3 s3 p1 f16",
    "n40 c3 h7 w9 k5 r3 s3 p1 f32",
    "n1 c1 h1 w1 k1 r1 s1 f32",
    "n0 c3 h7 w9 k5 r3 s3 p1 f32",
    "n2 c0 h7 w9 k5 r3 s3 p1 f32",
    "n2 c70 h3 w5 k67 r1 s1 f32",
    "n2 c8 h6 w6 k8 r3 s3 p1 g8 f32",
    "n2 c3 h7 w9 k5 r3 s3 p1 f32@f64",
]


def arrays_of(conv: ConvProblem):
    rng = np.random.default_rng(0)
    x, w, y = (rng.standard_normal(shape).astype(conv.dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    return {Kind.FPROP: [x, w], Kind.DGRAD: [y, w, np.array(conv.x_shape)], Kind.WGRAD: [x, y, np.array(conv.w_shape)]}[conv.kind]


def wide(arrays):
    return [array.astype(np.float64) if array.dtype.kind == "f" else array for array in arrays]


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_values(kind, setting):
    conv = ConvProblem.parse(f"{kind} {setting}")
    arrays = arrays_of(conv)
    (found,) = run(ConvImplicitGemm(), Conv(conv.kind, conv.spec), *arrays)
    wanted = Conv(conv.kind, conv.spec).reference(*wide(arrays))[0]
    scale = max(float(np.abs(wanted).max(initial=0)), 1e-30)
    assert float(np.abs(found.astype(np.float64) - wanted).max(initial=0)) <= TOLERANCE[conv.dtype] * scale


@pytest.mark.parametrize("kind", ["fprop", "dgrad"])
def test_epilogue(kind):
    conv = ConvProblem.parse(f"{kind} n2 c3 h7 w9 k5 r3 s3 p1 f32")
    arrays = arrays_of(conv)
    program = ScalarProgram(("float32",) * 3, (Instruction("add", (0, 1), "float32"), Instruction("mul", (3, 2), "float32"),
                                               Instruction("tanh", (4,), "float32")), (5,))
    op = Conv(conv.kind, conv.spec, Epilogue(program, ("channel", "full")))
    rng = np.random.default_rng(1)
    bias, gate = rng.standard_normal(conv.result_shape[1], np.float32), rng.standard_normal(conv.result_shape, np.float32)
    (found,) = run(ConvImplicitGemm(), op, *arrays, bias, gate)
    plain = Conv(conv.kind, conv.spec).reference(*wide(arrays))[0]
    np.testing.assert_allclose(found, np.tanh((plain + bias[:, None, None]) * gate), rtol=1e-4, atol=1e-5)


def test_filter_gradients_of_many_pixels_are_split_and_repeat_to_the_bit():
    conv = ConvProblem.parse("wgrad n64 c2 h12 w12 k3 r3 s3 p1 f32")
    arrays = arrays_of(conv)
    op, operands = Conv(conv.kind, conv.spec), tuple(map(operand_of, arrays))
    problem = Problem(op, operands, (Operand.contiguous("float32", conv.w_shape),))
    assert len(ConvImplicitGemm().build(problem, TARGET).launches) == 2
    first, second = (run(ConvImplicitGemm(), Conv(conv.kind, conv.spec), *arrays)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
