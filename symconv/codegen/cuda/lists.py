"""For each op class its implementations on CUDA, best first."""
from __future__ import annotations

from functools import cache

from ...graph import Op
from ..implementation import AnyImplementation


@cache
def cuda_table() -> dict[type[Op], tuple[AnyImplementation, ...]]:
    """The implementations of each op class that has any."""
    from ..cudnn import implementation as cudnn
    from . import (
        arg_reductions,
        asserting,
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
                   creation, asserting):
        table.update(family.IMPLEMENTATIONS)
    for op_class, first in cudnn.IMPLEMENTATIONS.items():
        table[op_class] = (*first, *table[op_class])
    return table
