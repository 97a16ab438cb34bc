"""Which reductions go through their elements together, in one kernel.

Those over the same axes of elements of one shape, that read a large variable in common: directly, or through elementwise
operations, which then become part of the kernel.  None may depend on another: the level of a node is the number of reductions
on the longest path to it, and only reductions of one level are put together.  A path from one group to another then always
rises, so that no group depends on itself.

Floats: each sum as before; nothing changes but the places where a long sum is cut into parts.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterable

from ..graph import Apply, FunctionGraph, Variable
from ..ops.elementwise import Elementwise
from ..ops.reductions import Reduce

MAX_RESULTS = 4
"""More accumulators than this do not fit the registers."""
MAX_LOOKED_AT = 32


def reduction_groups(graph: FunctionGraph) -> list[tuple[Apply, ...]]:
    """The reductions of a graph (those without a prologue), each in one group; most groups have one member."""
    by_kind: dict[Hashable, list[tuple[list[Apply], set[Variable]]]] = {}
    levels = _levels(graph)
    for node in graph.nodes:
        if isinstance(node.op, Reduce) and node.op.prologue is None:
            groups = by_kind.setdefault((levels[node], node.op.axes, node.op.keepdims, node.inputs[0].type.shape), [])
            _place(node, groups)
    return [tuple(nodes) for groups in by_kind.values() for nodes, _ in groups]


def _place(node: Apply, groups: list[tuple[list[Apply], set[Variable]]]) -> None:
    """Into the first group with which it has a variable in common, else into a new one."""
    read = set(_read_by(node))
    for nodes, variables in groups:
        if len(nodes) < MAX_RESULTS and variables & read:
            nodes.append(node)
            variables |= read
            return
    groups.append(([node], read))


def _read_by(node: Apply) -> Iterable[Variable]:
    """The large variables on the way down from a reduction through elementwise nodes of its elements' shape."""
    shape = node.inputs[0].type.shape
    found = dict.fromkeys(node.inputs)
    pending = list(node.inputs)
    while pending and len(found) < MAX_LOOKED_AT:
        below = pending.pop().apply
        if below is None or not isinstance(below.op, Elementwise):
            continue
        new = [each for each in below.inputs if each.type.shape == shape and each not in found]
        found.update(dict.fromkeys(new))
        pending.extend(new)
    return found



def _levels(graph: FunctionGraph) -> dict[Apply, int]:
    """For each node the number of reductions on the longest path that ends with it."""
    levels: dict[Apply, int] = {}
    for node in graph.nodes:
        below = max((levels[each.apply] for each in node.inputs if each.apply is not None), default=0)
        levels[node] = below + isinstance(node.op, Reduce)
    return levels
