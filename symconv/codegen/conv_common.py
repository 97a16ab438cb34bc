"""What the convolution kernels have in common: the geometry as numbers, names and sources, reasons to refuse."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from ..graph import Op
from ..ops.conv_problem import ConvProblem
from ..ops.convolution import Conv
from ..ops.epilogue import Epilogue
from ..ops.spec import Kind
from ..target import Target
from .conv_epilogue import epilogue_suffix, make_epilogue
from .gemm_tile import GemmTile, make_tile
from .implementation import Implementation
from .kernel import Kernel, Problem
from .templates import render_kernel

Triple = tuple[int, int, int]
TAP_BYTES, SEGMENT_BYTES, RUN_BYTES = 48, 48, 24
"""Bytes of the structs Tap, Segment and Run of conv_geometry.c.j2."""


class PixelConvolution(Implementation):
    """An implementation of FPROP and DGRAD, which make responses and images."""

    def serves(self, op: Op) -> bool:
        """FPROP and DGRAD of plain tensors."""
        return isinstance(op, Conv) and op.kind is not Kind.WGRAD and op.layout is None

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only FPROP and DGRAD of float32 and float64."""
        if conv_problem(problem).kind is Kind.WGRAD:
            return "it makes images and responses, not filter gradients"
        return refuse_types(problem)


class FilterGradient(Implementation):
    """An implementation of WGRAD, which makes filter gradients."""

    def serves(self, op: Op) -> bool:
        """WGRAD of plain tensors."""
        return isinstance(op, Conv) and op.kind is Kind.WGRAD and op.layout is None

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only WGRAD of float32 and float64."""
        if conv_problem(problem).kind is not Kind.WGRAD:
            return "it makes filter gradients, not images or responses"
        return refuse_types(problem)


@lru_cache(maxsize=4096)
def conv_problem(problem: Problem) -> ConvProblem:
    """The convolution of a problem, its padding known in numbers."""
    return cast(Conv, problem.op).problem(problem.inputs, problem.outputs[0])


def refuse_types(problem: Problem) -> str | None:
    """Why the float kernels cannot run the problem: dtypes, or what sums are taken in."""
    op = cast(Conv, problem.op)
    dtype = problem.inputs[0].dtype
    if dtype not in ("float32", "float64"):
        return f"it computes float32 and float64, not {dtype}"
    if op.spec.accumulator(dtype) != dtype:
        return f"it sums {dtype} in {dtype}, not in {op.spec.accumulator(dtype)}"
    if problem.outputs[0].dtype != dtype:
        return f"its result has the dtype of its operands, {dtype}, not {problem.outputs[0].dtype}"
    return None


def refuse_winograd(problem: Problem, *, dilated: bool = False) -> str | None:
    """Why a problem of the right kind has no Winograd's form, or one that would not pay; `dilated`: whether dilation is taken."""
    conv, dtype = conv_problem(problem), problem.inputs[0].dtype
    if dtype != "float32":
        return f"it computes float32, not {dtype}"
    if conv.w_shape[2:] != (3, 3) or set(conv.spec.stride + (() if dilated else conv.spec.dilation)) != {1}:
        return f"it takes 3x3 filters without stride{'' if dilated else ' and dilation'}, not {conv}"
    geometry = make_geometry(conv)
    if geometry.groups > 1 and min(geometry.rows, geometry.channels) < 8:
        return f"{geometry.channels} channels to {geometry.rows} in a group are too few"
    return refuse_types(problem)


def refuse_epilogue(epilogue: Epilogue, dtype: str) -> str | None:
    """Why an epilogue cannot be fused into a convolution of float32 or float64 operands."""
    if dtype not in ("float32", "float64"):
        return f"the convolution kernels compute float32 and float64, not {dtype}"
    if epilogue.dtype != dtype:
        return f"the result would have the dtype {epilogue.dtype}, not that of the operands, {dtype}"
    return None


GEOMETRY_NUMBERS = 23
"""Numbers of the struct Geometry; in kernels that share out work by themselves the number of threads comes next."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """A convolution as the kernels take it: three spatial axes (leading ones of size 1), channels counted in a group.

    `rows` are the channels of the result and `channels` those that are summed over; for WGRAD as for FPROP.
    """

    batch: int
    groups: int
    rows: int
    channels: int
    inside: Triple
    outside: Triple
    kernel: Triple
    stride: Triple
    dilation: Triple
    pad: Triple
    flip: bool

    @property
    def taps(self) -> int:
        """Elements of a kernel."""
        return math.prod(self.kernel)

    @property
    def pixels(self) -> int:
        """Result pixels of all images (for WGRAD those of y)."""
        return self.batch * math.prod(self.outside)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The first GEOMETRY_NUMBERS run-time sizes of every kernel, in the order of the struct Geometry of conv_geometry.c.j2."""
        return (self.batch, self.groups, self.rows, self.channels, *self.inside, *self.outside, *self.kernel, *self.stride,
                *self.dilation, *self.pad, int(self.flip))


def make_geometry(conv: ConvProblem, flatten: bool = True) -> Geometry:
    """The geometry of a problem; a 1x1 kernel without stride and padding becomes one of rank 1 (unless `flatten` is False)."""
    spec, y_shape = conv.spec, conv.y_shape
    shapes = {"x": conv.x_shape[2:], "y": y_shape[2:]}
    forward = conv.kind is not Kind.DGRAD
    inside, outside = (shapes["x"], shapes["y"]) if forward else (shapes["y"], shapes["x"])
    filters, channels = conv.w_shape[0] // spec.groups, conv.w_shape[1]
    rows, summed = (filters, channels) if forward else (channels, filters)
    kernel = conv.w_shape[2:]
    if flatten and math.prod(kernel) == 1 and set(spec.stride) == {1} and not any(spec.pad_lo + spec.pad_hi):
        inside = outside = (math.prod(inside),)
        one = (1, 1, 1)
        return Geometry(conv.x_shape[0], spec.groups, rows, summed, _triple(inside), _triple(outside), one, one, one, (0, 0, 0),
                        False)
    return Geometry(conv.x_shape[0], spec.groups, rows, summed, _triple(inside), _triple(outside), _triple(kernel),
                    _triple(spec.stride), _triple(spec.dilation), _triple(spec.pad_lo, 0), spec.flip)


def reads_plainly(geometry: Geometry) -> bool:
    """Whether each pixel reads the same place of the image alone: a 1x1 kernel without stride and padding."""
    return (geometry.taps == 1 and geometry.inside == geometry.outside and not any(geometry.pad)
            and math.prod(geometry.stride) == 1)


def turning_seconds(geometry: Geometry) -> float:
    """What one thread takes to turn the filters for DGRAD, in estimates; measured with 1x1 filters of 256 to 1024 channels."""
    return 4.0e-9 * geometry.groups * geometry.rows * geometry.channels * geometry.taps


def _triple(values: tuple[int, ...], fill: int = 1) -> Triple:
    full = (fill,) * (3 - len(values)) + tuple(values)
    return full[0], full[1], full[2]


def conv_parts(problem: Problem, target: Target) -> tuple[ConvProblem, Geometry, GemmTile]:
    """The convolution of a problem, its geometry, and the register tiles of its dtype."""
    conv = conv_problem(problem)
    return conv, make_geometry(conv), make_tile(problem.inputs[0].dtype, target)


def conv_source(template: str, name: str, problem: Problem, tile: GemmTile, **values: Any) -> str:
    """The C of a template that has an epilogue; `values` are what it needs beside the kind and the tile."""
    return render_kernel(template, function=name, kind=conv_problem(problem).kind.value, tile=tile,
                         epilogue=make_epilogue(problem, tile), **values)


def conv_name(problem: Problem, words: str) -> str:
    """A kernel's name: what it makes, how in `words`, and its epilogue."""
    return f"sc_conv_{conv_problem(problem).kind.value}_{words}{epilogue_suffix(problem)}"


def conv_kernel(problem: Problem, name: str, source: str, numbers: tuple[int, ...], workspace: int) -> Kernel:
    """A kernel that makes the result of the problem."""
    return Kernel(name, source, numbers, workspace, flops=conv_problem(problem).flops, bytes=minimal_bytes(problem))


def minimal_bytes(problem: Problem) -> int:
    """Bytes read and written at least."""
    return sum(operand.nbytes for operand in problem.inputs + problem.outputs)


def align(nbytes: int) -> int:
    """Rounded up to whole cache lines."""
    return -(-nbytes // 64) * 64
