"""Generated elementwise CUDA kernels on the emulator, against NumPy."""
from __future__ import annotations

import math

import numpy as np
import pytest
from cuda_launching import TARGET, run

from symconv.codegen.cuda.elementwise import CudaElementwise, elementwise_plan
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.elementwise import Elementwise
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.scalar import SCALAR_OPS, Instruction, ScalarProgram

IMPLEMENTATION = CudaElementwise()
FUSED = FusedElementwise(ScalarProgram(("float32", "float32", "float32"), (
    Instruction("mul", (0, 1), "float32"), Instruction("add", (3, 2), "float32"), Instruction("relu", (4,), "float32")), (5,)))


def fused(x, y, z):
    return np.maximum(x.astype(np.float64) * y + z, 0)


def check(*arrays, checked=True):
    (found,) = run(IMPLEMENTATION, FUSED, *arrays, checked=checked)
    wanted = fused(*arrays)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def normal(*shape):
    return np.random.default_rng(math.prod(shape) + len(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (1023,), (1025,), (5, 7), (2, 3, 4, 8), (0, 4)])
def test_contiguous(shape):
    check(normal(*shape), normal(*shape) + 1, normal(*shape))


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("x", "y", "z"), [
    ((2, 3, 8), (3, 1), (1, 8)), ((2, 3, 7), (3, 1), (1, 7)), ((4, 5), (), (1,)), ((1, 6, 1), (5, 1, 4), (1,)),
    ((2, 5, 3, 6), (5, 1, 1), (6,)),
    ((3, 1), (1, 2), (1, 1)),
])
def test_broadcasting(x, y, z, checked):
    check(normal(*x), normal(*y), normal(*z), checked=checked)


def test_strides_reversed_steps_transposed_and_offset():
    base = normal(12, 16)
    check(base[::-1, ::2], base[:, 8:], base[:, :8])
    check(base.T, normal(16, 12), normal(16, 1))
    check(base[2:, 1:], base[2:, 1:], base[1:-1, :-1])  # rows that no vector access may read
    check(normal(65)[1:], normal(65)[:-1], normal(64))  # contiguous, but not aligned
    check(normal(8)[::-1], normal(8), normal(1))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int32", "int64", "bool"])
def test_dtypes_and_their_widths(dtype):
    rng = np.random.default_rng(5)
    x, y = (rng.integers(0, 2 if dtype == "bool" else 100, 77).astype(dtype) for _ in range(2))
    name = "and_" if dtype == "bool" else "maximum"
    (found,) = run(IMPLEMENTATION, Elementwise(name, dtype), x, y)
    np.testing.assert_array_equal(found, x & y if dtype == "bool" else np.maximum(x, y))


def test_half_floats_are_computed_in_float32():
    x = np.array([1.0, 1.001, 200.0, 0.0001], np.float16)
    program = ScalarProgram(("float16",), (Instruction("mul", (0, 0), "float16"), Instruction("sub", (1, 0), "float16")), (2,))
    (found,) = run(IMPLEMENTATION, FusedElementwise(program), x)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(found, (wide * wide - wide).astype(np.float16))


def test_several_outputs():
    program = ScalarProgram(("float32",), (Instruction("exp", (0,), "float32"), Instruction("gt", (1, 0), "bool")), (1, 2))
    x = normal(3, 5)
    first, second = run(IMPLEMENTATION, FusedElementwise(program), x)
    np.testing.assert_allclose(first, np.exp(x.astype(np.float64)), rtol=1e-6)
    assert second.dtype == bool
    assert second.all()


UNARY_FLOAT = [op.name for op in SCALAR_OPS.values() if op.arity == 1 and "f" in op.kinds and op.name != "cast"]
EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-30, 80.0, -80.0, 1e30, np.inf, -np.inf, np.nan, 3.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_unary_operation_means_what_numpys_does(dtype):
    """In one kernel; far from edges within a few units in the last place, at edges the same kind of value."""
    x = np.concatenate([EDGES, np.random.default_rng(6).normal(size=48)]).astype(dtype)
    body = tuple(Instruction(name, (0,), "bool" if SCALAR_OPS[name].result == "bool" else dtype) for name in UNARY_FLOAT)
    found = run(IMPLEMENTATION, FusedElementwise(ScalarProgram((dtype,), body, tuple(range(1, len(body) + 1)))), x)
    with np.errstate(all="ignore"):
        for name, result in zip(UNARY_FLOAT, found, strict=True):
            wanted = SCALAR_OPS[name].numpy(x.astype(np.float64)).astype(result.dtype)
            near = 2e-6 if dtype == "float32" else 1e-13
            np.testing.assert_allclose(result, wanted, rtol=near, atol=near * 1e-1, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint16", "int64"])
def test_integer_operations_wrap_and_never_trap(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, 0, 1, limits.max // 3, 7], dtype)
    y = np.array([-1 if limits.min else 3, 2, 0, 5, 3, 0], dtype)
    names = ("add", "sub", "mul", "floor_div", "mod", "maximum", "minimum")
    body = tuple(Instruction(name, (0, 1), dtype) for name in names)
    found = run(IMPLEMENTATION, FusedElementwise(ScalarProgram((dtype, dtype), body, tuple(range(2, 2 + len(names))))), x, y)
    with np.errstate(all="ignore"):
        for name, result in zip(names, found, strict=True):
            np.testing.assert_array_equal(result, SCALAR_OPS[name].numpy(x, y), err_msg=name)


def test_products_are_rounded_before_they_are_added():
    program = ScalarProgram(("float32", "float32"), (Instruction("mul", (0, 0), "float32"), Instruction("mul", (1, 1), "float32"),
                                                     Instruction("sub", (2, 3), "float32")), (4,))
    x = normal(100)
    (found,) = run(IMPLEMENTATION, FusedElementwise(program), x, x.copy(), checked=False)
    assert not found.any()


def test_large_arrays_are_counted_in_64_bits():
    shape = (1 << 16, 1 << 16)
    plan = elementwise_plan(FUSED.program, [Operand.contiguous("float32", shape)] * 3, [Operand.contiguous("float32", shape)])
    (kernel,) = plan.launches
    assert kernel.name.endswith("_long")
    assert {scalar.type for scalar in kernel.scalars} == {"int64"}
    assert math.prod(kernel.grid) * math.prod(kernel.block) * 4 >= shape[0] * shape[1]


def test_a_new_batch_size_needs_no_new_source():
    sources = {elementwise_plan(FUSED.program, [Operand.contiguous("float32", shape) for shape in ((n, 8, 6, 6), (8, 1, 1), (1,))],
                                [Operand.contiguous("float32", (n, 8, 6, 6))]).launches[0].source for n in (2, 3, 128)}
    assert len(sources) == 1


def test_more_operands_than_arguments_are_refused():
    program = ScalarProgram(("float32",) * 200, (Instruction("add", (0, 1), "float32"),), (200,))
    operand = Operand.contiguous("float32", (2, 2, 2))
    problem = Problem(FusedElementwise(program), (operand,) * 200, (operand,))
    assert "of which CUDA allows 4096" in (IMPLEMENTATION.refuse(problem, TARGET) or "")


@pytest.mark.parametrize("checked", [True, False])
def test_transposed_inputs_are_read_through_tiles(checked):
    x, y, z = normal(70, 45), normal(45, 70), normal(45, 1)
    check(x.T, y, z, checked=checked)
    check(x.T, x.T[::-1], y[:, ::-1], checked=checked)
    check(x.T[:, ::2], y[:, ::2], z, checked=checked)
    images = normal(2, 9, 8, 40)  # NHWC read as NCHW
    check(images.transpose(0, 3, 1, 2), normal(40, 1, 1), normal(2, 40, 9, 8), checked=checked)
    check(normal(5, 4).T, normal(4, 5), normal(1))


def test_which_kernel_reads_transposed_inputs():
    def name(*strides):
        operands = [Operand("float32", (64, 64), each) for each in strides]
        return elementwise_plan(FUSED.program, operands, [Operand.contiguous("float32", (64, 64))]).launches[0].name

    assert name((1, 64), (64, 1), (0, 1)).endswith("tiled1")
    assert name((1, 64), (1, 64), (1, 64)).endswith("tiled3")
    assert name((64, 1), (64, 1), (0, 1)).endswith("v4")


def test_tiles_stay_within_shared_memory():
    program = ScalarProgram(("float64",) * 9, tuple(Instruction("add", (last, number), "float64") for number, last
                                                    in enumerate((0, 9, 10, 11, 12, 13, 14, 15), start=1)), (16,))
    arrays = [np.random.default_rng(number).normal(size=(40, 50)) for number in range(9)]
    (found,) = run(IMPLEMENTATION, FusedElementwise(program), *(array.T for array in arrays))
    np.testing.assert_allclose(found, sum(array.T for array in arrays), rtol=1e-13, atol=1e-13)


def test_numbers_of_the_program_are_arguments():
    def program(rate):
        body = (Instruction("constant", (), "float32", rate), Instruction("mul", (0, 1), "float32"))
        return ScalarProgram(("float32",), body, (2,))

    x = normal(10)
    sources = set()
    for rate in (0.01, 3e-4):
        (found,) = run(IMPLEMENTATION, FusedElementwise(program(rate)), x)
        np.testing.assert_array_equal(found, x * np.float32(rate))
        operand = Operand.contiguous("float32", (10,))
        sources.add(elementwise_plan(program(rate), [operand], [operand]).launches[0].source)
    assert len(sources) == 1
