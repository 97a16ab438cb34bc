"""How images lie in memory in a bound graph (`nchw`, `nchw8c`, `nhwc`), which nodes bring them from one form into the other, and
what that costs and saves by the target's estimates."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import dtypes
from ..graph import Apply, FunctionGraph, TensorType, Variable
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.epilogue import FULL
from ..ops.layout import layout_word, plain_shape
from ..ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from ..ops.lowered.conv_chain import ConvChain
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.pooling import Pool
from ..ops.shape import DimShuffle, Reshape
from ..target import Target
from .planned import PlannedProgram
from .step import Step


def image_layouts(graph: FunctionGraph) -> dict[Variable, str]:
    """The layout of every variable that is an image or response of a convolution, or follows one through pools and elementwise
    operations: "nchw", "nchw8c" in blocks of 8 channels, "nhwc" with the channels last."""
    found: dict[Variable, str] = {}
    for node in graph.nodes:
        for variable, layout in _told_by(node):
            found[variable] = layout
    for nodes in (graph.nodes, tuple(reversed(graph.nodes))):
        for node in nodes:
            _spread(node, found)
    return found


def _told_by(node: Apply) -> Iterator[tuple[Variable, str]]:
    """The images that a convolution reads and makes, with their layouts."""
    op = node.op
    if isinstance(op, Conv):
        for role, variable in zip((*op.kind.reads, op.kind.produces), (*node.inputs[:2], node.outputs[0]), strict=True):
            if role != "w":
                yield variable, _text(variable, op.block(role))
    elif isinstance(op, ConvChain):
        yield node.inputs[0], _text(node.inputs[0], op.stages[0].block("x"))
        yield node.outputs[0], _text(node.outputs[0], op.stages[-1].block("y"))


def _text(variable: Variable, block: int) -> str:
    return layout_word(block, variable.ndim - 2 - (block > 0))


def _spread(node: Apply, found: dict[Variable, str]) -> None:
    """A pool or an elementwise node leaves its image as it lies."""
    is_image_pool = isinstance(node.op, Pool) and node.op.rank == node.inputs[0].ndim - 2
    if is_image_pool or isinstance(node.op, (BlockedPool, BlockedPoolGrad)):
        images = (node.inputs[0], *node.outputs)
    elif isinstance(node.op, (Elementwise, FusedElementwise)):
        shape = node.outputs[0].type.shape
        images = tuple(each for each in (*node.inputs, *node.outputs) if each.type.shape == shape)
    else:
        return
    layout = next((found[each] for each in images if each in found), None)
    if layout is not None:
        for each in images:
            found.setdefault(each, layout)


@dataclass(frozen=True, slots=True)
class Conversion:
    """An image brought from one layout into another.

    `step` copies it (then `seconds` is what that is expected to take), or is None: its readers take its strides as they are.
    """

    what: str
    layout_before: str
    layout_after: str
    nbytes: int
    step: int | None
    readers: tuple[int, ...]
    seconds: float


def conversions(program: PlannedProgram, target: Target) -> tuple[Conversion, ...]:
    """Every change of layout in a program."""
    layouts = image_layouts(program.graph)
    return tuple(_conversion(moved, before, after, program, target)
                 for moved, before, after in _changes(program.graph, layouts))


def _changes(graph: FunctionGraph, layouts: dict[Variable, str]) -> Iterator[tuple[Variable, tuple[Variable, str], str]]:
    """The result of each dimshuffle that changes a layout, the image with its layout before, and the layout after."""
    for node in graph.nodes:
        if not isinstance(node.op, DimShuffle):
            continue
        (moved,), (source,) = node.outputs, node.inputs
        before, after = layouts.get(source, ""), layouts.get(moved, "")
        rank, pattern = source.ndim, tuple(node.op.pattern)
        first = 1 + _is_blocked(before)  # where the last axis goes when a layout is left
        if _is_plain(before) is False and pattern == (*range(first), rank - 1, *range(first, rank - 1)):
            yield moved, (source, before), _plain(before)
        elif _is_blocked(after) and source.apply is not None and isinstance(source.apply.op, Reshape):
            yield moved, (source.apply.inputs[0], _plain(after)), after
        elif _is_plain(after) is False and not _is_blocked(after) and pattern == (0, *range(2, rank), 1):
            yield moved, (source, _plain(after)), after


def _is_plain(layout: str) -> bool | None:
    """Whether a layout is (N, C, *spatial) itself; None where none is known."""
    return layout[-1] != "c" if layout else None


def _is_blocked(layout: str) -> bool:
    return layout[-1:] == "c" and layout[-2].isdigit()


def _plain(layout: str) -> str:
    """The plain layout of an image in blocks, or with its channels last."""
    return layout[:-1].rstrip("0123456789") if _is_blocked(layout) else f"nc{layout[1:-1]}"


def _conversion(moved: Variable, before: tuple[Variable, str], after: str, program: PlannedProgram, target: Target) -> Conversion:
    place = program.schedule.places[moved]
    reading = [(number, step) for number, step in enumerate(program.steps) if place in step.reads]
    copies = [number for number, step in reading if step.node is None]
    nbytes = place.operand.nbytes
    readers = tuple(number for number, step in reading if step.node is not None)
    if copies:
        made = program.steps[copies[0]].writes[0].storage
        readers += tuple(number for number, step in enumerate(program.steps) if made in [each.storage for each in step.reads])
    seconds = target.copy_seconds(2 * nbytes, working_set=nbytes) if copies else 0.0
    return Conversion(before[0].label, before[1], after, nbytes, copies[0] if copies else None, readers, seconds)


def plain_seconds(step: Step, target: Target) -> float | None:
    """What a convolution in blocks is expected to take if it were plain; None for any other step, or where that is not known."""
    node = step.node
    if node is None or not isinstance(node.op, Conv) or node.op.layout is None:
        return None
    op, layout = node.op, node.op.layout
    inputs = [_plain_type(node.inputs[0], layout.block(op.kind.reads[0])), node.inputs[1].type, *_operand_types(op, node.inputs)]
    found = target.estimate(replace(op, layout=None), inputs, [_plain_type(node.outputs[0], layout.block(op.kind.produces))])
    return None if isinstance(found, str) else found


def _operand_types(op: Conv, inputs: Sequence[Variable]) -> list[TensorType]:
    kinds: Sequence[Any] = op.epilogue.operands if op.epilogue is not None else ()
    block = op.block(op.kind.produces)
    shape_inputs = [each.type for each in inputs[2:op.n_core_inputs]]
    return shape_inputs + [_plain_type(each, block) if kind == FULL else each.type
                           for each, kind in zip(inputs[op.n_core_inputs:], kinds, strict=True)]


def _plain_type(variable: Variable, block: int) -> TensorType:
    return variable.type.with_shape(plain_shape(variable.type.shape, block))


def operand_bytes(variable: Variable) -> int | None:
    """The bytes of a variable's elements; None where a size is unknown."""
    total = dtypes.itemsize(variable.dtype)
    for size in variable.type.shape:
        if size is None:
            return None
        total *= size
    return total
