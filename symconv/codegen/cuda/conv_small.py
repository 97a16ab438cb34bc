"""Convolutions of images with one to four channels on CUDA cores: the first layers of networks.

A matrix product over so few channels spends its time on gathering patches.  Here the image lies in shared memory, a channel at
a time, and each thread multiplies what it reads with several filters.  DGRAD of such layers is left to the implicit matrix product.
"""
from __future__ import annotations

from ...graph import Op
from ...ops.convolution import Conv
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import conv_problem, make_geometry
from ..kernel import Problem
from .conv_direct import Direct, estimate_direct, refuse_cut, refuse_direct
from .kernel import CudaImplementation, LaunchPlan

_MOST_CHANNELS = 4
_ROWS, _FILTERS = 4, 8  # results below each other of one thread, and filters
_SUMS = 52              # of WGRAD in the registers of one thread
_SHARE = 0.5            # of what CUDA cores do


class CudaConvSmall(CudaImplementation):
    """FPROP: four rows of eight filters in the registers of a thread."""

    name = "conv_small_cuda"

    def serves(self, op: Op) -> bool:
        """FPROP."""
        return isinstance(op, Conv) and op.kind is Kind.FPROP

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one to four channels in a group, rank 1 or 2, at most 49 taps, strides 1 and 2."""
        return _refuse(problem) or refuse_cut(_forward(problem))

    def estimate(self, problem: Problem, target: Target) -> float:
        """The products at half of what CUDA cores do, or memory traffic."""
        return estimate_direct(_forward(problem), target, _SHARE)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; none for an empty result."""
        return _forward(problem).plan("small") if problem.outputs[0].size else LaunchPlan(())


class CudaConvWgradSmall(CudaImplementation):
    """WGRAD: sums for each tap of a few filters in registers, pixels in parts, parts added in order by a second launch."""

    name = "conv_wgrad_small_cuda"

    def serves(self, op: Op) -> bool:
        """WGRAD."""
        return isinstance(op, Conv) and op.kind is Kind.WGRAD

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one to four channels in a group, rank 1 or 2, at most 49 taps, strides 1 and 2."""
        return _refuse(problem) or refuse_cut(_backward(problem))

    def estimate(self, problem: Problem, target: Target) -> float:
        """The products at a share of what CUDA cores do that falls with the filters of a thread, or memory traffic."""
        direct = _backward(problem)
        return estimate_direct(direct, target, _SHARE * direct.cut.filters / (direct.cut.filters + 1), 2)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch or two; none for an empty result."""
        return _backward(problem).wgrad_plan("small") if problem.outputs[0].size else LaunchPlan(())


def _forward(problem: Problem) -> Direct:
    return Direct(problem, _FILTERS, _ROWS)


def _backward(problem: Problem) -> Direct:
    """As many filters of a thread (a power of two) as its sums have registers for."""
    taps = make_geometry(conv_problem(problem)).taps
    return Direct(problem, 1 << max(0, min(3, (_SUMS // taps).bit_length() - 1)), _ROWS)


def _refuse(problem: Problem) -> str | None:
    channels = conv_problem(problem).w_shape[1]
    if not 0 < channels <= _MOST_CHANNELS:
        return f"it takes one to {_MOST_CHANNELS} channels in a group, not {channels}"
    return refuse_direct(problem)


SMALL: tuple[CudaImplementation, ...] = (CudaConvSmall(), CudaConvWgradSmall())
