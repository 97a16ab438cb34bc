"""A depthwise convolution, the 1×1 convolution behind it and perhaps the one before it run as one kernel.

    project(depthwise(expand(x))) = chain(x)

with their epilogues (MobileNetV2's inverted residual), where all lie in blocks of channels and nothing else reads what is in the
middle.  It is done where the estimated time of the chain is below the sum of its parts': what is in the middle is the
larger part of the traffic.

Floats: the same sums in another order, as between any two convolution kernels.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..graph import Apply, Variable
from ..graph.node import make_apply
from ..graph.provenance import merge_sources
from ..ops.convolution import Conv
from ..ops.lowered.conv_chain import ConvChain
from ..ops.spec import Kind
from .context import Context


def join_chains(context: Context) -> Mapping[Variable, Variable]:
    """The result of every projection whose chain pays, as the result of the chain."""
    if not context.has_op(Conv):
        return {}
    joined: dict[Variable, Variable] = {}
    for node in context.graph.nodes:
        stages = _stages(node, context)
        chain = _best_chain(stages, context) if stages else None
        if chain is not None:
            joined[node.outputs[0]] = chain
    return joined


def _stages(node: Apply, context: Context) -> list[Apply]:
    """The convolutions of a chain that ends in a node, in order: none, two, or three."""
    if not _is_pointwise(node):
        return []
    depthwise = _only_reader(node, context)
    if depthwise is None or not _is_depthwise(depthwise):
        return []
    expand = _only_reader(depthwise, context)
    return [expand, depthwise, node] if expand is not None and _is_pointwise(expand) else [depthwise, node]


def _best_chain(stages: Sequence[Apply], context: Context) -> Variable | None:
    """The chain, of all stages or the last two, with which they take least; None, and the reasons noted, where none pays."""
    seconds = [_seconds(stage, context) for stage in stages]
    best, least, reasons = None, sum(seconds), []
    for first in range(len(stages) - 1):
        chain = _chain(stages[first:])
        (node,) = (chain.apply,)
        assert node is not None
        together = context.target.estimate(node.op, [each.type for each in node.inputs], [chain.type])
        if isinstance(together, str):
            reasons.append(together)
        elif sum(seconds[:first]) + together < least:
            best, least = chain, sum(seconds[:first]) + together
        else:
            reasons.append(f"{len(stages) - first} convolutions together an estimated {together * 1e6:.0f} µs instead of "
                           f"{sum(seconds[first:]) * 1e6:.0f} µs")
    if best is None:
        context.decline(stages[-1], "; ".join(reasons))
    return best


def _chain(stages: Sequence[Apply]) -> Variable:
    inputs = [stages[0].inputs[0], *(each for stage in stages for each in stage.inputs[1:])]
    sources = merge_sources(*(stage.source for stage in stages))
    return make_apply(ConvChain(tuple(stage.op for stage in stages)), inputs, sources).outputs[0]  # type: ignore[misc]


def _seconds(stage: Apply, context: Context) -> float:
    found = context.target.estimate(stage.op, [each.type for each in stage.inputs], [stage.outputs[0].type])
    return math.inf if isinstance(found, str) else found


def _only_reader(node: Apply, context: Context) -> Apply | None:
    """The convolution that makes a node's image, where nothing else reads its result."""
    image = node.inputs[0]
    return image.apply if image.apply is not None and node.inputs.count(image) == 1 and context.has_one_reader(image) else None


def _is_blocked(node: Apply) -> bool:
    op = node.op
    return isinstance(op, Conv) and op.kind is Kind.FPROP and op.layout is not None and op.layout.x == op.layout.y > 0


def _is_pointwise(node: Apply) -> bool:
    if not _is_blocked(node):
        return False
    spec, taps = node.op.spec, math.prod(node.inputs[1].type.static_shape[2:])  # type: ignore[attr-defined]
    return bool(taps == spec.groups == 1 and set(spec.stride) == {1} and not any(spec.pad_lo + spec.pad_hi))


def _is_depthwise(node: Apply) -> bool:
    if not _is_blocked(node):
        return False
    filters = node.inputs[1].type.static_shape
    return bool(filters[1] == 1 and filters[0] == node.op.spec.groups)  # type: ignore[attr-defined]
