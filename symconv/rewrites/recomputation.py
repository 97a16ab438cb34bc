"""Which elementwise values are computed again by every kernel that reads them, because that moves less memory.

Kept, a value costs the reading of what it is computed from, a writing, and a reading by each kernel.  Computed again, it
costs each kernel the reading of what it is computed from, as far as the kernel does not read that anyway.  What it is
computed from is found through the cheap values below it that nothing else reads, for these are computed again with it.
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
                   "gt", "ge", "and_", "or_", "xor", "invert", "square"})
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
    again = sum(_bytes(source) for _, read in kernels for source in sources if source not in read)
    return again < kept


def _sources(node: Apply, context: Context) -> list[Variable] | None:
    """The large variables that a value is computed from; None where computing it again is dear."""
    cone, sources = [node], dict[Variable, None]()
    least = math.prod(node.outputs[0].type.static_shape) // SMALL_SHARE
    for current in cone:
        if current.op.name not in CHEAP or len(cone) > MAX_AGAIN:
            return None
        for each in current.inputs:
            if math.prod(each.type.static_shape) <= least:
                continue
            below = each.apply
            if below is None or not isinstance(below.op, Elementwise) or not context.has_one_reader(each):
                sources[each] = None
            elif below not in cone:
                cone.append(below)
    return list(sources)


def _bytes(variable: Variable) -> int:
    return math.prod(variable.type.static_shape) * dtypes.itemsize(variable.dtype)
