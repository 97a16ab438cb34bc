"""For each op class its implementations on CUDA, best first."""
from __future__ import annotations

from functools import cache

from ...graph import Op
from ..implementation import AnyImplementation


@cache
def cuda_table() -> dict[type[Op], tuple[AnyImplementation, ...]]:
    """The implementations of each op class that has any."""
    from . import (
        arg_reductions,
        convolution,
        creation,
        elementwise,
        indexing,
        joining,
        matmul,
        pooling,
        reductions,
        softmax,
        subtensors,
    )

    table: dict[type[Op], tuple[AnyImplementation, ...]] = {}
    for family in (elementwise, reductions, arg_reductions, softmax, matmul, convolution, pooling, indexing, subtensors, joining,
                   creation):
        table.update(family.IMPLEMENTATIONS)
    return table
