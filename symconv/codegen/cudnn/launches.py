"""From a plan to launches: operands brought into the memory that cuDNN was asked about, its execution, the result brought back.

Where a tensor lies as cuDNN wants it already (a view of channels-last memory, say), nothing is copied.  Conversions of layout,
padding with zeros and cropping are launches of generated kernels; their memory is part of the workspace.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from ... import dtypes
from ...errors import explain_error
from ...ops.conv_problem import ConvProblem
from ...ops.convolution import Conv
from ...ops.epilogue import FULL
from ...ops.layout import plain_shape, plain_strides
from ...ops.padding import Pad
from ...target import Target
from ..cuda.elementwise import copy_plan
from ..cuda.joining import PadElements
from ..cuda.kernel import CudaKernel, CudnnLaunch, Launch, LaunchPlan, lay_out_parts, workspace_part
from ..kernel import Operand, Problem
from .fusion import Fusion
from .graph import NHWC, OPERAND_UID, UID, layout_strides
from .padding import Margins, PaddingForm, padding_forms
from .plans import CudnnPlan, PlanRefusedError

_ZERO_BYTES = 8  # of the scalar that padding is made of


def make_launches(problem: Problem, conv: ConvProblem, fusion: Fusion, plan: CudnnPlan, notes: tuple[str, ...]) -> LaunchPlan:
    """The launches of a plan for `problem`, whose convolution is `conv`."""
    form = next((form for form in padding_forms(conv) if form.name == plan.padding), None)
    if form is None:
        raise PlanRefusedError(explain_error("the plan is for another form of padding", f"{plan.padding!r} for {conv}"))
    return _Maker(problem, form, plan).make(conv, fusion, notes)


def plain_operand(problem: Problem, position: int) -> Operand:
    """An operand (the result is 0, then inputs) as (N, C, *spatial), wherever its channels lie in memory; a vector as it is."""
    op = cast(Conv, problem.op)
    operand = (*problem.outputs, *problem.inputs)[position]
    if op.layout is None or len(operand.shape) < 3:
        return operand
    role = op.kind.reads[position - 1] if 1 <= position <= 2 else op.kind.produces
    block = op.layout.block(role)
    shape = tuple(size or 0 for size in plain_shape(operand.shape, block))
    return Operand(operand.dtype, shape, plain_strides(operand.strides, block))


def lies_as_wanted(operand: Operand, layout: str) -> bool:
    """Whether the elements of an operand (N, C, *spatial) lie densely in a layout."""
    wanted = layout_strides(operand.shape, layout)
    return all(size == 1 or stride == want for size, stride, want in zip(operand.shape, operand.strides, wanted, strict=True))


@dataclass(slots=True)
class _Part:
    nbytes: int
    inside: tuple[int, int] | None = None  # (number of another part, first byte in it)


class _Maker:
    """Launches of one plan in the making; buffers are numbered as in `CudnnLaunch`."""

    def __init__(self, problem: Problem, form: PaddingForm, plan: CudnnPlan) -> None:
        self.problem, self.form, self.plan = problem, form, plan
        self.rank = 2 + form.problem.spec.ndim
        self.parts: list[_Part] = []
        self.before: list[Launch] = []
        self.zero: int | None = None

    def make(self, conv: ConvProblem, fusion: Fusion, notes: tuple[str, ...]) -> LaunchPlan:
        """The whole plan."""
        n_core_inputs = cast(Conv, self.problem.op).n_core_inputs
        kind = conv.kind
        tensors = [(UID[role], self._brought(1 + number, self.form.margins_of(role) if role != "w" else None))
                   for number, role in enumerate(kind.reads)]
        around = self.form.margins_of(kind.produces) if kind.produces != "w" else None
        for number, place in enumerate(fusion.places()):
            position = 1 + n_core_inputs + number
            tensors.append((OPERAND_UID + number, self._brought(position, around) if place == FULL else position))
        result, after = self._result(around)
        buffers = [result, *(buffer for _, buffer in tensors)]
        if self.plan.workspace_bytes:
            buffers.append(self._part(self.plan.workspace_bytes))
        main = CudnnLaunch(self.plan, replace(self.form.problem, epilogue=conv.epilogue), fusion, tuple(buffers),
                           (UID[kind.produces], *(uid for uid, _ in tensors)))
        parts, total = self._laid_out()
        return LaunchPlan((*self.before, main, *after), total, flops=conv.flops, parts=parts, notes=notes,
                          bytes=sum(operand.nbytes for operand in self.problem.inputs + self.problem.outputs))

    def _part(self, nbytes: int, inside: tuple[int, int] | None = None) -> int:
        self.parts.append(_Part(nbytes, inside))
        return workspace_part(len(self.parts) - 1)

    def _laid_out(self) -> tuple[tuple[tuple[int, int], ...], int]:
        places, total = lay_out_parts([0 if part.inside else part.nbytes for part in self.parts])
        found = []
        for (start, _), part in zip(places, self.parts, strict=True):
            first = start if part.inside is None else places[part.inside[0]][0] + part.inside[1]
            found.append((first, part.nbytes))
        return tuple(found), total

    def _wide(self, operand: Operand) -> Operand:
        """The operand with as many axes as cuDNN was asked with: a first spatial axis of one element in rank 1."""
        extra = (1,) * (self.rank - len(operand.shape))
        return Operand(operand.dtype, (*operand.shape[:2], *extra, *operand.shape[2:]),
                       (*operand.strides[:2], *extra, *operand.strides[2:]))

    def _in_memory_order(self, values: Sequence[int]) -> tuple[int, ...]:
        """What belongs to the axes (N, C, *spatial), in the order in which the plan's layout has them in memory."""
        return (values[0], *values[2:], values[1]) if self.plan.layout == NHWC else tuple(values)

    def _brought(self, position: int, margins: Margins | None) -> int:
        """The buffer of an input as cuDNN wants it; `margins` are zeros around its spatial axes."""
        operand = self._wide(plain_operand(self.problem, position))
        if not any(map(any, margins or ())):
            if lies_as_wanted(operand, self.plan.layout):
                return position
            turned = self._turned(operand)
            part = self._part(operand.nbytes)
            self.before += _renumbered(copy_plan(turned), {0: part, 1: position})
            return part
        assert margins is not None
        return self._padded(position, self._turned(operand), margins)

    def _turned(self, operand: Operand) -> Operand:
        return Operand(operand.dtype, self._in_memory_order(operand.shape), self._in_memory_order(operand.strides))

    def _padded(self, position: int, turned: Operand, margins: Margins) -> int:
        low, high = ([0, 0, *(margin[side] for margin in margins)] for side in (0, 1))
        pad = Pad(self._in_memory_order(low), self._in_memory_order(high))
        shape = tuple(before + size + after for before, size, after in zip(pad.before, turned.shape, pad.after, strict=True))
        larger = Operand.contiguous(turned.dtype, shape)
        part = self._part(larger.nbytes)
        if self.zero is None:
            self.zero = self._part(_ZERO_BYTES)
        plan = PadElements().build(Problem(pad, (turned, Operand(turned.dtype, (), ())), (larger,)), Target("cuda"))
        self.before += _renumbered(plan, {0: part, 1: position, 2: self.zero}, zeroed=(self.zero,))
        return part

    def _result(self, margins: Margins | None) -> tuple[int, list[Launch]]:
        """The buffer that cuDNN writes, and what brings it to the result's own."""
        own = plain_operand(self.problem, 0)
        operand = self._wide(own)
        low = [0, 0, *(margin[0] for margin in margins or ())] if margins else [0] * self.rank
        larger = self.form.problem.result_shape
        if larger == operand.shape and lies_as_wanted(operand, self.plan.layout):
            return 0, []
        itemsize = dtypes.itemsize(operand.dtype)
        strides = layout_strides(larger, self.plan.layout)
        nbytes = math.prod(larger) * itemsize
        whole = self._part(nbytes)
        first = itemsize * sum(each * stride for each, stride in zip(low, strides, strict=True))
        source = whole
        if larger != operand.shape:
            last = itemsize * (1 + sum((size - 1) * stride for size, stride in zip(operand.shape, strides, strict=True)))
            source = self._part(last, (len(self.parts) - 1, first))
        return whole, _renumbered(copy_plan(_in_order_of(own, Operand(operand.dtype, operand.shape, strides))), {0: 0, 1: source})


def _in_order_of(result: Operand, source: Operand) -> Operand:
    """The source's axes in the order in which the result's lie in memory."""
    if result.is_contiguous:
        return source
    return Operand(source.dtype, (source.shape[0], *source.shape[2:], source.shape[1]),
                   (source.strides[0], *source.strides[2:], source.strides[1]))


def _renumbered(plan: LaunchPlan, buffers: dict[int, int], zeroed: tuple[int, ...] = ()) -> list[Launch]:
    """The kernels of a plan on other buffers."""
    return [replace(launch, buffers=tuple(buffers[number] for number in launch.buffers), zeroed=zeroed)
            for launch in plan.launches if isinstance(launch, CudaKernel)]
