"""Expansion, depthwise convolution and projection (the inverted residual of MobileNetV2), or the last two, in one kernel."""
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ..graph import TensorType
from ..ops.convolution import Conv
from ..ops.epilogue import FULL
from ..ops.layout import Layout
from ..ops.lowered.conv_chain import ConvChain
from ..target import Target
from .blocked import moving_seconds, reach
from .conv_chain_cut import ChainCut, cut_chain, line_pixels
from .conv_common import (
    Geometry,
    conv_problem,
    make_geometry,
    minimal_bytes,
)
from .conv_epilogue import EpilogueText, epilogue_suffix, make_vector_epilogue
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, GemmTile, compute_seconds, make_tile
from .implementation import Implementation
from .kernel import Kernel, Operand, Preparation, Problem
from .templates import render_kernel

POINTWISE_SHARE, DEPTHWISE_SHARE = 1.0, 0.4
"""Shares of the peak, with the traffic between the stages counted in; measured with MobileNetV2's first blocks."""

_NAMES = ("expand", "depthwise", "project")


@dataclass(frozen=True, slots=True)
class StageText:
    """A stage as conv_chain.c.j2 takes it: its name in C, what finishes its sums, and the number of its filters' buffer."""

    name: str
    finish: str
    epilogue: EpilogueText
    filters: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain's stages as problems of their own; the first may be missing."""

    expand: Problem | None
    depthwise: Problem
    project: Problem

    @property
    def stages(self) -> tuple[Problem, ...]:
        """In order."""
        return (self.depthwise, self.project) if self.expand is None else (self.expand, self.depthwise, self.project)


class ConvChainBlocked(Implementation):
    """Lines of the result at a time; what is in the middle stays in the second cache."""

    name = "conv_chain_blocked"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only 1x1, depthwise, 1x1, or the last two, of float32 and float64 in blocks."""
        dtype = problem.inputs[0].dtype
        if dtype not in ("float32", "float64") or any(operand.dtype != dtype for operand in (*problem.inputs, *problem.outputs)):
            return "it computes float32 and float64 throughout"
        stages = _stage_problems(problem)
        lanes = make_tile(dtype, target).lanes
        if any(cast(Conv, stage.op).layout != Layout(lanes, lanes) for stage in stages):
            return f"it works on blocks of {lanes} channels"
        geometries = [make_geometry(conv_problem(stage)) for stage in stages]
        if len(stages) > 3 or not _is_depthwise(geometries[-2]) or not all(map(_is_pointwise, (*geometries[:-2], geometries[-1]))):
            return "it runs a 1x1 convolution perhaps, a depthwise one along one or two axes, and a 1x1 convolution"
        if any(FULL in _places(stage) for stage in stages[:-1]):
            return "only the last stage's epilogue may read tensors of the result's shape"
        return None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Products at shares of the peak, lines of the middle that several tasks make counted for each; image and result moved."""
        chain, tile = _chain(problem), make_tile(problem.inputs[0].dtype, target)
        geometry = make_geometry(conv_problem(chain.depthwise))
        cut = _cut(problem, target)
        parts = -(-geometry.outside[1] // cut.lines)
        again = 1 + (parts - 1) * max(0, reach(geometry, 1, 1) - geometry.stride[1]) / max(1, geometry.inside[1])
        pointwise: float = conv_problem(chain.project).flops
        if chain.expand is not None:
            pointwise += again * conv_problem(chain.expand).flops
        seconds = (compute_seconds(pointwise, tile.dtype, target, POINTWISE_SHARE)
                   + compute_seconds(conv_problem(chain.depthwise).flops, tile.dtype, target, DEPTHWISE_SHARE))
        tasks = max(1, geometry.batch * parts * (-(-geometry.groups // tile.columns) if cut.shared else 1))
        rounds = -(-tasks // target.threads) * target.threads / tasks
        return (2 if cut.shared else 1) * START_SECONDS + seconds * rounds + moving_seconds(_moved_bytes(problem), target)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The filters of every stage, packed."""
        tile, made, position = make_tile(problem.inputs[0].dtype, target), list[Preparation](), 1
        for stage, name in zip(_stage_problems(problem), _NAMES[3 - len(_stage_problems(problem)):], strict=True):
            geometry = make_geometry(conv_problem(stage))
            size = (geometry.groups * geometry.taps if name == "depthwise"
                    else align_to(geometry.rows, tile.columns) * geometry.channels)
            kernel = Kernel(f"{self._name(problem, target)}_{name}_weights", self._render(problem, target),
                            self._numbers(problem, target))
            made.append(Preparation(position, kernel, Operand.contiguous(tile.dtype, (size,))))
            position += len(stage.inputs) - 1
        return tuple(made)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds each thread's band and its part of the middle, or behind all bands the shared middle."""
        cut, tile = _cut(problem, target), make_tile(problem.inputs[0].dtype, target)
        flops = sum(conv_problem(stage).flops for stage in _stage_problems(problem))
        return Kernel(self._name(problem, target), self._render(problem, target), self._numbers(problem, target),
                      (cut.threads * cut.scratch + cut.middle) * tile.itemsize, flops=flops, bytes=minimal_bytes(problem))

    def _numbers(self, problem: Problem, target: Target) -> tuple[int, ...]:
        chain, tile = _chain(problem), make_tile(problem.inputs[0].dtype, target)
        geometry, cut = make_geometry(conv_problem(chain.depthwise)), _cut(problem, target)
        channels = geometry.groups if chain.expand is None else conv_problem(chain.expand).x_shape[1]
        width = line_pixels(geometry)
        return (geometry.batch, channels, geometry.groups, conv_problem(chain.project).y_shape[1], *geometry.inside[1:],
                *geometry.outside[1:], *geometry.pad[1:], int(geometry.flip),
                cut.threads, cut.lines, cut.chunk, int(cut.shared), cut.pixel_parts, width,
                reach(geometry, 1, cut.chunk) * width * tile.lanes, cut.scratch)

    def _name(self, problem: Problem, target: Target) -> str:
        chain, tile = _chain(problem), make_tile(problem.inputs[0].dtype, target)
        geometry = make_geometry(conv_problem(chain.depthwise))
        words = "_".join(letter + "x".join(map(str, numbers[1:])) for letter, numbers in (
            ("r", geometry.kernel), ("u", geometry.stride), ("l", geometry.dilation)))
        epilogues = "_then".join(epilogue_suffix(stage) for stage in chain.stages)
        return f"sc_conv_chain{'_expand' if chain.expand else ''}_{tile.suffix}_{words}{epilogues}"

    def _render(self, problem: Problem, target: Target) -> str:
        chain, tile = _chain(problem), make_tile(problem.inputs[0].dtype, target)
        geometry = make_geometry(conv_problem(chain.depthwise))
        texts, buffer = [], 2
        for stage, name in zip(chain.stages, _NAMES[3 - len(chain.stages):], strict=True):
            texts.append(StageText(name.upper(), f"finish_{name}", make_vector_epilogue(stage, tile), buffer))
            buffer += len(stage.inputs) - 1
        return render_kernel("conv_chain.c.j2", function=self._name(problem, target), tile=tile, expands=chain.expand is not None,
                             kernel=(1, *geometry.kernel[1:]), stride=geometry.stride, dilation=geometry.dilation,
                             counts=dw_counts(tile), stages=tuple(texts), workspace_buffer=buffer)


def dw_counts(tile: GemmTile) -> tuple[int, ...]:
    """How many pixels of a row the depthwise kernels sum at once, most first."""
    return (tile.rows, 4, 2, 1) if tile.rows > 4 else (4, 2, 1)


def align_to(size: int, step: int) -> int:
    """Rounded up to whole steps."""
    return -(-size // step) * step


def _is_pointwise(geometry: Geometry) -> bool:
    return (geometry.taps == 1 and geometry.groups == 1 and geometry.inside == geometry.outside and set(geometry.stride) == {1}
            and not any(geometry.pad))


def _is_depthwise(geometry: Geometry) -> bool:
    return (geometry.rows, geometry.channels) == (1, 1) and geometry.kernel[0] == geometry.inside[0] == geometry.stride[0] == 1 \
        and geometry.taps <= 49


def _moved_bytes(problem: Problem) -> int:
    """What is waited for: all but packed filters, straight streams which arrive beside the products."""
    return minimal_bytes(problem) - sum(own[0].nbytes for _, own in cast(ConvChain, problem.op).parts(problem.inputs))


def _places(stage: Problem) -> tuple[str, ...]:
    epilogue = cast(Conv, stage.op).epilogue
    return () if epilogue is None else epilogue.operands


def _stage_problems(problem: Problem) -> tuple[Problem, ...]:
    """Every stage as a problem of its own, its results contiguous."""
    made, value = [], problem.inputs[0]
    for stage, extra in cast(ConvChain, problem.op).parts(problem.inputs):
        (type_,) = stage.infer(*(TensorType(each.dtype, each.shape) for each in (value, *extra)))
        result = Operand.contiguous(type_.dtype, type_.static_shape)
        made.append(Problem(stage, (value, *extra), (result,)))
        value = result
    return tuple(made)


def _chain(problem: Problem) -> Chain:
    stages = _stage_problems(problem)
    return Chain(stages[0] if len(stages) == 3 else None, stages[-2], stages[-1])


def _cut(problem: Problem, target: Target) -> ChainCut:
    chain, tile = _chain(problem), make_tile(problem.inputs[0].dtype, target)
    flops = sum(conv_problem(stage).flops for stage in chain.stages)
    return cut_chain(make_geometry(conv_problem(chain.depthwise)), conv_problem(chain.project).y_shape[1], tile, target.threads,
                     flops >= PARALLEL_FLOPS)
