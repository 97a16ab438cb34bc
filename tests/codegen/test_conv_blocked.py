"""Convolution kernels on blocks of channels against loops over the kernel's elements in float64: corner shapes, epilogues."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import expected, operands
from kernel_runner import make_problem, run_kernel

from symconv.codegen.conv_blocked import ConvBlocked
from symconv.codegen.conv_depthwise_blocked import ConvDepthwiseBlocked
from symconv.codegen.conv_winograd import ConvWinograd
from symconv.codegen.implementation import Implementation
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import Layout, array_from_blocked, array_to_blocked
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.target import Target

DENSE = """
    n1 c8 h1 w1 k8 r1 s1 nchw8c
    n2 c8 h9 w9 k16 r3 s3 p1 nchw8c
    n2 c16 h9 w9 k24 r1 s1 nchw8c
    n1 c8 h30 w40 k8 r1 s1 nchw8c
    n1 c328 h7 w7 k40 r1 s1 nchw8c
    n1 c128 h13 w14 k24 r3 s3 p1 nchw8c
    n2 c3 h19 w23 k16 r3 s3 u2 p1 nchw>nchw8c
    n1 c1 h19 w23 k24 r3 s3 p0:2x1:0 nchw>nchw8c
    n1 c24 h9 w8 k8 r1 s1 nchw>nchw8c
    n2 c16 h19 w23 k16 r5 s3 u2x3 p1x2 l2 flip nchw8c
    n2 c16 h19 w23 k16 r2 s3 u2 nchw8c
    n2 c32 h12 w12 k48 r3 s3 p1 g2 nchw8c
    n1 c6 h12 w12 k16 r3 s3 p1 g2 nchw>nchw8c
    n1 c16 h9 w9 k16 r1 s1 u2 nchw8c
    n1 c16 h9 w9 k16 r1 s1 u3 p1 nchw8c
    n2 c8 w1400 k16 s3 p4 l4 ncw8c
    n1 c8 w20 k16 s9 p20 flip ncw8c
    n1 c8 d4 h9 w9 k16 t3 r3 s3 p1 ncdhw8c
    n1 c8 d6 h9 w9 k16 t3 r3 s3 l2x1x1 u1x2x1 ncdhw8c
    n1 c8 d7 h9 w9 k8 t2 r3 s1 l3x1x1 u2x1x1 p1x1x0 ncdhw8c
    n0 c8 h9 w9 k8 r3 s3 p1 nchw8c
    n1 c0 h9 w9 k8 r3 s3 p1 nchw>nchw8c
""".strip().splitlines()
DEPTHWISE = """
    n1 c8 h1 w1 k8 r3 s3 p1 g8 nchw8c
    n2 c16 h9 w9 k16 r3 s3 p1 g16 nchw8c
    n2 c16 h19 w17 k16 r3 s3 u2 p1 g16 nchw8c
    n1 c8 h40 w120 k8 r3 s3 p1 g8 nchw8c
    n2 c8 h19 w17 k8 r5 s4 u1x2 l2x1 g8 flip nchw8c
    n1 c8 h9 w6 k8 r3 s3 p3:5x4:3 g8 nchw8c
    n2 c8 d5 h9 w7 k8 t3 r3 s3 p1 g8 ncdhw8c
    n2 c8 d7 h9 w7 k8 t2 r3 s3 l2 u2 g8 ncdhw8c
    n2 c8 w70 k8 s7 p3 g8 ncw8c
    n0 c8 h9 w9 k8 r3 s3 p1 g8 nchw8c
""".strip().splitlines()
WINOGRAD = """
    n2 c8 h9 w9 k16 r3 s3 p1 nchw8c
    n2 c64 h30 w41 k24 r3 s3 p1 nchw8c
    n1 c24 h13 w29 k40 r3 s3 p0:2x1:0 flip nchw8c
    n2 c32 h5 w70 k16 r3 s3 p2 g2 nchw8c
    n1 c72 h7 w7 k8 r3 s3 nchw8c
    n1 c8 h1 w1 k8 r3 s3 p1 nchw8c
    n0 c8 h9 w9 k8 r3 s3 p1 nchw8c
""".strip().splitlines()
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}  # of the sum of the magnitudes of the terms


F32 = "float32"
CLIPPED_RESIDUAL = Epilogue(ScalarProgram((F32,) * 3, (
    Instruction("add", (0, 1), F32), Instruction("constant", (), F32, 0.0), Instruction("constant", (), F32, 6.0),
    Instruction("clip", (3, 4, 5), F32), Instruction("add", (6, 2), F32)), (7,)), ("channel", "full"))


def _implementation(conv: ConvProblem) -> Implementation:
    return ConvDepthwiseBlocked() if conv.spec.groups == conv.x_shape[1] > 1 else ConvBlocked()


def _check(text: str, threads: int, vector_bytes: int = 32, epilogue: Epilogue | None = None,
           implementation: Implementation | None = None) -> None:
    conv = ConvProblem.parse(f"fprop {text}")
    assert conv.layout is not None
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    extra = []
    if epilogue is not None:
        rng = np.random.default_rng(1)
        bias, residual = (rng.standard_normal(shape).astype(conv.dtype) for shape in (wanted.shape[1:2], wanted.shape))
        extra = [bias, np.ascontiguousarray(array_to_blocked(residual, conv.layout.y))]
        along = bias.reshape(-1, *[1] * conv.spec.ndim)
        wanted, magnitude = np.clip(wanted + along, 0, 6) + residual, magnitude + abs(along) + abs(residual)
    image = np.ascontiguousarray(array_to_blocked(x, conv.layout.x))
    op = Conv(conv.kind, conv.spec, epilogue, layout=conv.layout)
    (found,) = run_kernel(implementation or _implementation(conv), op, image, w, *extra, threads=threads,
                          target=Target(threads=threads, vector_bytes=vector_bytes))
    found = array_from_blocked(found, conv.layout.y)
    assert (found.dtype, found.shape) == (conv.dtype, wanted.shape)
    if implementation is not None:  # Winograd: a tile's errors are those of its largest pixel
        magnitude = magnitude.max(initial=0)
    assert (abs(found - wanted) <= TOLERANCE[conv.dtype] * (magnitude + 1e-6)).all()


@pytest.mark.parametrize("text", DENSE + DEPTHWISE)
def test_float32(text: str) -> None:
    head, layout = text.strip().rsplit(" ", 1)
    for threads in (1, 2):
        _check(f"{head} f32 {layout}", threads)


@pytest.mark.parametrize("text", DENSE[::3] + DEPTHWISE[::3])
def test_float64_has_blocks_of_four(text: str) -> None:
    head, layout = text.strip().replace("8c", "4c").rsplit(" ", 1)
    _check(f"{head} f64 {layout}", 2)


@pytest.mark.parametrize("text", [DENSE[1], DENSE[6], DEPTHWISE[1]])
def test_narrow_vectors_have_narrow_blocks(text: str) -> None:
    head, layout = text.strip().replace("8c", "4c").rsplit(" ", 1)
    _check(f"{head} f32 {layout}", 2, vector_bytes=16)


@pytest.mark.parametrize("text", [DENSE[1], DENSE[2], DENSE[6], DENSE[17], DEPTHWISE[1], DEPTHWISE[6]])
def test_epilogue(text: str) -> None:
    head, layout = text.strip().rsplit(" ", 1)
    _check(f"{head} f32 {layout}", 2, epilogue=CLIPPED_RESIDUAL)


@pytest.mark.parametrize("text", WINOGRAD)
@pytest.mark.parametrize("results", [2, 4])
def test_winograd(text: str, results: int) -> None:
    head, layout = text.strip().rsplit(" ", 1)
    for threads in (1, 2):
        _check(f"{head} f32 {layout}", threads, implementation=ConvWinograd(results, 1))


@pytest.mark.parametrize("text", WINOGRAD[1:4])
def test_winograd_epilogue(text: str) -> None:
    head, layout = text.strip().rsplit(" ", 1)
    _check(f"{head} f32 {layout}", 2, epilogue=CLIPPED_RESIDUAL, implementation=ConvWinograd(4, 1))


@pytest.mark.parametrize(("text", "layout", "reason"), [
    ("n1 c8 h9 w9 k16 r3 s3 f32", None, "takes tensors in blocks"),
    ("n1 c16 h9 w9 k16 r3 s3 f32", Layout(16, 16), "blocks of 8 channels"),
    ("n1 c16 h9 w9 k8 r3 s3 g4 f32", Layout(8, 8), "4 channels to 2 in a group"),
])
def test_refusals(text: str, layout: Layout | None, reason: str) -> None:
    conv = ConvProblem.parse(f"fprop {text}")
    x, w, _ = operands(conv)
    image = array_to_blocked(x, layout.x if layout else 0)
    problem = make_problem(Conv(conv.kind, conv.spec, layout=layout), np.ascontiguousarray(image), w)
    assert reason in str(ConvBlocked().refuse(problem, Target(vector_bytes=32)))
    assert ConvDepthwiseBlocked().refuse(problem, Target(vector_bytes=32)) is not None
