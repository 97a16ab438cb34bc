"""Where the elements of a convolution's tensors lie: sizes and strides as the CUDA kernels take them, whatever the layout.

Kernels for tensor cores know no layout's name: a tensor is a start and strides, so that channels that lie together are channels
with a stride of 1.  What depends on how an op says its layout is `tensor_strides` alone.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ...ops.convolution import Conv
from ..conv_common import Geometry, Triple, conv_problem, make_geometry
from ..kernel import Operand, Problem

LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class TensorStrides:
    """From one image (or filter) of a tensor to the next, from a channel to the next, and along three spatial axes; in elements.

    Leading axes that a problem does not have are of size 1 and stride 0.
    """

    outer: int
    channel: int
    spatial: Triple

    @property
    def steps(self) -> tuple[int, ...]:
        """All but the channel's."""
        return (self.outer, *self.spatial)


@dataclass(frozen=True, slots=True)
class ConvGeometry:
    """A convolution's sizes, and the strides of the tensor read first (an image or response), of the second and of the result.

    `second` are the filters, for WGRAD the responses; `rank` is how many spatial axes there are, the last ones of each triple.
    """

    sizes: Geometry
    rank: int
    first: TensorStrides
    second: TensorStrides
    result: TensorStrides

    @property
    def axes(self) -> tuple[int, ...]:
        """The numbers of the spatial axes that the problem has."""
        return tuple(range(3 - self.rank, 3))


def conv_geometry(problem: Problem) -> ConvGeometry:
    """The geometry of a problem with its operands as they lie."""
    conv = conv_problem(problem)
    first, second, result = (tensor_strides(cast(Conv, problem.op), operand)
                             for operand in (*problem.inputs[:2], problem.outputs[0]))
    return ConvGeometry(make_geometry(conv, flatten=False), conv.spec.ndim, first, second, result)


def tensor_strides(op: Conv, operand: Operand) -> TensorStrides:
    """The strides of one of the op's tensors; along axes of one element they are 0, whatever the operand says."""
    outer, channel, *spatial = (stride if size != 1 else 0 for stride, size in zip(operand.strides, operand.shape, strict=True))
    if operand.shape[1] == 1:
        channel = 1
    one, two, three = (*(0,) * (3 - len(spatial)), *spatial)
    return TensorStrides(outer, channel, (one, two, three))


def span(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The greatest distance between elements of a tensor, in elements."""
    return sum(max(0, size - 1) * abs(stride) for size, stride in zip(sizes, strides, strict=True))

