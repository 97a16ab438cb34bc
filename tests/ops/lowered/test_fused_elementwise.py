"""Fused elementwise nodes: shapes, dtypes, values."""
from __future__ import annotations

import numpy as np
import pytest

from symconv.errors import GraphTypeError, InternalError, ShapeError
from symconv.graph import TensorType
from symconv.ops import elementwise as e
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.scalar import Instruction, ScalarProgram

PROGRAM = ScalarProgram(("float32", "float32"), (
    Instruction("constant", (), "float32", 2.0), Instruction("mul", (0, 2), "float32"),
    Instruction("add", (3, 1), "float32"), Instruction("gt", (0, 2), "bool")), (4, 5))


def test_every_output_has_the_broadcast_shape():
    op = FusedElementwise(PROGRAM)
    a, b = np.arange(3, dtype="float32"), np.ones((2, 1), "float32")
    total, larger = op.reference(a, b)
    np.testing.assert_array_equal(total, a * 2 + b)
    np.testing.assert_array_equal(larger, np.broadcast_to(a > 2, (2, 3)))
    types = op.infer(TensorType("float32", (3,)), TensorType("float32", (None, 1)))
    assert types == (TensorType("float32", (None, 3)), TensorType("bool", (None, 3)))
    assert op.infer_bound((TensorType("float32", (3,)), TensorType("float32", (2, 1))), {})[0].shape == total.shape


def test_name_and_errors():
    op = FusedElementwise(PROGRAM)
    assert op.name == "mul_add_gt"
    assert "add(v3, v1)" in str(op)
    with pytest.raises(ShapeError, match=r"float32\[2\] and float32\[3\]"):
        op.infer(TensorType("float32", (2,)), TensorType("float32", (3,)))
    with pytest.raises(GraphTypeError, match="other dtypes"):
        op.infer(TensorType("float64", (2,)), TensorType("float32", (2,)))
    with pytest.raises(InternalError, match="after gradients"):
        op.grad(e.add(1, 2).apply, (None, None))
