"""Reductions in C against NumPy in float64 or Python's integers, over all axes, strides and dtypes."""
from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from kernel_runner import run_kernel

from symconv import dtypes
from symconv.codegen import row_prefetch
from symconv.codegen.kernel import Operand, Problem
from symconv.codegen.reductions import GeneratedArgReduction, GeneratedReduction
from symconv.ops.reductions import ArgReduce, Reduce, sum_dtype
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

C_KERNEL, C_SEARCH = GeneratedReduction(), GeneratedArgReduction()


def random_array(rng, shape, dtype="float32"):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtypes.is_integer(dtype):
        return rng.integers(0 if dtypes.kind(dtype) == "u" else -100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def reduce_op(kind, axes, dtype, keepdims=False, prologue=None):
    result = sum_dtype(dtype) if kind in ("sum", "prod") else "bool" if kind in ("any", "all") else dtype
    return Reduce(kind, tuple(axes), keepdims, result, prologue)


def check_sum(x, axes, threads=2):
    (result,) = run_kernel(C_KERNEL, reduce_op("sum", axes, "float32"), x, threads=threads)
    exact = x.astype(np.float64).sum(axis=tuple(axes))
    sizes = np.abs(x.astype(np.float64)).sum(axis=tuple(axes))
    np.testing.assert_allclose(result, exact, rtol=1e-6, atol=1e-7 * sizes.max(initial=1))


@pytest.mark.parametrize("shape", [(4, 5), (3, 70, 9), (2, 3, 4, 90)])
def test_sums_over_all_sets_of_axes(shape):
    x = random_array(np.random.default_rng(0), shape)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            check_sum(x, axes)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (4, 0), (), (1,), (1, 1)])
def test_empty_and_single(shape):
    x = random_array(np.random.default_rng(0), shape)
    for count in range(len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            for kind, function in (("sum", np.sum), ("prod", np.prod)):
                (result,) = run_kernel(C_KERNEL, reduce_op(kind, axes, "float32"), x)
                np.testing.assert_array_equal(result, function(x, axis=axes))


def test_strided_inputs():
    """Transposed, sliced, reversed and repeated arrays are read where they lie."""
    rng = np.random.default_rng(1)
    whole = random_array(rng, (12, 40, 30))
    views = [whole.transpose(2, 0, 1), whole[::2, ::-1, 3:17], whole[:, :, ::-3].transpose(1, 0, 2),
             np.broadcast_to(whole[:, :1, :], (12, 8, 30)), whole[3, 4:5, :1], whole[::2, 3, ::-2]]
    for number, view in enumerate(views):
        for axes in ((0, 1, 2), (number % 3,), tuple({0, 1, 2} - {number % 3})):
            check_sum(view, axes if view.ndim == 3 else (0,))


@pytest.mark.parametrize("dtype", [name for name in dtypes.DTYPES if name != "bfloat16"])
def test_all_kinds_and_dtypes(dtype):
    rng = np.random.default_rng(2)
    x = random_array(rng, (3, 130, 5), dtype)
    for kind in ("sum", "prod", "max", "min", "any", "all"):
        if kind in ("any", "all") and dtype != "bool":
            continue
        for axes in ((1,), (0, 1, 2)):
            op = reduce_op(kind, axes, dtype, keepdims=True)
            (result,) = run_kernel(C_KERNEL, op, x)
            with np.errstate(all="ignore"):
                wide = x.astype(np.float64) if dtypes.is_float(dtype) else x
                exact = getattr(np, kind)(wide, axis=axes, keepdims=True).astype(op.dtype)
            tolerance = 1e-2 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(result, exact, rtol=tolerance, atol=tolerance, err_msg=f"{kind} over {axes}")


def test_nan_wins_and_infinities_stay():
    rng = np.random.default_rng(3)
    x = random_array(rng, (6, 200))
    x[0, 150], x[1, 3], x[2, 7], x[3] = np.nan, np.inf, -np.inf, -np.inf
    for axes in ((0,), (1,), (0, 1)):
        for kind in ("max", "min"):
            (result,) = run_kernel(C_KERNEL, reduce_op(kind, axes, "float32"), x)
            np.testing.assert_array_equal(result, getattr(np, kind)(x, axis=axes))


def test_large_sums_are_accurate_and_do_not_depend_on_threads():
    """Sums of 3 million values near 1: a plain float32 loop would be off by thousands."""
    x = (1 + np.random.default_rng(4).random(3_000_000)).astype(np.float32)
    for array, axes in ((x, (0,)), (x.reshape(1000, 3000), (0,)), (x.reshape(3000, 1000), (1,)), (x.reshape(3, -1), (1,)),
                        (x.reshape(-1, 4), (0,))):
        op = reduce_op("sum", axes, "float32")
        one, two = (run_kernel(C_KERNEL, op, array, threads=threads)[0] for threads in (1, 2))
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, array.astype(np.float64).sum(axis=axes), rtol=1e-7)


def test_prologue_with_broadcast_inputs():
    """A variance: the sum of (x - mean)², the mean repeated along the reduced axes."""
    rng = np.random.default_rng(5)
    body = (Instruction("sub", (0, 1), "float32"), Instruction("square", (2,), "float32"))
    program = ScalarProgram(("float32", "float32"), body, (3,))
    x = random_array(rng, (4, 6, 50))
    for axes in ((0, 2), (1,), (2,)):
        mean = x.mean(axis=axes, keepdims=True)
        (result,) = run_kernel(C_KERNEL, reduce_op("sum", axes, "float32", prologue=program), x, mean)
        exact = ((x.astype(np.float64) - mean.astype(np.float64)) ** 2).sum(axis=axes)
        np.testing.assert_allclose(result, exact, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint64", "bool", "float16"])
def test_positions(dtype):
    rng = np.random.default_rng(6)
    x = random_array(rng, (5, 70, 80), dtype)
    if dtypes.is_float(dtype):
        x[1, 3, 4] = x[1, 5, 4] = np.nan
        x[2] = -np.inf
    for array, axes in ((x, (0, 1, 2)), (x[::-1, ::2, ::-3].transpose(1, 2, 0), (1,))):
        for axis in axes:
            for kind in ("argmax", "argmin"):
                (result,) = run_kernel(C_SEARCH, ArgReduce(kind, axis), array)
                np.testing.assert_array_equal(result, getattr(np, kind)(array, axis=axis), err_msg=f"{kind} {axis}")


def test_position_in_a_vector():
    (result,) = run_kernel(C_SEARCH, ArgReduce("argmax", 0), np.array([1.0, 5.0, 5.0, -3.0]))
    assert result.shape == ()
    assert result == 1


@pytest.mark.parametrize("shape", [(3, 5, 12545), (9, 4, 197), (2, 3, 16), (1, 4, 300), (5, 1, 4097)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_memory_asked_for_ahead_changes_no_bit(shape, dtype, monkeypatch):
    x = random_array(np.random.default_rng(3), shape, dtype)
    op = reduce_op("sum", (0, 2), dtype)
    (plain,) = run_kernel(C_KERNEL, op, x)
    monkeypatch.setattr(row_prefetch, "CACHED_BYTES", 0)
    (ahead,) = run_kernel(C_KERNEL, op, x)
    np.testing.assert_array_equal(ahead, plain)
    exact = x.astype(np.float64).sum((0, 2))
    np.testing.assert_allclose(ahead, exact, rtol=1e-6, atol=1e-7 * np.abs(x.astype(np.float64)).sum((0, 2)).max())


def test_memory_is_asked_for_where_one_large_input_is_read_row_by_row():
    def kernel(op, *shapes):
        inputs = tuple(Operand.contiguous("float32", shape) for shape in shapes)
        kept = tuple(size for axis, size in enumerate(shapes[0]) if axis not in op.axes)
        return C_KERNEL.build(Problem(op, inputs, (Operand.contiguous("float32", kept),)), Target())

    def asked_bytes(found):
        names = re.findall(r"const int64_t (\w+) = sizes\[\d+\]", found.source)
        return dict(zip(names, found.sizes, strict=True)).get("piece") if "sc_prefetch_later(" in found.source else None

    rows = reduce_op("sum", (0, 2), "float32")
    assert asked_bytes(kernel(rows, (8, 144, 3136))) == 13 << 10
    assert asked_bytes(kernel(rows, (80, 144, 3136))) == 13 << 10
    assert asked_bytes(kernel(rows, (8, 144, 784))) == 0  # caches may hold it
    assert kernel(rows, (8, 144, 784)).source == kernel(rows, (8, 144, 3136)).source
    product = ScalarProgram(("float32", "float32"), (Instruction("mul", (0, 1), "float32"),), (2,))
    two = reduce_op("sum", (0, 2), "float32", prologue=product)
    assert asked_bytes(kernel(two, (8, 144, 3136), (8, 144, 3136))) is None
    assert asked_bytes(kernel(two, (8, 144, 3136), (1, 144, 1))) == 13 << 10  # the second is one number for each result
    assert asked_bytes(kernel(reduce_op("sum", (2,), "float32"), (8, 144, 3136))) is None  # one row behind the other
