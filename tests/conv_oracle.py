"""Convolutions in float64 written out with loops over the kernel's elements: the oracle of the kernel tests."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.spec import Kind

Array = np.ndarray[Any, Any]


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
