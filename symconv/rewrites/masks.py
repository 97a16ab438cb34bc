"""Masks that gradients multiply with (of relu, clip, maximum): where they can be computed again instead of being stored.

A mask is a bool tensor made by cheap elementwise operations.  Where it depends on one tensor of its shape (its source) and else
on small operands only, a kernel that needs the mask can as well read the source: the mask is then never written to memory.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graph import Apply, Variable
from ..ops.elementwise import Elementwise
from ..ops.reductions import Reduce
from .context import Context
from .programs import scalar_constant
from .recomputation import CHEAP

MAX_NODES = 12
"""How many operations may be done again for a mask."""
MAX_LOOKED_AT = 24


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask, the nodes that compute it (inputs before readers) and the one large tensor that they read."""

    value: Variable
    nodes: tuple[Apply, ...]
    source: Variable


def masks_read_by(nodes: Sequence[Apply], like: Variable, context: Context) -> list[Mask]:
    """The masks of the shape of `like` that nodes read and that can be computed from one tensor."""
    inside = {node.outputs[0] for node in nodes}
    read = dict.fromkeys(each for node in nodes for each in node.inputs if each not in inside)
    found = (_mask(each, context) for each in read if each.dtype == "bool" and each.type.shape == like.type.shape)
    return [mask for mask in found if mask is not None]


def _mask(value: Variable, context: Context) -> Mask | None:
    """How a mask is computed; None where that takes more than one large tensor, or much."""
    nodes, sources = dict[Apply, None](), dict[Variable, None]()
    pending = [value]
    while pending:
        each = pending.pop()
        if each.apply is None or not _is_done_again(each, value, context):
            sources[each] = None
        else:
            nodes.pop(each.apply, None)
            nodes[each.apply] = None  # behind all its readers so far
            pending += [below for below in each.apply.inputs
                        if below.type.shape == value.type.shape and scalar_constant(below) is None]
        if len(nodes) > MAX_NODES or len(sources) > 1:
            return None
    return Mask(value, tuple(reversed(nodes)), *sources) if nodes and sources else None


def _is_done_again(each: Variable, mask: Variable, context: Context) -> bool:
    """Whether a value below a mask is a cheap operation's that no kernel needs in memory."""
    node = each.apply
    if node is None or not isinstance(node.op, Elementwise) or node.op.name not in CHEAP or each.type.shape != mask.type.shape:
        return False
    if each is mask:
        return True
    readers = context.old_readers(each)
    return readers is not None and not context.is_result(each) and all(isinstance(reader.op, Elementwise) for reader in readers)


def is_read_by_all_users(source: Variable, value: Variable, context: Context) -> bool:
    """Whether several kernels read a value, all of them elementwise or reductions, and these read `source` too."""
    users = context.old_readers(value)
    if users is None or len(users) < 2 or context.is_result(value):
        return False
    if not all(isinstance(user.op, (Elementwise, Reduce)) for user in users):
        return False
    return any(_depends_on(user, source, value) for user in users)


def _depends_on(user: Apply, source: Variable, value: Variable) -> bool:
    """Whether a node reads `source` directly or through a few elementwise operations (those of `value` left out)."""
    seen = {value}
    pending = list(user.inputs)
    while pending and len(seen) < MAX_LOOKED_AT:
        each = pending.pop()
        if each is source:
            return True
        if each in seen or each.apply is None or not isinstance(each.apply.op, Elementwise):
            continue
        seen.add(each)
        pending += [below for below in each.apply.inputs if below.type.shape == source.type.shape]
    return False
