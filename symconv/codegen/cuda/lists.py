"""For each op class its implementations on CUDA, best first."""
from __future__ import annotations

from functools import cache

from ...graph import Op
from ..implementation import AnyImplementation


@cache
def cuda_table() -> dict[type[Op], tuple[AnyImplementation, ...]]:
    """The implementations of each op class that has any."""
    from . import arg_reductions, convolution, creation, elementwise, indexing, joining, matmul, pooling, reductions, softmax, subtensors

    table: dict[type[Op], tuple[AnyImplementation, ...]] = {}
    for family in (arg_reductions, elementwise, convolution, creation, indexing, joining, matmul, pooling, reductions, softmax, subtensors):
        table.update(family.IMPLEMENTATIONS)
    return table
