"""For each device and op class its implementations, best first. The NumPy reference stands behind every list."""
from __future__ import annotations

from functools import cache

from ..graph import Op
from .implementation import AnyImplementation, Implementation


@cache
def _table() -> dict[type[Op], tuple[Implementation, ...]]:
    from . import (
        asserting,
        conv_pooled,
        convolution,
        creation,
        elementwise,
        indexing,
        joining,
        matmul,
        pooling,
        random,
        reductions,
        softmax,
    )

    table: dict[type[Op], tuple[Implementation, ...]] = {}
    for family in (elementwise, reductions, softmax, matmul, convolution, conv_pooled, pooling, indexing, joining, creation, random,
                   asserting):
        table.update(family.IMPLEMENTATIONS)
    return table


def implementations(op_class: type[Op], device: str = "cpu") -> tuple[AnyImplementation, ...]:
    """The implementations of an op class on a device, best first; none where only the reference runs it.

    The emulator runs what is generated for CUDA.
    """
    if device == "cpu":
        return _table().get(op_class, ())
    from .cuda.lists import cuda_table

    return cuda_table().get(op_class, ())
