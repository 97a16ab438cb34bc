"""Elementwise kernels over shapes, strides and broadcasts, against NumPy."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest
from kernel_runner import call_kernel, make_problem, operand_of, run_kernel

from symconv.codegen import elementwise
from symconv.codegen.elementwise import GeneratedElementwise, copy_kernel
from symconv.codegen.kernel import Operand, Problem
from symconv.codegen.loops import collapse
from symconv.codegen.toolchain import build
from symconv.ops.elementwise import Elementwise
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

C_KERNEL = GeneratedElementwise()
F = "float32"
TARGET = Target(threads=2)


def random_view(rng, shape):
    """An array of this shape that lies in memory in some odd way: permuted, sliced, reversed or repeated axes."""
    rank = len(shape)
    order = rng.permutation(rank)
    steps = rng.integers(1, 3, rank)
    whole = rng.standard_normal([shape[axis] * steps[axis] for axis in order]).astype(F)
    view = whole.transpose(np.argsort(order)) if rank else whole
    view = view[tuple(slice(None, None, int(step)) for step in steps)][tuple(slice(size) for size in shape)]
    for axis in range(rank):
        choice = rng.integers(5)
        if choice == 0:
            view = np.flip(view, axis)
        elif choice == 1:
            view = np.take(view, [0], axis) if shape[axis] else view
    return view


@pytest.mark.parametrize("seed", range(25))
def test_random_strides_and_broadcasts(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.choice([1, 2, 3, 5, 8, 33], rng.integers(0, 6)))
    first, second = random_view(rng, shape), random_view(rng, shape[rng.integers(len(shape) + 1):])
    (result,) = run_kernel(C_KERNEL, Elementwise("sub"), first, second)
    np.testing.assert_array_equal(result, first - second)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3), (1,), (2,) * 8, (1, 5, 1, 1)])
def test_awkward_shapes(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(F)
    (result,) = run_kernel(C_KERNEL, Elementwise("neg"), x)
    np.testing.assert_array_equal(result, -x)
    (result,) = run_kernel(C_KERNEL, Elementwise("add"), x.T, x.T)
    np.testing.assert_array_equal(result, x.T + x.T)


@pytest.mark.parametrize("shape", [(70, 130), (3, 65, 129), (2, 3, 100, 40), (40, 3), (3, 40)])
def test_transposed_copies(shape):
    """Every permutation that reverses the last two axes or all of them goes through tiles."""
    x = np.random.default_rng(0).standard_normal(shape)
    for view in (x.T, np.swapaxes(x, -1, -2), np.swapaxes(x[..., ::-1], 0, -1)):
        kernel = copy_kernel(operand_of(view), TARGET)
        (result,) = call_kernel(kernel, [view], (Operand.contiguous("float64", view.shape),))
        np.testing.assert_array_equal(result, view)


def test_many_threads_and_blocks():
    x = np.random.default_rng(0).standard_normal(300_001).astype(F)
    for threads in (1, 2, 5):
        (result,) = run_kernel(C_KERNEL, Elementwise("mul"), x, x, threads=threads)
        np.testing.assert_array_equal(result, x * x)


def test_several_outputs_of_several_dtypes():
    body = (Instruction("cast", (1,), F), Instruction("mul", (0, 2), F), Instruction("lt", (0, 3), "bool"),
            Instruction("constant", (), F, 0.1), Instruction("sub", (3, 5), F))
    program = ScalarProgram((F, "int32"), body, (4, 6, 0))
    x, k = np.linspace(-2, 2, 12, dtype=F).reshape(3, 4), np.arange(4, dtype=np.int32)
    less, shifted, same = run_kernel(C_KERNEL, FusedElementwise(program), x, k)
    np.testing.assert_array_equal(less, x < x * k.astype(F))
    np.testing.assert_allclose(shifted, x * k.astype(F) - np.float32(0.1), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(same, x)


def test_a_new_size_is_the_same_source():
    sources = {C_KERNEL.build(make_problem(Elementwise("add"), np.ones((n, 64, 7), F), np.ones((64, 1), F)), TARGET).source
               for n in (2, 8, 100)}
    assert len(sources) == 1


def test_in_place_pairs_are_safe():
    x, bias = np.random.default_rng(0).standard_normal((50, 60)).astype(F), np.ones(60, F)
    kernel = C_KERNEL.build(make_problem(Elementwise("add"), x, bias), TARGET)
    assert kernel.in_place == ((0, 0),)
    wanted, (built,) = x + bias, build([kernel])
    import ctypes

    buffers = (ctypes.c_void_p * 3)(x.ctypes.data, x.ctypes.data, bias.ctypes.data)
    numbers = (ctypes.c_int64 * len(kernel.sizes))(*kernel.sizes)
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)(
        ctypes.addressof(buffers), ctypes.addressof(numbers)) == 0
    np.testing.assert_array_equal(x, wanted)


def test_long_programs_compile():
    """1,000 instructions, and 300 inputs: neither nesting nor operand counts stop the compiler."""
    body = tuple(Instruction("add" if number % 2 else "mul", (number, 0), F) for number in range(1000))
    x = np.random.default_rng(0).random(50).astype(F) * 0.1
    exact = x.astype(np.float64)
    for step in body:
        exact = exact + x if step.op == "add" else exact * x
    (result,) = run_kernel(C_KERNEL, FusedElementwise(ScalarProgram((F,), body, (1000,))), x)
    np.testing.assert_allclose(result, exact, rtol=1e-4)
    arrays = [np.full(9, number, F) for number in range(300)]
    chain = (Instruction("add", (0, 1), F), *(Instruction("add", (298 + number, number), F) for number in range(2, 300)))
    (result,) = run_kernel(C_KERNEL, FusedElementwise(ScalarProgram((F,) * 300, chain, (598,))), *arrays)
    np.testing.assert_array_equal(result, np.full(9, 299 * 150, F))


def test_collapse_joins_what_every_operand_passes_as_one():
    nest = collapse((4, 1, 5, 6), [(30, 30, 6, 1), (0, 7, 6, 1)])
    assert nest.sizes == (4, 30)
    assert nest.strides == ((30, 1), (0, 1))
    assert collapse((4, 5), [(5, 1), (10, 1)]).sizes == (4, 5)
    assert collapse((1, 1), [(9, 9)]).sizes == (1,)


def _scaled(dtype, value, op="mul"):
    """x, value → op(x, value)."""
    body = (Instruction("constant", (), dtype, value), Instruction(op, (0, 1), dtype))
    return FusedElementwise(ScalarProgram((dtype,), body, (2,)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.1, -12544.0, 1e-300, 1 / 3, 3.4e38, 1e308, np.inf, -np.inf, np.nan, -0.0, 0.5, 2.0,
                                   16777217.0])
def test_constants_reach_the_kernel_to_the_last_bit(dtype, value):
    x = np.array([1.0, -3.7, 0.0, 1e-30, 5e20], dtype)
    with np.errstate(all="ignore"):
        constant = np.asarray(value).astype(dtype)
        np.testing.assert_array_equal(run_kernel(C_KERNEL, _scaled(dtype, value), x)[0], x * constant)
        np.testing.assert_array_equal(run_kernel(C_KERNEL, _scaled(dtype, value, "true_div"), x)[0], x / constant)


def test_another_learning_rate_or_number_of_elements_needs_no_other_kernel():
    x = np.ones(5, F)
    kernels = [C_KERNEL.build(make_problem(_scaled(F, value, "true_div"), x), TARGET) for value in (12544.0, 392.0, 0.01)]
    assert len({kernel.source for kernel in kernels}) == 1
    assert len({kernel.sizes for kernel in kernels}) == 3
    assert "* 2.0f" in C_KERNEL.build(make_problem(_scaled(F, 2.0), x), TARGET).source


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 7, 513, 5 * 4096 + 11])
def test_results_past_the_caches(monkeypatch, dtype, size):
    """What is written past the caches is what is written through them, wherever the result begins in memory."""
    monkeypatch.setattr(elementwise, "STREAM_BYTES", 0)
    x, y = np.random.default_rng(size).standard_normal((2, size)).astype(dtype)
    kernel = C_KERNEL.build(make_problem(Elementwise("mul"), x, y), TARGET)
    assert "_stream" in kernel.name
    (built,) = build([kernel])
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)
    sizes, whole = np.array(kernel.sizes, np.int64), np.full(size + 16, np.nan, dtype)
    for start in (0, 1, 5):
        whole[:] = np.nan
        buffers = np.array([whole[start:].ctypes.data, x.ctypes.data, y.ctypes.data], np.int64)
        assert function(buffers.ctypes.data, sizes.ctypes.data) == 0
        np.testing.assert_array_equal(whole[start:start + size], x * y)
        assert np.isnan(whole[:start]).all()
        assert np.isnan(whole[start + size:]).all()


def test_only_large_results_of_cheap_programs_go_past_the_caches():
    large, small = Operand.contiguous(F, (1 << 22,)), Operand.contiguous(F, (1 << 18,))
    for operand, scalar, streams in ((large, "square", False), (small, "square", False), (large, "tanh", False)):
        problem = Problem(Elementwise(scalar), (operand,), (operand,))
        assert ("_stream" in C_KERNEL.build(problem, TARGET).name) is streams
    problem = Problem(Elementwise("mul"), (large, large), (large,))
    assert "_stream" in C_KERNEL.build(problem, TARGET).name
