"""Convolutions in float64 written out with loops over the kernel's elements: the oracle of the kernel tests, and their checks."""
from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from kernel_runner import run_kernel

from symconv.codegen.implementation import Implementation
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind
from symconv.target import Target

Array = np.ndarray[Any, Any]
TOLERANCE = {"float32": 3e-6, "float64": 1e-12}  # of the sum of the magnitudes of the terms
WINOGRAD_SIZES = """
    n1 c8 h1 w1 k8 p1
    n1 c8 h3 w2 k9 p1 flip
    n2 c9 h9 w11 k13 p1
    n1 c17 h5 w6 k15 p2
    n1 c13 h13 w7 k20 p0 flip
    n2 c9 h30 w37 k8 p0:1x2:0
    n2 c32 h9 w21 k16 p1 g2
    n0 c8 h8 w8 k8 p1
    n33 c8 h4 w3 k8 p1
""".strip().splitlines()


def operands(conv: ConvProblem, seed: int = 0) -> tuple[Array, Array, Array]:
    """Random x, w and y of the problem's dtype."""
    rng = np.random.default_rng(seed)
    shapes = (conv.x_shape, conv.w_shape, conv.y_shape)
    x, w, y = (rng.standard_normal(shape).astype(conv.dtype) for shape in shapes)
    return x, w, y


def op_and_inputs(conv: ConvProblem, x: Array, w: Array, y: Array, epilogue: Epilogue | None = None) -> tuple[Conv, list[Array]]:
    """The op of the problem, and its inputs before the epilogue's."""
    op = Conv(conv.kind, conv.spec, epilogue)
    if conv.kind is Kind.FPROP:
        return op, [x, w]
    if conv.kind is Kind.DGRAD:
        return op, [y, w, np.array(conv.x_shape, np.int64)]
    return op, [x, y, np.array(conv.w_shape, np.int64)]


def expected(conv: ConvProblem, x: Array, w: Array, y: Array) -> tuple[Array, Array]:
    """The result, and the sum of the magnitudes of its terms (what errors of rounding are measured against)."""
    x, w, y = (array.astype(np.float64) for array in (x, w, y))
    return _run(conv, x, w, y), _run(conv, abs(x), abs(w), abs(y))


def check_elements(implementation: Implementation, conv: ConvProblem, target: Target) -> None:
    """Each element of the result, within its dtype's tolerance of the magnitudes of its terms."""
    x, w, y = operands(conv)
    op, inputs = op_and_inputs(conv, x, w, y)
    wanted, magnitude = expected(conv, x, w, y)
    (found,) = run_kernel(implementation, op, *inputs, threads=target.threads, target=target)
    assert found.dtype == conv.dtype
    assert found.shape == wanted.shape
    wrong = ~(np.abs(found - wanted) <= TOLERANCE[conv.dtype] * magnitude)
    assert not wrong.any(), f"{conv}: {wrong.sum()} of {wrong.size} wrong, first {np.argwhere(wrong)[0]}"


def check_epilogue(implementation: Implementation, conv: ConvProblem) -> None:
    """An epilogue that scales each channel, adds a residual, and takes what is positive."""
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    body = (Instruction("mul", (0, 1), conv.dtype), Instruction("add", (3, 2), conv.dtype), Instruction("relu", (4,), conv.dtype))
    epilogue = Epilogue(ScalarProgram((conv.dtype,) * 3, body, (5,)), ("channel", "full"))
    rng = np.random.default_rng(5)
    scale, residual = (rng.standard_normal(shape).astype(conv.dtype) for shape in (wanted.shape[1], wanted.shape))
    along = scale.astype(np.float64).reshape(1, -1, *(1,) * (wanted.ndim - 2))
    op, inputs = op_and_inputs(conv, x, w, y, epilogue)
    (found,) = run_kernel(implementation, op, *inputs, scale, residual, threads=2)
    assert (np.abs(found - np.maximum(wanted * along + residual, 0)) <= 3e-6 * (magnitude * (1 + abs(along)) + 1)).all()


def check_threads(implementation: Implementation, conv: ConvProblem) -> None:
    """The same bits with one thread and with two."""
    op, inputs = op_and_inputs(conv, *operands(conv))
    one, two = (run_kernel(implementation, op, *inputs, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def winograd_problem(kind: str, sizes: str) -> ConvProblem:
    """A problem of float32 with 3x3 filters; `sizes` has what else there is to say."""
    return ConvProblem.parse(re.sub(r"( k\d+)", r"\1 r3 s3", f"{kind} {sizes.strip()} f32"))


def check_winograd(implementation: Implementation, conv: ConvProblem, target: Target, tolerance: float) -> Array:
    """The result, within `tolerance` of the largest sum of magnitudes: tiles share their errors."""
    x, w, y = operands(conv)
    op, inputs = op_and_inputs(conv, x, w, y)
    wanted, magnitude = expected(conv, x, w, y)
    (found,) = run_kernel(implementation, op, *inputs, target=target)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * magnitude.max(initial=0))
    return found


def _run(conv: ConvProblem, x: Array, w: Array, y: Array) -> Array:
    spec, groups = conv.spec, conv.spec.groups
    n, spatial = conv.x_shape[0], conv.y_shape[2:]
    pads = list(zip(spec.pad_lo, spec.pad_hi, strict=True))
    padded = np.pad(x, [(0, 0), (0, 0), *pads]).reshape(n, groups, conv.w_shape[1], *(
        size + low + high for size, (low, high) in zip(conv.x_shape[2:], pads, strict=True)))
    grouped_w = w.reshape(groups, conv.w_shape[0] // groups, *conv.w_shape[1:])
    grouped_y = y.reshape(n, groups, conv.w_shape[0] // groups, *spatial)
    made_x, made_w, made_y = np.zeros_like(padded), np.zeros_like(grouped_w), np.zeros_like(grouped_y)
    for tap in itertools.product(*(range(size) for size in conv.w_shape[2:])):
        at = tuple(size - 1 - r for size, r in zip(conv.w_shape[2:], tap, strict=True)) if spec.flip else tap
        window = (..., *(slice(r * dilation, r * dilation + (out - 1) * stride + 1, stride)
                         for r, dilation, stride, out in zip(at, spec.dilation, spec.stride, spatial, strict=True)))
        weight = grouped_w[(..., *tap)]
        if conv.kind is Kind.FPROP:
            made_y += np.einsum("ngc...,gkc->ngk...", padded[window], weight)
        elif conv.kind is Kind.DGRAD:
            made_x[window] += np.einsum("ngk...,gkc->ngc...", grouped_y, weight)
        else:
            axes = "pqr"[:spec.ndim]
            made_w[(..., *tap)] = np.einsum(f"ngc{axes},ngk{axes}->gkc", padded[window], grouped_y)
    inside = tuple(slice(low, low + size) for size, (low, _) in zip(conv.x_shape[2:], pads, strict=True))
    made_x = made_x[(slice(None), slice(None), slice(None), *inside)]
    return {"y": made_y, "x": made_x, "w": made_w}[conv.kind.produces].reshape(conv.result_shape)
