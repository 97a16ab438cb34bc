"""What the tests of CUDA's convolution kernels share: results on the checked emulator against loops in float64."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conv_oracle import expected, op_and_inputs, operands
from cuda_launching import TARGET, run

from symconv.codegen.kernel import Operand, Problem
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

TOLERANCE = {"float64": 1e-14, "float32": 2e-6, "float16": 1e-3, "bfloat16": 1e-2}  # of the sum of the terms' magnitudes
_LEAST = {"float16": 1e-7}  # where the magnitudes are below what the dtype has


def check_values(implementation: Any, conv: ConvProblem) -> None:
    """Each element of the result, within its dtype's tolerance of the magnitudes of its terms."""
    if conv.dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    arrays = operands(conv)
    op, inputs = op_and_inputs(conv, *arrays)
    (found,) = run(implementation, op, *inputs)
    wanted, magnitude = expected(conv, *arrays)
    assert found.dtype == conv.dtype
    wrong = ~(np.abs(found.astype(np.float64) - wanted) <= TOLERANCE[conv.dtype] * magnitude + _LEAST.get(conv.dtype, 0))
    assert not wrong.any(), f"{conv}: {wrong.sum()} of {wrong.size} wrong, first {np.argwhere(wrong)[0]}"


def check_epilogue(implementation: Any, conv: ConvProblem) -> None:
    """An epilogue with a bias, a gate of the result's shape, a function that cuDNN does not fuse, and another dtype."""
    arrays, name = operands(conv), conv.dtype
    program = ScalarProgram((name,) * 3, (Instruction("add", (0, 1), name), Instruction("mul", (3, 2), name),
                                          Instruction("tanh", (4,), name), Instruction("cast", (5,), "float32")), (6,))
    op, inputs = op_and_inputs(conv, *arrays, Epilogue(program, ("channel", "full")))
    rng = np.random.default_rng(1)
    bias, gate = (rng.standard_normal(shape).astype(name) for shape in (conv.result_shape[1], conv.result_shape))
    (found,) = run(implementation, op, *inputs, bias, gate)
    assert found.dtype == np.float32
    along = bias.astype(np.float64).reshape(-1, *(1,) * conv.spec.ndim)
    wanted = np.tanh((expected(conv, *arrays)[0] + along) * gate)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-2 if name == "float16" else 1e-5)


def bilinear_form(implementation: Any, conv: ConvProblem) -> float:
    """⟨y, conv(x, w)⟩ with the one of the three that this kind makes from the other two; of float64, the same for all kinds."""
    x, w, y = operands(conv)
    op, inputs = op_and_inputs(conv, x, w, y)
    (found,) = run(implementation, op, *inputs)
    return float((found * {"x": x, "w": w, "y": y}[conv.kind.produces]).sum())


def conv_operands(conv: ConvProblem) -> Problem:
    """The problem on contiguous operands, without any arrays."""
    op, _ = op_and_inputs(conv, *(np.zeros(0, np.float32),) * 3)
    shapes = {"x": conv.x_shape, "w": conv.w_shape, "y": conv.y_shape}
    inputs = [Operand.contiguous(conv.dtype, shapes[role]) for role in conv.kind.reads]
    extra = [Operand.contiguous("int64", (len(conv.w_shape),))] if op.value_inputs else []
    return Problem(op, (*inputs, *extra), (Operand.contiguous(conv.result_dtype, conv.result_shape),))


def refusal(implementation: Any, conv: ConvProblem, target: Target = TARGET) -> str:
    """Why it refuses a problem; "accepted" where it does not."""
    return implementation.refuse(conv_operands(conv), target) or "accepted"
