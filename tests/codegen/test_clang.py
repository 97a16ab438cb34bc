"""Kernels built by Clang, which cuts parallel loops in another way than GCC. On Debian: apt install clang libomp-dev"""
from __future__ import annotations

import shutil

import numpy as np
import pytest
from conv_oracle import TOLERANCE, expected, op_and_inputs, operands
from kernel_runner import make_problem, run_kernel

import symconv as sc
import symconv.tensor as T
from symconv.codegen.compiler import find_compiler
from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.config import config
from symconv.ops.conv_problem import ConvProblem
from symconv.target import Target

pytestmark = pytest.mark.skipif(shutil.which("clang") is None, reason="Clang is not installed")
PROBLEMS = [f"{kind} {sizes}" for kind in ("fprop", "dgrad", "wgrad") for sizes in (
    "n2 c16 h9 w13 k32 r3 s3 p1 f32", "n2 c6 h13 w20 k6 r3 s3 u2 p1 g6 f32")] + ["fprop n1 c9 w90 k8 s31 p0:30 flip f64"]


@pytest.fixture(autouse=True)
def clang():
    with config.change(compiler="clang"):
        found = find_compiler()
        assert found is not None
        assert "clang" in found.version
        yield found


@pytest.mark.parametrize("text", PROBLEMS)
def test_convolutions(text):
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv))
    wanted, magnitude = expected(conv, *operands(conv))
    asked = [each for each in CONV_IMPLEMENTATIONS if each.refuse(make_problem(op, *inputs), Target(threads=2)) is None]
    assert asked
    for implementation in asked:
        (found,) = run_kernel(implementation, op, *inputs, threads=2)
        bound = magnitude.max(initial=0) if "fft" in implementation.name else magnitude
        factor = 4 if "winograd" in implementation.name else 1
        assert (np.abs(found - wanted) <= factor * TOLERANCE[conv.dtype] * bound).all(), implementation.name


def test_a_training_step():
    """A convolution, a pool, a softmax and their gradients, against the interpreter of references."""
    rng = np.random.default_rng(0)
    x, w, v = T.tensor4("x"), T.tensor4("w"), T.matrix("v")
    hidden = T.nnet.relu(T.nnet.conv2d(x, w))
    pooled = T.nnet.max_pool_2d(hidden, (2, 2))
    cost = -T.log(T.nnet.softmax(T.dot(pooled.flatten(2), v)))[:, 0].mean()
    outputs = [cost, *T.grad(cost, [w, v])]
    values = [rng.standard_normal(shape).astype("float32") for shape in ((3, 2, 8, 8), (5, 2, 3, 3), (5 * 3 * 3, 4))]
    found = sc.compile([x, w, v], outputs)(*values)
    wanted = sc.compile([x, w, v], outputs, mode="reference")(*values)
    for ours, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, right, rtol=2e-4, atol=2e-5)


def test_it_keeps_its_own_threads(clang):
    """The pool is made for the calls that GCC makes of parallel loops."""
    assert not clang.has_pool
