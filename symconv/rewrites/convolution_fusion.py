"""What is done to a convolution's result, elementwise, moves into the convolution's kernel.

    f(conv(x, w), b, r, …) = conv(x, w) with the epilogue f and the operands b (by channel), r (of the result's shape), …

for bias, scale, residual, gate, activation and casts, one after the other, for expressions that read the result several
times (silu: y · sigmoid(y)), and with masks of other tensors (relu's gradient: where(z > 0, y, 0)).  Conditions: nothing
outside f reads the convolution's result, it is no output; every operand varies by channel only, or has the result's shape,
or is a constant number; the target can run the epilogue.  Otherwise the reason is kept.

A mask that is computed from one other tensor is computed in the epilogue, so that it is never stored; or, where the kernels
that read the result read that tensor anyway (batch normalisation's gradient), in those, and not here (`masks.py`).

Weight gradients take no epilogue: they are small, and the update that follows is one elementwise kernel, which would be torn
apart.  A 1×1 convolution with stride 1 stays a convolution: its kernel is a matrix product over the same memory (channels
first, no copy), and as a convolution it keeps its epilogue.

Floats: the result of the convolution is rounded to its dtype before the epilogue, as without fusing; nothing changes.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..graph import Apply, Variable, apply_op
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.epilogue import CHANNEL, FULL, Epilogue
from ..ops.spec import Kind
from .context import Context
from .convolution_scale import channel_vector, without_epilogue
from .masks import is_read_by_all_users, masks_read_by
from .programs import Place, ProgramBuilder, add_nodes, scalar_constant
from .rule import Answer, Rule, Skip, rule

MAX_CONE = 16
MAX_OPERANDS = 8


@rule(Elementwise)
def fuse_into_epilogue(node: Apply, context: Context) -> Answer:
    """f(conv(x, w), …) = conv(x, w) with the epilogue f"""
    if node.outputs[0].type.shape not in context.shapes_of(_takes_epilogue):  # which no rule of this phase changes
        return None
    cone = _cone(node, context)
    reason: Skip | None = None
    for result in _conv_results(cone):
        outside = _read_outside(result, cone, context)
        if outside is None:
            answer = _fused(node, result, cone, context)
            if not isinstance(answer, Skip):
                return answer
            reason = reason or answer
        elif outside and result in node.inputs:
            reason = reason or Skip(outside)
    return reason


def _cone(node: Apply, context: Context) -> list[Apply]:
    """The node and elementwise nodes below it, of its shape, that are read inside the cone only; readers before inputs."""
    cone, inside = [node], {context.old_node(node)}
    position = 0
    while position < len(cone) and len(cone) < MAX_CONE:
        for below in dict.fromkeys([each.apply for each in cone[position].inputs]):
            if below is not None and below not in cone and _joins(below, node, inside, context):
                cone.append(below)
                inside.add(context.old_node(below))
        position += 1
    return cone


def _joins(below: Apply, root: Apply, inside: set[Apply | None], context: Context) -> bool:
    if not isinstance(below.op, Elementwise):
        return False
    (value,) = below.outputs
    if value.type.shape != root.outputs[0].type.shape or context.is_result(value):
        return False
    readers = context.old_readers(value)
    return readers is not None and None not in inside and inside.issuperset(readers)


def _others(value: Variable, cone: list[Apply], context: Context) -> int | None:
    """How many nodes outside the cone read a value; None where that is known in the next sweep only."""
    readers = context.old_readers(value)
    inside = {context.old_node(node) for node in cone}
    return None if readers is None or None in inside else sum(reader not in inside for reader in readers)


def _conv_results(cone: list[Apply]) -> list[Variable]:
    """The results of convolutions that the cone reads and that have its shape."""
    shape = cone[0].outputs[0].type.shape
    read = dict.fromkeys(each for node in cone for each in node.inputs)
    return [each for each in read if each.type.shape == shape and each.apply is not None and _takes_epilogue(each.apply)]


def _takes_epilogue(node: Apply) -> bool:
    return isinstance(node.op, Conv) and node.op.kind is not Kind.WGRAD


def _read_outside(result: Variable, cone: list[Apply], context: Context) -> str | None:
    """Who else reads a convolution's result, in words; None for nobody, "" where that is known in the next sweep only."""
    others = _others(result, cone, context)
    if others is None:
        return ""
    if context.is_result(result):
        return "the convolution's result is an output too"
    return f"the convolution's result has {others} other reader{'s' * (others > 1)}" if others else None


def _above(result: Variable, cone: list[Apply]) -> list[Apply]:
    """The nodes of the cone that depend on a variable; inputs before readers."""
    changed, chosen = {result}, list[Apply]()
    for node in reversed(cone):
        if any(each in changed for each in node.inputs):
            changed.update(node.outputs)
            chosen.append(node)
    return chosen


@dataclass(slots=True)
class _Operands:
    """The epilogue's operands as they are found."""

    result: Variable
    builder: ProgramBuilder
    variables: list[Variable]
    places: list[str]
    refused: str | None = None

    def add(self, variable: Variable) -> Place:
        """The place of what the epilogue reads beside the convolution."""
        value = scalar_constant(variable)
        if value is not None:
            return self.builder.instruction("constant", (), variable.dtype, value)
        vector = channel_vector(variable, self.result)
        if vector is not None:
            return self.take(vector, CHANNEL)
        if variable.type.shape != self.result.type.shape:
            self.refused = f"an operand of shape {variable.type} is neither by channel nor of the shape {self.result.type}"
        return self.take(variable, FULL)

    def take(self, variable: Variable, place: str) -> Place:
        """One more operand of a known place."""
        self.variables.append(variable)
        self.places.append(place)
        return self.builder.input(variable.dtype)


def _fused(root: Apply, result: Variable, cone: list[Apply], context: Context) -> Variable | Skip:
    conv, above = result.apply, _above(result, cone)
    masks = masks_read_by(above, result, context)
    if any(is_read_by_all_users(mask.source, root.outputs[0], context) for mask in masks):
        return Skip("the kernels that read the result compute its mask from what they read anyway")
    nodes = list(dict.fromkeys(node for nodes in (*(mask.nodes for mask in masks), above) for node in nodes))
    assert conv is not None
    op: Conv = conv.op  # type: ignore[assignment]
    core, old = conv.inputs[:op.n_core_inputs], conv.inputs[op.n_core_inputs:]
    builder = ProgramBuilder()
    start = builder.input(core[0].dtype)
    operands = _Operands(result, builder, [], [])
    if op.epilogue is not None:
        places = [start, *(operands.take(each, place) for each, place in zip(old, op.epilogue.operands, strict=True))]
        (start,) = builder.inline(op.epilogue.program, places)
    values = add_nodes(builder, nodes, {result: start}, operands.add)
    if operands.refused is not None:
        return Skip(operands.refused)
    if len(operands.variables) > MAX_OPERANDS:
        return Skip(f"the epilogue would have more than {MAX_OPERANDS} operands")
    epilogue = Epilogue(builder.finish([values[root.outputs[0]]]), tuple(operands.places))
    types, bare_result = [each.type for each in core], result.type.with_dtype(core[0].dtype)
    reason = context.target.refuse_epilogue(without_epilogue(op), types, bare_result, epilogue)
    if reason is not None:
        return Skip(reason)
    return apply_op(Conv(op.kind, op.spec, epilogue, op.known), *core, *operands.variables)


RULES: tuple[Rule, ...] = (fuse_into_epilogue,)
