"""Scale and offset by channel after a convolution (inference batch normalisation) become part of weights and bias.

    conv(x, w) · s = conv(x, w · s)            conv(x, w) / s = conv(x, w / s)
    (conv(x, w) ± b) · s = conv(x, w · s) ± b · s
    (conv(x, w) ± a) ± b = conv(x, w) ± (a ± b)

for s, a and b that vary by output channel only.  Conditions: nothing else reads the convolution's result or what is between;
the weights have no other reader; float32 or float64 (a product of two float16 weights loses digits that the result would
keep).

It is done where it pays: where w and s are constants or state that the function does not update, so that the product is made
once (at compile time, or for each change of that state), or where the target cannot run the scale inside the convolution's kernel;
two offsets are merged where both are such.  Else scale and offset go into the epilogue (`convolution_fusion`), which costs
less than new weights on every call.

Floats: the sum is of scaled products instead of the scaled sum: the last bits.
"""
from __future__ import annotations

from dataclasses import replace

from ..graph import Apply, Constant, Variable, apply_op
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.epilogue import CHANNEL, Epilogue
from ..ops.scalar import single
from ..ops.shape import dimshuffle
from ..ops.spec import Kind
from .context import Context
from .convolution_spec import conv_of
from .rule import Answer, Rule, Skip, rule

_OFFSETS = ("add", "sub")


def channel_vector(operand: Variable, result: Variable) -> Variable | None:
    """The vector [K] of an operand that varies along axis 1 of a convolution's result only; None for any other."""
    if result.ndim < 3:
        return None
    lead = operand.ndim - (result.ndim - 1)
    channels = result.type.shape[1]
    sizes = dict(enumerate(operand.type.shape))
    if lead in sizes and sizes.pop(lead) != channels:
        return None
    if channels is None or (lead not in range(operand.ndim) and channels != 1) or any(size != 1 for size in sizes.values()):
        return None
    return dimshuffle(operand, (lead,) if lead in range(operand.ndim) else ("x",))


def plain_conv(variable: Variable, context: Context) -> Apply | None:
    """The FPROP without an epilogue that makes a variable which nothing else reads."""
    conv = conv_of(variable)
    if conv is None or conv.op.epilogue is not None or conv.op.kind is not Kind.FPROP:  # type: ignore[attr-defined]
        return None
    return conv if context.has_one_reader(variable) else None


@rule(Elementwise, scalar={"mul", "true_div"})
def fold_scale(node: Apply, context: Context) -> Answer:
    """(conv(x, w) ± b) · s = conv(x, w · s) ± b · s"""
    for place, value in enumerate(node.inputs[:1] if node.op.name == "true_div" else node.inputs):
        scale = channel_vector(node.inputs[1 - place], node.outputs[0])
        offset = _offset(value, context)
        conv = plain_conv(value if offset is None else offset[1], context)
        if scale is None or conv is None or value.type != node.outputs[0].type:
            continue
        reason = _why_not(conv, node.inputs[1 - place], node, context)
        if reason is not None:
            return Skip(reason)
        return _scaled(node, conv, scale, offset)
    return None


def _offset(value: Variable, context: Context) -> tuple[Elementwise, Variable, Variable] | None:
    """(op, conv result, channel operand) where a value is a convolution's result plus or minus something by channel."""
    node = value.apply
    if node is None or not isinstance(node.op, Elementwise) or node.op.scalar not in _OFFSETS:
        return None
    if not context.has_one_reader(value):
        return None
    for place in (0, 1) if node.op.scalar == "add" else (0,):
        conv, other = node.inputs[place], node.inputs[1 - place]
        if conv_of(conv) is not None and conv.type == value.type and channel_vector(other, value) is not None:
            return node.op, conv, other
    return None


def _why_not(conv: Apply, scale: Variable, node: Apply, context: Context) -> str | None:
    w, (result,) = conv.inputs[1], conv.outputs
    if w.dtype not in ("float32", "float64"):
        return f"scaled {w.dtype} weights would lose digits"
    if context.is_still(w) and context.is_still(scale):
        return None
    if not isinstance(w, Constant) and context.readers(w) != 1:
        return "the weights have another reader"
    epilogue = Epilogue(single(node.op.name, (result.dtype, scale.dtype), result.dtype), (CHANNEL,))
    types = [each.type for each in conv.inputs]
    if context.target.refuse_epilogue(conv.op, types, result.type, epilogue) is None:
        return "the scale costs less inside the convolution's kernel than new weights on every call"
    return None


def _scaled(node: Apply, conv: Apply, scale: Variable, offset: tuple[Elementwise, Variable, Variable] | None) -> Variable:
    x, w = conv.inputs
    factors = dimshuffle(scale, [0, *["x"] * (w.ndim - 1)])
    result = apply_op(conv.op, x, apply_op(node.op, w, factors))
    if offset is None:
        return result
    op, _, other = offset
    by_channel = ["x", 0, *["x"] * (result.ndim - 2)]
    vector = channel_vector(other, result)
    assert vector is not None
    return apply_op(op, result, dimshuffle(apply_op(node.op, vector, scale), by_channel))


@rule(Elementwise, scalar=set(_OFFSETS))
def merge_offsets(node: Apply, context: Context) -> Answer:
    """(conv(x, w) ± a) ± b = conv(x, w) ± (a ± b)"""
    (result,) = node.outputs
    for place in (0, 1) if node.op.name == "add" else (0,):
        inner = _offset(node.inputs[place], context)
        second = channel_vector(node.inputs[1 - place], result)
        if inner is None or second is None or node.inputs[place].type != result.type:
            continue
        if plain_conv(inner[1], context) is None or not all(map(context.is_still, (inner[2], second))):
            continue
        first = channel_vector(inner[2], result)
        assert first is not None
        signs = (inner[0].scalar, node.op.name)
        both = {("add", "add"): lambda a, b: a + b, ("add", "sub"): lambda a, b: a - b,
                ("sub", "add"): lambda a, b: b - a, ("sub", "sub"): lambda a, b: -(a + b)}[signs](first, second)
        return inner[1] + dimshuffle(both, ["x", 0, *["x"] * (result.ndim - 2)])
    return None


def without_epilogue(op: Conv) -> Conv:
    """The same convolution with nothing fused."""
    return replace(op, epilogue=None)


RULES: tuple[Rule, ...] = (fold_scale, merge_offsets)
