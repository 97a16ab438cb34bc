"""Convolution by Fourier transforms: the transforms against NumPy's, the kernels against loops in float64, their errors' bound."""
from __future__ import annotations

import numpy as np
import pytest
from conv_oracle import check_elements, expected, op_and_inputs, operands
from kernel_runner import make_problem, run_kernel

import symconv as sc
import symconv.tensor as T
from symconv.codegen import conv_fft_plan
from symconv.codegen.conv_direct import ConvDirect
from symconv.codegen.conv_fft import ConvFft, ConvWgradFft
from symconv.codegen.conv_wgrad import ConvWgrad
from symconv.codegen.fft_plan import frequencies, half_spectrum, make_transform
from symconv.config import config
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind
from symconv.target import Target
from symconv.tensor import nnet


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32, 128, 1024])
def test_places_of_frequencies(size: int) -> None:
    """Passes of four and two in Python, in place, against NumPy's transform."""
    x = np.random.default_rng(size).standard_normal(size) + 0j
    wanted = np.fft.fft(x)
    for each in make_transform(size).passes:
        root = np.exp(-2j * np.pi * each.turns / size)
        for block in range(0, size, each.length):
            for j in range(each.part):
                places = [block + j + number * each.part for number in range(each.radix)]
                powers = np.exp(-2j * np.pi * np.outer(range(each.radix), range(each.radix)) / each.radix)
                x[places] = (powers @ x[places]) * root ** (j * np.arange(each.radix))
    np.testing.assert_allclose(x, wanted[frequencies(size)], atol=1e-9)


@pytest.mark.parametrize(("down", "across"), [(1, 16), (8, 16), (16, 32)])
def test_half_of_the_spectrum_says_all(down: int, across: int) -> None:
    spectrum = np.fft.fft2(np.random.default_rng(0).standard_normal((down, across)))
    lines, columns, pitch = frequencies(down), frequencies(across), across + 1
    held = {i * pitch + j: spectrum[f, g] for i, f in enumerate(lines) for j, g in enumerate(columns)}
    pairs = half_spectrum(down, across, pitch)
    assert {place for pair in pairs for place in pair} == set(held)
    assert len(pairs) == down * (across // 2 + 1)
    for place, conjugate in pairs:
        np.testing.assert_allclose(held[conjugate], np.conj(held[place]), atol=1e-12)


def check(conv: ConvProblem, target: Target) -> None:
    check_elements(ConvWgradFft() if conv.kind is Kind.WGRAD else ConvFft(), conv, target)


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("sizes", ["n2 c19 w70 k9 s21 p3", "n1 c3 w400 k20 s129 p64", "n2 c16 h9 w31 k17 r5 s5 p2 flip",
                                   "n1 c40 h40 w33 k24 r13 s11 p6x0:5", "n1 c8 h70 w3 k8 r33 s1 p16x0", "n4 c1 w60 k1 s25 p12"])
@pytest.mark.parametrize("threads", [1, 2])
def test_against_loops(kind: str, sizes: str, threads: int) -> None:
    check(ConvProblem.parse(f"{kind} {sizes} f32"), Target(threads=threads))


@pytest.mark.parametrize("vector_bytes", [16, 64])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_narrow_and_wide_vectors(vector_bytes: int, dtype: str) -> None:
    for kind in ("fprop", "dgrad", "wgrad"):
        conv = ConvProblem.parse(f"{kind} n2 c18 h12 w20 k11 r5 s7 p2x3 {dtype}")
        check(conv, Target(vector_bytes=vector_bytes, threads=2))


@pytest.mark.parametrize("chunk_bytes", [1, 40_000])
def test_tiles_in_chunks(chunk_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One tile at a time, and a last chunk that is not full."""
    monkeypatch.setattr(conv_fft_plan, "_CHUNK_BYTES", chunk_bytes)
    for kind in ("fprop", "wgrad"):
        check(ConvProblem.parse(f"{kind} n3 c9 w200 k10 s31 p15 f32"), Target(threads=2))


@pytest.mark.parametrize("sizes", ["n2 c64 w300 k32 s64 p32", "n2 c32 h24 w24 k32 r5 s5 p2", "n1 c8 h40 w40 k8 r15 s15 p7"])
@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
def test_errors_are_at_most_four_times_those_of_direct_sums(kind: str, sizes: str) -> None:
    conv = ConvProblem.parse(f"{kind} {sizes} f32")
    x, w, y = operands(conv)
    wanted, _ = expected(conv, x, w, y)
    op, inputs = op_and_inputs(conv, x, w, y)
    pair = (ConvWgradFft(), ConvWgrad()) if kind == "wgrad" else (ConvFft(), ConvDirect())
    errors = [float(abs(run_kernel(each, op, *inputs)[0] - wanted).max()) for each in pair]
    assert errors[0] <= 4 * errors[1], errors


def test_an_epilogue_and_gradients_through_a_compiled_function() -> None:
    """A 1-D network with long kernels: FPROP with bias and relu, DGRAD, a scaled WGRAD, against the references."""
    rng = np.random.default_rng(2)
    x = T.tensor("x", "float32", (2, 16, 300))
    w = sc.shared((rng.standard_normal((24, 16, 65)) / 32).astype("float32"), name="w", shape=(24, 16, 65))
    b = sc.shared(rng.standard_normal(24).astype("float32"), name="b", shape=(24,))
    h = nnet.relu(nnet.conv1d(x, w, border_mode="half") + b.dimshuffle("x", 0, "x"))
    gradients = sc.grad((h * h).sum(), [x, w])
    outputs = [h, gradients[0], gradients[1] * 0.5]
    image = rng.standard_normal((2, 16, 300)).astype("float32")
    with config.change(conv__implementation="conv_fft"):
        function = sc.compile([x], outputs)
        found = function(image)
        assert function.explain().count("runs conv_fft") == 2
    with config.change(conv__implementation="conv_wgrad_fft"):
        function = sc.compile([x], outputs)
        found[2] = function(image)[2]
        assert function.explain().count("runs conv_wgrad_fft") == 1
    for result, wanted in zip(found, sc.compile([x], outputs, mode="reference")(image), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4 * float(abs(wanted).max()))


@pytest.mark.parametrize(("text", "reason"), [
    ("fprop n1 c4 h9 w9 k4 r3 s3 f32", "20 taps"), ("fprop n1 c4 w90 k4 s30 u2 f32", "no stride"),
    ("fprop n1 c8 w90 k8 s30 g8 f32", "too few"), ("fprop n1 c4 d9 h9 w9 k4 t3 r3 s3 f32", "one or two axes"),
    ("fprop n1 c4 w2000 k4 s1500 f32", "larger than its tiles"), ("fprop n1 c4 w90 k4 s30 p30 f32", "nothing but zeros"),
    ("fprop n1 c4 w90 k4 s30 f16", "float32 and float64")])
def test_refusals(text: str, reason: str) -> None:
    conv = ConvProblem.parse(text)
    x, w, y = (np.zeros(shape, conv.dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    op, inputs = op_and_inputs(conv, x, w, y)
    assert reason in str(ConvFft().refuse(make_problem(op, *inputs), Target()))


def test_the_setting_switches_it_off() -> None:
    conv = ConvProblem.parse("fprop n1 c4 w90 k4 s30 f32")
    op, inputs = op_and_inputs(conv, *operands(conv))
    with config.change(conv__fft="off"):
        assert ConvFft().refuse(make_problem(op, *inputs), Target()) == "the setting conv.fft is 'off'"
