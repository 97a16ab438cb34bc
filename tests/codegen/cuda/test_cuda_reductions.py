"""Generated CUDA reductions on the emulator, against NumPy in float64."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import TARGET, run

from symconv.codegen.cuda.reductions import CudaReduction
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.lowered.reduce_many import ReduceMany
from symconv.ops.reductions import Reduce, sum_dtype
from symconv.ops.scalar import Instruction, ScalarProgram

IMPLEMENTATION = CudaReduction()


def sum_of(axes, dtype="float32", kind="sum", keepdims=False, prologue=None):
    return Reduce(kind, axes, keepdims, dtype, prologue)


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def plan_of(op, *arrays):
    operands = tuple(Operand.contiguous("float32", array) if isinstance(array, tuple) else array for array in arrays)
    shape = tuple(size for axis, size in enumerate(operands[0].shape) if axis not in op.axes)
    return IMPLEMENTATION.build(Problem(op, operands, (Operand.contiguous(op.dtype, shape),)), TARGET)


CASES = [((7,), (0,)), ((5, 33), (1,)), ((5, 33), (0,)), ((3, 4, 5), (1,)), ((3, 4, 5), (0, 2)), ((2, 3, 4, 5), (0, 2, 3)),
         ((2, 3, 4, 5), (1, 3)),
         ((1, 1), (0, 1)), ((3, 1, 5), (1,)), ((2500,), (0,)), ((3, 2500), (1,)), ((300, 37), (0,)), ((20000,), (0,)),
         ((2, 9000), (1,)), ((3000, 5), (0,)), ((4, 5), ())]


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_sums_over_any_axes(shape, axes, checked):
    x = normal(*shape)
    (found,) = run(IMPLEMENTATION, sum_of(axes), x, checked=checked)
    wanted = x.astype(np.float64).sum(axis=axes)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


def test_every_structure_is_used():
    names = [launch.name for shape, axes in CASES for launch in plan_of(sum_of(axes), shape).launches]
    for ending in ("warps", "blocks", "columns", "blocks_split", "columns_split", "parts"):
        assert any(name.endswith(ending) for name in names), ending


def test_strided_and_broadcast_inputs():
    x, y = normal(40, 60), normal(60)
    program = ScalarProgram(("float32", "float32"), (Instruction("mul", (0, 1), "float32"),), (2,))
    (found,) = run(IMPLEMENTATION, sum_of((0,), prologue=program), x[::-2, ::3], y[:20])
    np.testing.assert_allclose(found, (x[::-2, ::3].astype(np.float64) * y[:20]).sum(0), rtol=1e-5, atol=1e-5)
    (found,) = run(IMPLEMENTATION, sum_of((1,), keepdims=True), x.T)
    np.testing.assert_allclose(found, x.T.astype(np.float64).sum(1, keepdims=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "uint32"])
def test_kinds_and_dtypes(kind, dtype):
    rng = np.random.default_rng(8)
    x = (rng.integers(1, 4, (6, 50)) if kind != "prod" else rng.integers(1, 3, (6, 5))).astype(dtype)
    result = sum_dtype(dtype) if kind in ("sum", "prod") else dtype
    for axes in ((0,), (1,), (0, 1)):
        (found,) = run(IMPLEMENTATION, sum_of(axes, result, kind), x)
        np.testing.assert_array_equal(found, getattr(np, kind)(x.astype(np.float64), axis=axes).astype(result))


def test_any_and_all():
    x = np.random.default_rng(9).random((5, 40)) < 0.1
    for kind in ("any", "all"):
        for values in (x, ~x):
            (found,) = run(IMPLEMENTATION, sum_of((1,), "bool", kind), values)
            np.testing.assert_array_equal(found, getattr(np, kind)(values, axis=1))


def test_nan_wins_in_every_place():
    for place in (0, 31, 32, 777, 1999):
        x = normal(2000)
        x[place] = np.nan
        for kind in ("max", "min"):
            (found,) = run(IMPLEMENTATION, sum_of((0,), "float32", kind), x, checked=False)
            assert np.isnan(found)


def test_of_nothing():
    (found,) = run(IMPLEMENTATION, sum_of((0,)), np.zeros((0, 3), np.float32))
    np.testing.assert_array_equal(found, np.zeros(3))
    (found,) = run(IMPLEMENTATION, sum_of((1,)), np.zeros((0, 3), np.float32))
    assert found.shape == (0,)


def test_float32_sums_are_many_short_ones():
    x = np.full(300_000, 0.1, np.float32)
    (found,) = run(IMPLEMENTATION, sum_of((0,)), x, checked=False)
    np.testing.assert_allclose(found, x.astype(np.float64).sum(), rtol=2e-6)


def test_several_reductions_in_one_pass():
    x, y = normal(7, 3000), normal(7, 1)
    program = ScalarProgram(("float32", "float32"), (Instruction("mul", (0, 1), "float32"), Instruction("abs", (0,), "float32")),
                            (0, 2, 3))
    for axes in ((1,), (0,), (0, 1)):
        op = ReduceMany((sum_of(axes), sum_of(axes), sum_of(axes, kind="max")), program)
        found = run(IMPLEMENTATION, op, x, y)
        wide = x.astype(np.float64)
        for result, wanted in zip(found, (wide.sum(axes), (wide * y).sum(axes), np.abs(wide).max(axes)), strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-3)


def test_the_same_bits_every_time():
    x = normal(9, 20_000)
    first, *others = (run(IMPLEMENTATION, sum_of((1,)), x, checked=False)[0].tobytes() for _ in range(3))
    assert all(other == first for other in others)


def test_a_new_batch_size_needs_no_new_source():
    sources = {plan_of(sum_of((0, 2)), (n, 64, 49)).launches[0].source for n in (64, 65, 128)}
    assert len(sources) == 1
