"""Gradients of a convolution in front of max pooling read what the pooling received, not an image that is mostly zeros.

    wgrad(x, pool'(y, g)) = pooled_wgrad(x, g, places),   dgrad(pool'(y, g), w) = pooled_dgrad(w, g, places),
    pool(y) = pooled                                      where (pooled, places) = pool_places(y)

for windows that lie apart, inside the image: one element of each has the gradient, of a 2×2 window one of four.  It is done where
nothing else reads pool'(y, g), no convolution kernel is forced, and the estimated times say that it pays.

Floats: the same products, without those with the zeros that are no maxima (so an infinity in x or w meets no zero there).
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..config import config
from ..graph import Apply, Op, Variable
from ..graph.node import make_apply
from ..ops.convolution import Conv
from ..ops.lowered.pooled_convolution import PooledConv, PoolPlaces, has_places
from ..ops.pooling import MaxPoolGrad, Pool
from ..ops.spec import Kind
from .context import Context


def skip_zeros_of_pooling(context: Context) -> Mapping[Variable, Variable]:
    """The gradients of convolutions in front of max pooling, and the result of the pooling, as what knows the places of maxima."""
    if not (context.has_op(MaxPoolGrad) and context.has_op(Conv)) or config.conv.implementation:
        return {}
    found: dict[Variable, Variable] = {}
    for node in context.graph.nodes:
        if isinstance(node.op, MaxPoolGrad) and has_places(node.op.pool):
            found.update(_replacements(node, context))
    return found


def _replacements(node: Apply, context: Context) -> Mapping[Variable, Variable]:
    """What takes the places of a pooling, and of the convolutions that read its gradient; nothing where that does not pay."""
    gradient, (image, received) = node.outputs[0], node.inputs
    readers = context.graph.readers.get(gradient, [])
    if context.is_result(gradient) or not readers or not all(_is_gradient(reader, gradient) for reader in readers):
        return {}
    pool = node.op.pool  # type: ignore[attr-defined]
    pooled, places = make_apply(PoolPlaces(pool), [image], node.source).outputs
    made = {reader.outputs[0]: _made(reader, pool, received, places) for reader in readers}
    before = [each for each in context.graph.readers.get(image, ()) if each.op == pool]
    apart = _seconds([node, *before, *readers], context)
    together = _seconds([each.apply for each in (pooled, *made.values()) if each.apply is not None], context)
    if isinstance(together, str) or isinstance(apart, str) or together >= apart:
        reason = together if isinstance(together, str) else "" if isinstance(apart, str) else \
            f"without zeros an estimated {together * 1e6:.0f} µs instead of {apart * 1e6:.0f} µs"
        context.decline(node, reason)
        return {}
    return {**made, **{each.outputs[0]: pooled for each in before}}


def _is_gradient(reader: Apply, gradient: Variable) -> bool:
    """Whether a node is a convolution's WGRAD or DGRAD that reads the gradient as its response."""
    op = reader.op
    if not isinstance(op, Conv) or op.kind is Kind.FPROP or op.epilogue is not None or op.layout is not None:
        return False
    response = 1 if op.kind is Kind.WGRAD else 0
    return reader.inputs[response] is gradient and reader.inputs[1 - response] is not gradient


def _made(reader: Apply, pool: Pool, received: Variable, places: Variable) -> Variable:
    op: Conv = reader.op  # type: ignore[assignment]
    conv = replace(op, known=reader.outputs[0].type.shape)
    other = reader.inputs[0 if op.kind is Kind.WGRAD else 1]
    return make_apply(PooledConv(conv, pool), [other, received, places], reader.source).outputs[0]


def _seconds(nodes: Sequence[Apply], context: Context) -> float | str:
    """The estimated time of nodes, or why one of them has no kernel."""
    total = 0.0
    for node in nodes:
        op: Op = node.op
        seconds = context.target.estimate(op, [each.type for each in node.inputs], [each.type for each in node.outputs])
        if isinstance(seconds, str):
            return seconds
        total += seconds
    return math.inf if math.isnan(total) else total
