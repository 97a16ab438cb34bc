"""Several reductions in one kernel, against NumPy: kinds, loop structures, parts, strides, dtypes."""
from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import run_kernel

from symconv.codegen.reductions import GeneratedReduction
from symconv.ops.lowered.reduce_many import ReduceMany
from symconv.ops.reductions import Reduce
from symconv.ops.scalar import Instruction, ScalarProgram

RNG = np.random.default_rng(8)
KERNEL = GeneratedReduction()
SHAPES = [(3, 4, 5), (6, 2, 300), (1, 1, 70001), (500, 7, 3), (2, 0, 3), (3, 4, 1)]
AXES = [(0,), (2,), (0, 2), (0, 1, 2), (1,)]

# where(m, x, 0) · y, its negative, and x
MASKED = ScalarProgram(("float32", "bool", "float32"),
                       (Instruction("constant", (), "float32", 0.0), Instruction("where", (1, 0, 3), "float32"),
                        Instruction("mul", (4, 2), "float32"), Instruction("neg", (5,), "float32")), (5, 6, 0))


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_computed_values(shape, axes):
    x, y = (RNG.normal(size=shape).astype("float32") for _ in range(2))
    mask = RNG.random(shape) < 0.5
    op = ReduceMany(tuple(Reduce("sum", axes, True, "float32") for _ in range(3)), MASKED)
    product = np.where(mask, x, np.float32(0)) * y
    results = run_kernel(KERNEL, op, x, mask, y)
    for found, values in zip(results, (product, -product, x), strict=True):
        exact = values.astype("float64").sum(axes, keepdims=True)
        np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-9 * max(1, x.size))
    for found, again in zip(results, run_kernel(KERNEL, op, x, mask, y, threads=1), strict=True):
        np.testing.assert_array_equal(found, again, "the bits depend on the number of threads")


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if 0 not in shape])
def test_different_kinds_and_dtypes(shape, axes):
    x = RNG.normal(size=shape).astype("float64")
    x.flat[0] = np.nan
    program = ScalarProgram(("float64",), (Instruction("constant", (), "float64", 0.5), Instruction("gt", (0, 1), "bool")),
                            (0, 2, 2, 0))
    kinds = (("max", "float64"), ("any", "bool"), ("sum", "int64"), ("min", "float64"))
    op = ReduceMany(tuple(Reduce(kind, axes, False, dtype) for kind, dtype in kinds), program)
    largest, some, count, least = run_kernel(KERNEL, op, x)
    np.testing.assert_array_equal(largest, x.max(axes))
    np.testing.assert_array_equal(some, (x > 0.5).any(axes))
    np.testing.assert_array_equal(count, (x > 0.5).sum(axes))
    np.testing.assert_array_equal(least, x.min(axes))


def test_strides_and_broadcast_operands():
    whole, vector = RNG.normal(size=(40, 30, 20)).astype("float32"), RNG.normal(size=(30, 1)).astype("float32")
    program = ScalarProgram(("float32", "float32"), (Instruction("mul", (0, 1), "float32"),), (2, 0))
    op = ReduceMany(tuple(Reduce("sum", (0, 2), False, "float32") for _ in range(2)), program)
    for view in (whole[::-2], whole[:, :, ::3], whole.transpose(2, 1, 0)):
        first, second = run_kernel(KERNEL, op, view, vector)
        wide = view.astype("float64")
        np.testing.assert_allclose(first, (wide * vector).sum((0, 2)), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(second, wide.sum((0, 2)), rtol=1e-5, atol=1e-5)


def test_the_reference_agrees():
    x, y, mask = RNG.normal(size=(4, 5)).astype("float32"), RNG.normal(size=(1, 5)).astype("float32"), RNG.random((4, 5)) < 0.5
    op = ReduceMany(tuple(Reduce("sum", (0,), False, "float32") for _ in range(3)), MASKED)
    for found, expected in zip(run_kernel(KERNEL, op, x, mask, y), op.reference(x, mask, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
