"""Kernels of every family on processors that this machine is not: 64-bit and 32-bit ARM in emulation, x86-64 without AVX."""
from __future__ import annotations

from functools import partial

import kernel_runner
import numpy as np
import pytest
from conv_oracle import TOLERANCE, expected, op_and_inputs, operands
from foreign_machines import MACHINES, ForeignRunner
from kernel_runner import make_problem, run_kernel

from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.codegen.lists import implementations
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.elementwise import Elementwise
from symconv.ops.linalg import MatMul
from symconv.ops.reductions import Reduce

SIZES = """
    n2 c3 h9 w11 k5 r3 s3 p1 f32
    n2 c9 h9 w11 k13 r3 s3 p1 f32
    n2 c40 h7 w7 k30 r3 s3 p1 f32
    n2 c6 h13 w20 k6 r3 s3 u2 p1 g6 f32
    n2 c20 h12 w12 k50 r5 s5 f32
    n3 c7 h5 w4 k13 r1 s1 f32
    n1 c6 h17 w13 k9 r2 s3 u2x3 p1x0:2 g3 f32
    n1 c17 w90 k19 s64 p0:63 flip f64
    n2 c16 h14 w14 k32 r3 s3 p1 f32
    n2 c32 h7 w7 k64 r3 s3 p1 f32
""".strip().splitlines()
PROBLEMS = [ConvProblem.parse(f"{kind} {sizes.strip()}") for kind in ("fprop", "dgrad", "wgrad") for sizes in SIZES]
EMPTY = ConvProblem.parse("wgrad n0 c3 h8 w8 k4 r3 s3 p1 f32")


def taking(asked, op, inputs, runner):
    """Those of some implementations that take the problem on the machine."""
    return [each for each in asked if each.refuse(make_problem(op, *inputs), runner.machine.target) is None]


@pytest.fixture(scope="module", params=MACHINES, ids=lambda machine: machine.name)
def runner(request, tmp_path_factory):
    if request.param.missing:
        pytest.skip(f"not here: {request.param.missing}")
    return ForeignRunner(request.param, tmp_path_factory.mktemp(request.param.name))


@pytest.fixture
def run(runner, monkeypatch):
    """`run_kernel` on the machine."""
    monkeypatch.setattr(kernel_runner, "call_kernel", runner)
    return partial(run_kernel, target=runner.machine.target)


@pytest.mark.parametrize("name", [each.name for each in CONV_IMPLEMENTATIONS if "blocked" not in each.name])
def test_convolutions(run, runner, name):
    """Each implementation on the first problem of each kind that it takes."""
    implementation = next(each for each in CONV_IMPLEMENTATIONS if each.name == name)
    kinds = set()
    for conv in PROBLEMS:
        op, inputs = op_and_inputs(conv, *operands(conv))
        if conv.kind in kinds or implementation.refuse(make_problem(op, *inputs), runner.machine.target) is not None:
            continue
        kinds.add(conv.kind)
        wanted, magnitude = expected(conv, *operands(conv))
        (found,) = run(implementation, op, *inputs)
        bound = magnitude.max(initial=0) if "fft" in name else magnitude
        assert (np.abs(found - wanted) <= TOLERANCE[conv.dtype] * (4 if "winograd" in name else 1) * bound).all(), str(conv)
    assert kinds, "it takes none of the problems"


def test_a_convolution_of_an_empty_batch_and_of_inputs_that_lie_oddly(run, runner):
    op, inputs = op_and_inputs(EMPTY, *operands(EMPTY))
    for implementation in taking(CONV_IMPLEMENTATIONS, op, inputs, runner):
        assert not run(implementation, op, *inputs)[0].any(), implementation.name
    conv = PROBLEMS[0]
    op, (x, w) = op_and_inputs(conv, *operands(conv))
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    wide[::-1, ..., ::2] = x
    wanted, magnitude = expected(conv, *operands(conv))
    for implementation in taking(CONV_IMPLEMENTATIONS, op, [x, w], runner):
        (found,) = run(implementation, op, wide[::-1, ..., ::2], w)
        assert (np.abs(found - wanted) <= 4 * TOLERANCE["float32"] * magnitude).all(), implementation.name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_and_sums(run, runner, dtype):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((37, 70)).astype(dtype), rng.standard_normal((70, 45)).astype(dtype)
    tolerance = {"float32": 2e-5, "float64": 1e-12}[dtype]
    for left, right in ((a, b), (a, b[:, :1]), (a[:1], b)):
        asked = taking(implementations(MatMul, "cpu"), MatMul(), [left, right], runner)
        assert asked
        for implementation in asked:
            (found,) = run(implementation, MatMul(), left, right)
            np.testing.assert_allclose(found, left.astype(float) @ right.astype(float), rtol=tolerance, atol=tolerance)
    (total,) = run(implementations(Reduce, "cpu")[0], Reduce("sum", (1,), False, dtype), a)
    np.testing.assert_allclose(total, a.astype(float).sum(1), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "oracle"), [("exp", np.exp), ("log", np.log), ("tanh", np.tanh), ("log1p", np.log1p)])
def test_functions_of_floats(run, name, oracle):
    x = np.concatenate([np.linspace(1e-6, 50, 5001), [1e-40, 1e30, np.inf, np.nan, 0.0]]).astype(np.float32)
    (found,) = run(implementations(Elementwise, "cpu")[0], Elementwise(name, "float32"), x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, oracle(x.astype(np.float64)).astype(np.float32), rtol=3e-6, atol=1e-37)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32"])
def test_whole_numbers_wrap(run, dtype):
    x = np.array([0, 1, 7, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    y = np.array([3, 200 % 128, 5, 1, 2], dtype)
    with np.errstate(over="ignore"):
        for name, wanted in (("add", x + y), ("mul", x * y), ("floor_div", x // y), ("mod", x % y)):
            (found,) = run(implementations(Elementwise, "cpu")[0], Elementwise(name, dtype), x, y)
            np.testing.assert_array_equal(found, wanted, err_msg=name)
