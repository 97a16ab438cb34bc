"""cuDNN among the implementations of `Conv` on CUDA."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from ...config import config
from ...errors import InternalError
from ...graph import Op
from ...ops.convolution import Conv
from ...ops.layout import CHANNELS_LAST
from ...target import Target
from ..conv_common import conv_problem
from ..cuda.elementwise import copy_plan
from ..cuda.kernel import CudaImplementation, LaunchPlan
from ..implementation import AnyImplementation
from ..kernel import Operand, Preparation, Problem
from .devices import DeviceProperties
from .estimates import estimate
from .fusion import Fusion, fusion_of
from .graph import NHWC, layout_strides
from .launches import lies_as_wanted, make_launches, plain_operand
from .plan_list import Asked, PlanList, PlanMaker, given_plan, maker_for, plan_list
from .plans import CudnnPlan
from .support import Requirements, refuse, wanted_layout


class CudnnConvolution(CudaImplementation):
    """A plan of cuDNN for the convolution with its epilogue, and conversions of layout where it wants channels last."""

    name = "cudnn"
    is_cached = False  # its plans depend on settings, and PlanList keeps what is dear

    def serves(self, op: Op) -> bool:
        """Convolutions of every kind, on tensors that are plain or have their channels last."""
        return isinstance(op, Conv) and (op.layout is None or {op.layout.x, op.layout.y} <= {0, CHANNELS_LAST})

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """What forbids cuDNN, what is missing for it here, or what it does not take."""
        if config.dnn.enabled is False:
            return "config.dnn.enabled is False"
        reason = why_not_on(target)
        if reason is not None:
            return reason
        fusion = _fusion(problem)
        if isinstance(fusion, str):
            return fusion
        return refuse(conv_problem(problem), gpu_of(target), Requirements.current(), fusion)

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Where cuDNN is asked for channels last: tensors that lie so already, and filters, which `prepare` brings there."""
        fusion, operand = _fusion(problem), plain_operand(problem, 1 + position)
        if isinstance(fusion, str) or len(operand.shape) != len(problem.outputs[0].shape):
            return False
        return _wants_channels_last(problem, fusion) and (position == _filters(problem) or lies_as_wanted(operand, NHWC))

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """Filters with channels last, where cuDNN is asked so."""
        fusion, position = _fusion(problem), _filters(problem)
        if isinstance(fusion, str) or position is None or not _wants_channels_last(problem, fusion):
            return ()
        filters = problem.inputs[position]
        if lies_as_wanted(filters, NHWC):
            return ()
        turned = Operand(filters.dtype, (filters.shape[0], *filters.shape[2:], filters.shape[1]),
                         (filters.strides[0], *filters.strides[2:], filters.strides[1]))
        return (Preparation(position, cast(Any, copy_plan(turned)), _channels_last(filters)),)

    def estimate(self, problem: Problem, target: Target) -> float:
        """By the roofline of `estimates.py`."""
        asked = self._asked(problem, target)
        return estimate(asked.problem, asked.gpu, asked.fusion, asked.requirements)

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """The best plan: the one that a loaded function brought, the fastest that was measured, or the heuristics' first.

        Raises:
            PlanRefusedError: cuDNN has none, although `refuse` let the problem pass.
        """
        asked = self._asked(problem, target)
        plan = given_plan(asked)
        return _launches(problem, asked, plan or next(self._list(asked, target).in_order()), "from the file" if plan else "")

    def instead(self, problem: Problem, target: Target, refused: LaunchPlan) -> LaunchPlan | None:
        """The next plan after one that was refused when it ran; None after the last."""
        asked = self._asked(problem, target)
        if refused.cudnn is None:
            return None
        following = self._list(asked, target).after(refused.cudnn.plan)
        return None if following is None else _launches(problem, asked, following)

    def every_build(self, problem: Problem, target: Target) -> tuple[LaunchPlan, ...]:
        """All plans that are tried, in the heuristics' order."""
        asked = self._asked(problem, target)
        return tuple(_launches(problem, asked, plan) for plan in self._list(asked, target).by_number())

    def rank(self, problem: Problem, target: Target, order: Sequence[int]) -> None:
        """Kept on disk, for this problem, GPU and version of cuDNN."""
        self._list(self._asked(problem, target), target).rank(order)

    def asked(self, problem: Problem, target: Target) -> Asked:
        """What plans are asked for."""
        return self._asked(problem, target)

    def _asked(self, problem: Problem, target: Target) -> Asked:
        fusion = _fusion(problem)
        if isinstance(fusion, str):
            raise InternalError(f"cuDNN is asked for an epilogue that it refuses: {fusion}")
        return Asked(conv_problem(problem), gpu_of(target), Requirements.current(), fusion)

    def _list(self, asked: Asked, target: Target) -> PlanList:
        return plan_list(_maker(target), asked)


def why_not_on(target: Target) -> str | None:
    """Why cuDNN does not run on a target at all; None where it does."""
    maker = maker_for(target.device)
    if maker is None:
        return "the emulator runs generated kernels only"
    if not target.gpu:
        return f"the figures of the GPU of {target.device} are not known"
    return maker.why_not(bool(target.place))


def plan_version(target: Target) -> str:
    """Whose plans a target runs; empty where it runs none."""
    return "" if why_not_on(target) is not None else _maker(target).version


def gpu_of(target: Target) -> DeviceProperties:
    """The GPU of a target, as cuDNN knows it."""
    return _parsed(target.gpu)


@lru_cache(maxsize=64)
def _parsed(figures: str) -> DeviceProperties:
    return DeviceProperties.parse(figures)


def _maker(target: Target) -> PlanMaker:
    maker = maker_for(target.device)
    if maker is None:
        raise InternalError("cuDNN is asked for plans for the emulator")
    return maker


def _fusion(problem: Problem) -> Fusion | str:
    """The chain of the problem's epilogue; a reason where cuDNN is not asked for it."""
    op = cast(Conv, problem.op)
    fusion, dtype = fusion_of(op.epilogue), problem.inputs[0].dtype
    if isinstance(fusion, Fusion) and any(each != dtype for each in fusion.dtypes):
        return f"cuDNN is asked only for epilogue operands of the convolution's dtype, {dtype}, not {', '.join(fusion.dtypes)}"
    return fusion


def _wants_channels_last(problem: Problem, fusion: Fusion) -> bool:
    return wanted_layout(conv_problem(problem), fusion)[0] == NHWC


def _launches(problem: Problem, asked: Asked, plan: CudnnPlan, source: str = "") -> LaunchPlan:
    notes = [f"cuDNN's plan {plan.engine}, {plan.layout}, padding {plan.padding}, workspace {plan.workspace_bytes} bytes"
             + (f", {source}" if source else ""), plan.layout_reason]
    notes += [f"passed over: {reason}" for reason in plan.refusals]
    return make_launches(_prepared(problem, plan), asked.problem, asked.fusion, plan, tuple(filter(None, notes)))


def _filters(problem: Problem) -> int | None:
    """The position of the filters among the inputs; None where they are the result."""
    reads = cast(Conv, problem.op).kind.reads
    return reads.index("w") if "w" in reads else None


def _channels_last(filters: Operand) -> Operand:
    return Operand(filters.dtype, filters.shape, layout_strides(filters.shape, NHWC))


def _prepared(problem: Problem, plan: CudnnPlan) -> Problem:
    """The problem with its filters as `prepare` gives them."""
    position = _filters(problem)
    if position is None or plan.layout != NHWC:
        return problem
    inputs = tuple(_channels_last(each) if number == position else each for number, each in enumerate(problem.inputs))
    return Problem(problem.op, inputs, problem.outputs)


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {Conv: (CudnnConvolution(),)}
