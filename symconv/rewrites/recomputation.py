"""Which elementwise values are computed again by every kernel that reads them, because that moves less memory.

Kept, a value costs the reading of what it is computed from, a writing, and a reading by each kernel.  Computed again, it
costs each kernel the reading of what it is computed from, as far as the kernel does not read that anyway (or can compute it
from what it reads).  What it is computed from is found through the cheap values below it that nothing else reads, for these
are computed again with it.
Small operands (by channel, say) cost nothing.
"""
from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from .. import dtypes
from ..graph import Apply, Variable
from ..ops.elementwise import Elementwise
from .context import Context

CHEAP = frozenset({"add", "sub", "mul", "neg", "abs", "maximum", "minimum", "relu", "where", "cast", "eq", "ne", "lt", "le",
                   "gt", "ge", "and_", "or_", "xor", "invert", "square", "isnan", "isinf", "isfinite", "clip"})
MAX_AGAIN = 8
"""How many instructions may be computed again together."""
SMALL_SHARE = 16
"""An operand this much smaller than the result counts as small."""
LEAST_BYTES = 1 << 16
"""A value below this size stays in the cache nearest to the processor, where keeping it costs little."""

Reading = tuple[tuple[int | None, ...], Collection[Variable]]
"""Of one kernel: the shape of its elements, and the variables that it reads so far."""


def pays_again(node: Apply, kernels: Sequence[Reading], context: Context) -> bool:
    """Whether each of the kernels should compute the node's value itself."""
    (value,) = node.outputs
    if any(shape != value.type.shape for shape, _ in kernels) or not value.type.is_static:
        return False
    size = _bytes(value)
    sources = _sources(node, context)
    if sources is None or size < LEAST_BYTES:
        return False
    kept = size * (1 + len(kernels)) + sum(map(_bytes, sources))
    least = _least(value)
    again = sum(_bytes(source) for _, read in kernels for source in sources if not _is_at_hand(source, read, least, context))
    return again < kept


def _is_at_hand(variable: Variable, read: Collection[Variable], least: int, context: Context, depth: int = 4) -> bool:
    """Whether a kernel reads a variable, or can compute it by a few cheap operations from what it reads."""
    if variable in read:
        return True
    node = variable.apply
    if depth == 0 or node is None or not isinstance(node.op, Elementwise) or node.op.name not in CHEAP:
        return False
    if context.is_result(variable):
        return False
    return all(_is_at_hand(each, read, least, context, depth - 1) for each in node.inputs if not _is_small(each, least))


def _least(value: Variable) -> int:
    """Operands of up to so many elements are small beside a value."""
    return math.prod(value.type.static_shape) // SMALL_SHARE


def _is_small(variable: Variable, least: int) -> bool:
    return math.prod(variable.type.static_shape) <= least


def _sources(node: Apply, context: Context) -> list[Variable] | None:
    """The large variables that a value is computed from; None where computing it again is dear."""
    cone, sources = [node], dict[Variable, None]()
    least = _least(node.outputs[0])
    for current in cone:
        if current.op.name not in CHEAP or len(cone) > MAX_AGAIN:
            return None
        for each in current.inputs:
            if _is_small(each, least):
                continue
            below = each.apply
            if below is None or not isinstance(below.op, Elementwise) or not context.has_one_reader(each):
                sources[each] = None
            elif below not in cone:
                cone.append(below)
    return list(sources)


def _bytes(variable: Variable) -> int:
    return math.prod(variable.type.static_shape) * dtypes.itemsize(variable.dtype)
