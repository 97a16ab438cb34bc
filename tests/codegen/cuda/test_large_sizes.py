"""Tensors of more than 2^31 elements, as plans only: grids within CUDA's limits, numbers within their types, 64-bit places."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_resources import Case

from symconv.codegen.cuda.lists import cuda_table
from symconv.codegen.kernel import Problem
from symconv.ops.basic_indexing import INPUT, IncSubtensor, Slice, Subtensor
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.creation import ARange, Eye
from symconv.ops.elementwise import Elementwise
from symconv.ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from symconv.ops.joining import Concatenate
from symconv.ops.layout import blocked_shape
from symconv.ops.linalg import MatMul
from symconv.ops.padding import Pad
from symconv.ops.pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from symconv.ops.random import Random
from symconv.ops.reductions import ArgReduce, Reduce
from symconv.ops.softmax import LogSoftmax, Softmax, SoftmaxGrad
from symconv.ops.spec import Kind
from symconv.target import Target

TARGET = Target("cuda", arch=90)
LIMITS = {"int32": (-2**31, 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-2**63, 2**63 - 1), "uint64": (0, 2**64 - 1)}
ROWS, COLUMNS = 3 * 2**15, 2**15


def lazy(*shape: int, dtype: str = "float32"):
    """An array of any size that takes no memory."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def convolution(text: str) -> Case:
    conv = ConvProblem.parse(text)
    shapes = {"x": conv.x_shape, "w": conv.w_shape, "y": conv.y_shape}
    tensors = [lazy(*blocked_shape(shapes[role], conv.layout.block(role) if conv.layout else 0), dtype=conv.dtype)
               for role in conv.kind.reads]
    sizes = [] if conv.kind is Kind.FPROP else [np.array(conv.result_shape)]
    return Case(Conv(conv.kind, conv.spec, layout=conv.layout), (*tensors, *sizes))


X, TALL, WIDE, INDEX = lazy(ROWS, COLUMNS), lazy(3 * 2**30, 2), lazy(2, 3 * 2**30), lazy(ROWS, dtype="int64")
IMAGE, POOLED = lazy(3 * 2**14, 64, 32, 32), lazy(3 * 2**14, 64, 16, 16)
POOL = Pool("max", (2, 2), (2, 2), (0, 0), (0, 0), True)
TURNED = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (COLUMNS, ROWS), (4, 4 * COLUMNS))
CASES = {
    "elementwise": Case(Elementwise("exp", "float32"), (X,)),
    "elementwise, broadcast": Case(Elementwise("add", "float32"), (TALL, lazy(1, 2))),
    "elementwise, transposed": Case(Elementwise("add", "float32"), (TURNED, lazy(COLUMNS, ROWS))),
    **{f"reduction of {name} along {axes}": Case(Reduce("sum", axes, False, "float32"), (array,))
       for name, array in (("square", X), ("tall", TALL), ("wide", WIDE)) for axes in ((0,), (1,), (0, 1))},
    **{f"argmax of {name} along {axis}": Case(ArgReduce("argmax", axis), (array,))
       for name, array in (("square", X), ("tall", TALL), ("wide", WIDE)) for axis in (0, 1)},
    **{f"{op.__name__} of {name} along {axis}": Case(op(axis), (array,) * count)
       for op, count in ((Softmax, 1), (LogSoftmax, 1), (SoftmaxGrad, 2)) for name, array in (("tall", TALL), ("wide", WIDE))
       for axis in (0, 1)},
    "matrix product with many columns": Case(MatMul(), (lazy(3, 2), WIDE)),
    "matrix product with many rows": Case(MatMul(), (TALL, lazy(2, 3))),
    "matrix product with many rows on tensor cores":
        Case(MatMul(), (lazy(3 * 2**30, 8, dtype="float16"), lazy(8, 8, dtype="float16"))),
    "many matrix products": Case(MatMul(), (lazy(2**28, 4, 3), lazy(2**28, 3, 4))),
    "pool": Case(POOL, (IMAGE,)), "pool's gradient": Case(MaxPoolGrad(POOL), (IMAGE, POOLED)),
    "pool's choice": Case(MaxPoolGather(POOL), (IMAGE, IMAGE)),
    "average's gradient": Case(AveragePoolGrad(Pool("sum", *((2, 2),) * 2, *((0, 0),) * 2, True), IMAGE.shape),
                               (POOLED, np.array(IMAGE.shape))),
    "gather": Case(Gather(1), (X, INDEX)), "scatter add": Case(ScatterAdd(1), (X, X, INDEX)),
    "scatter set": Case(ScatterSet(1), (X, X, INDEX)),
    "region": Case(Subtensor((Slice(INPUT, INPUT), Slice(None, None))), (X, np.array(3), np.array(ROWS))),
    "change of a region": Case(IncSubtensor((Slice(INPUT, INPUT), Slice(None, None)), "add"),
                               (X, lazy(ROWS - 3, COLUMNS), np.array(3), np.array(ROWS))),
    "concatenation": Case(Concatenate(1), (X, X)), "padding": Case(Pad((1, 0), (2, 3)), (X, lazy())),
    "arange": Case(ARange("float32"), (np.array(0.0), np.array(3.0 * 2**30), np.array(1.0))),
    "eye": Case(Eye("float32"), (np.array(ROWS), np.array(COLUMNS), np.array(0))),
    "random": Case(Random("normal", "float32", (None,)), (np.array([1, 2], np.uint64), np.array([3 * 2**30]))),
}
CONVOLUTIONS = ["n70000 c64 h32 w32 k64 r3 s3 p1 f32", "n70000 c64 h32 w32 k64 r3 s3 p1 g64 f32",
                "n700000 c3 h64 w64 k16 r3 s3 u2 p1 f32", "n70000 c64 h32 w32 k64 r3 s3 p1 f16 nhwc",
                "n70000 c64 h32 w32 k64 r3 s3 p1 g64 f16 nhwc"]


def launches(problem: Problem):
    """Every launch of every generated kernel that takes the problem (cuDNN's are not generated)."""
    for implementation in cuda_table()[type(problem.op)]:
        is_meant = implementation.serves(problem.op) and "dnn" not in implementation.name
        if is_meant and implementation.refuse(problem, TARGET) is None:
            yield from implementation.build(problem, TARGET).launches


def check(problem: Problem) -> list:
    """That there is a kernel, and that its numbers are what their types hold; grids check themselves."""
    found = list(launches(problem))
    assert found, "no generated kernel takes it"
    for launch in found:
        for scalar in launch.scalars:
            low, high = LIMITS.get(scalar.type, (-np.inf, np.inf))
            assert low <= scalar.value <= high, f"{launch.name}: {scalar}"
    return found


@pytest.mark.parametrize("name", CASES)
def test_places_are_counted_in_64_bits(name):
    for launch in check(CASES[name].problem):
        types = {scalar.type for scalar in launch.scalars}
        assert "int64" in types, f"{launch.name} counts in {types}"


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("text", CONVOLUTIONS)
def test_convolutions(text, kind):
    for launch in check(convolution(f"{kind} {text}").problem):
        assert "int64_t" in launch.source


def test_a_small_problem_would_fail_the_check():
    """Few elements are counted in 32 bits: the check sees the difference."""
    small = Case(Elementwise("exp", "float32"), (lazy(64, 32),)).problem
    assert {scalar.type for launch in launches(small) for scalar in launch.scalars} == {"int32"}
