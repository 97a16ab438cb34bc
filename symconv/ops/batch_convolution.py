"""How a convolution of any kind is applied to a batch of one of its tensors (`batching.py`): as one larger convolution.

The tensors of a convolution share axes two by two: image and response the images n, response and filters the channels k of
the response, image and filters the channels c of the image.  A batch of one tensor that it reads is joined with the axis
which that tensor shares with the result; the other tensor does not have it, and stays as it is.  With groups the channels of
every group are joined with the batch.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from ..graph import Variable, apply_op
from .batching import BatchedNode, batch_rule
from .convolution import Conv
from .shape import Size, dimshuffle, reshape, shape_sizes
from .sizes import joined_size, known_sizes, size_vector
from .spec import Kind, Role

_SHARED: dict[frozenset[Role], dict[Role, int]] = {
    frozenset("xy"): {"x": 0, "y": 0}, frozenset("yw"): {"y": 1, "w": 0}, frozenset("xw"): {"x": 1, "w": 1}}
"""Where in each of two tensors the axis stands that they share."""


@dataclass(frozen=True, slots=True)
class _Joined:
    """An axis in which a tensor holds [groups × batch × inner]."""

    axis: int
    groups: int

    def join(self, x: Variable, batch: Size) -> tuple[Variable, Size]:
        """x of shape [batch, …] with the batch in the axis; and the size of inner."""
        whole = shape_sizes(x)[1:]
        inner = _part(whole[self.axis], self.groups)
        before, after = whole[:self.axis], whole[self.axis + 1:]
        parted = reshape(x, (batch, *before, self.groups, inner, *after))
        place = len(before) + 1
        moved = dimshuffle(parted, [*range(1, place + 1), 0, *range(place + 1, parted.ndim)])
        return reshape(moved, (*before, joined_size((self.groups, batch, inner)), *after)), inner

    def part(self, x: Variable, batch: Size, inner: Size) -> Variable:
        """The opposite: [batch, …] from a result that has the batch in the axis."""
        whole = shape_sizes(x)
        before, after = whole[:self.axis], whole[self.axis + 1:]
        parted = reshape(x, (*before, self.groups, batch, inner, *after))
        place = len(before) + 1
        moved = dimshuffle(parted, [place, *range(place), *range(place + 1, parted.ndim)])
        return reshape(moved, (batch, *before, joined_size((self.groups, inner)), *after))


def _part(size: Size, groups: int) -> Size:
    return size if groups == 1 else size // groups


@batch_rule(Conv)
def _convolution(work: BatchedNode) -> Variable | None:
    op: Conv = work.op
    if op.epilogue is not None or op.layout is not None or work.batched[:2] == (True, True) or any(work.batched[2:]):
        return None
    place = work.batched.index(True)
    read, made = op.kind.reads[place], op.kind.produces
    shared = _SHARED[frozenset((read, made))]
    ends = {role: _Joined(axis, op.spec.groups if (role, axis) in (("x", 1), ("y", 1), ("w", 0)) else 1)
            for role, axis in shared.items()}
    tensors = list(work.inputs[:2])
    tensors[place], inner = ends[read].join(tensors[place], work.size)
    result = _applied(op, tensors, work, ends[made].axis)
    return ends[made].part(result, work.size, inner)


def _applied(op: Conv, tensors: list[Variable], work: BatchedNode, axis: int) -> Variable:
    """The convolution of the joined tensors; the result's axis is as many times longer as the batch is large."""
    if op.kind is Kind.FPROP:
        return apply_op(op, *tensors)
    sizes: list[Size] = [work.inputs[2][place] if size is None else size
                         for place, size in enumerate(work.node.outputs[0].type.shape)]
    sizes[axis] = joined_size((work.size, sizes[axis]))
    return apply_op(replace(op, known=tuple(known_sizes(sizes))), *tensors, size_vector(sizes))
