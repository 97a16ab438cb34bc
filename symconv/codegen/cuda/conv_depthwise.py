"""Depthwise convolutions on CUDA (one input channel in a group): memory traffic decides, so an element is read once.

FPROP and DGRAD make each plane of results from the planes of its group; WGRAD has a sum for each tap in every thread.
"""
from __future__ import annotations

from ...graph import Op
from ...ops.convolution import Conv
from ...ops.spec import Kind
from ...target import Target
from ..conv_common import conv_problem
from ..kernel import Problem
from .conv_direct import Direct, estimate_direct, refuse_cut, refuse_direct
from .kernel import CudaImplementation, LaunchPlan

_ROWS, _WGRAD_ROWS = 8, 4  # results below each other of one thread
_SHARE = 0.25  # of what CUDA cores do: an element of shared memory is read for every two or three products


class CudaConvDepthwise(CudaImplementation):
    """FPROP and DGRAD with the image in shared memory; DGRAD gathers, both phases of a stride in one thread."""

    name = "conv_depthwise_cuda"

    def serves(self, op: Op) -> bool:
        """FPROP and DGRAD."""
        return isinstance(op, Conv) and op.kind is not Kind.WGRAD

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one channel in a group, rank 1 or 2, at most 49 taps, strides 1 and 2."""
        return _refuse(problem) or refuse_cut(Direct(problem, 1, _ROWS))

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic, or the products where they take longer."""
        return estimate_direct(Direct(problem, 1, _ROWS), target, _SHARE)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; none for an empty result."""
        return Direct(problem, 1, _ROWS).plan("depthwise") if problem.outputs[0].size else LaunchPlan(())


class CudaConvWgradDepthwise(CudaImplementation):
    """WGRAD: sums for each tap in registers, pixels in parts, parts added in order by a second launch."""

    name = "conv_wgrad_depthwise_cuda"

    def serves(self, op: Op) -> bool:
        """WGRAD."""
        return isinstance(op, Conv) and op.kind is Kind.WGRAD

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only one channel in a group, rank 1 or 2, at most 49 taps, strides 1 and 2."""
        return _refuse(problem) or refuse_cut(Direct(problem, 1, _WGRAD_ROWS))

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic, or the products where they take longer; a second launch."""
        return estimate_direct(Direct(problem, 1, _WGRAD_ROWS), target, _SHARE, 2)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch or two; none for an empty result."""
        return Direct(problem, 1, _WGRAD_ROWS).wgrad_plan("depthwise") if problem.outputs[0].size else LaunchPlan(())


def _refuse(problem: Problem) -> str | None:
    per_group = conv_problem(problem).w_shape[1]
    if per_group != 1:
        return f"it takes one input channel in a group, not {per_group}"
    return refuse_direct(problem)


DEPTHWISE: tuple[CudaImplementation, ...] = (CudaConvDepthwise(), CudaConvWgradDepthwise())
