"""NumPy's broadcasting on static shapes, where None is a size that is known only when the function is called."""
from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError, explain_error
from ..graph.types import Shape, TensorType


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape | None:
    """The shape that these broadcast to; None for the whole where two sizes clash.

    A size None beside 1 stays None, beside n it is n (it is n or 1 at run time).

    >>> broadcast_shapes([(None, 1), (3,)]), broadcast_shapes([(None,), (4,)]), broadcast_shapes([(2,), (3,)])
    ((None, 3), (4,), None)
    """
    first = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    ndim = max([len(shape) for shape in shapes])
    result: list[int | None] = []
    for axis in range(-ndim, 0):
        sizes = {shape[axis] for shape in shapes if -axis <= len(shape)} - {1}
        known = sizes - {None}
        if len(known) > 1:
            return None
        result.append(known.pop() if known else None if sizes else 1)
    return tuple(result)


def broadcast_types(what: str, types: Sequence[TensorType]) -> Shape:
    """The common shape of an operation's arguments; a ShapeError that names the shapes where they clash."""
    shape = broadcast_shapes([type.shape for type in types])
    if shape is None:
        raise ShapeError(explain_error(f"{what}: the shapes do not broadcast together", " and ".join(map(str, types)),
                                       "sizes must be equal or 1, counted from the last axis"))
    return shape
