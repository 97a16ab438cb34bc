"""For each op class its implementations on the CPU, best first. The NumPy reference stands behind every list."""
from __future__ import annotations

from functools import cache

from ..graph import Op
from .implementation import Implementation


@cache
def _table() -> dict[type[Op], tuple[Implementation, ...]]:
    from . import convolution, creation, elementwise, indexing, joining, matmul, pooling, random, reductions, softmax

    table: dict[type[Op], tuple[Implementation, ...]] = {}
    for family in (elementwise, reductions, softmax, matmul, convolution, pooling, indexing, joining, creation, random):
        table.update(family.IMPLEMENTATIONS)
    return table


def implementations(op_class: type[Op]) -> tuple[Implementation, ...]:
    """The implementations of an op class, best first; none where only the reference runs it."""
    return _table().get(op_class, ())
