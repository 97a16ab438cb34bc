"""Where the elements of a convolution's tensors lie: sizes and strides as the CUDA kernels take them, whatever the layout.

Kernels for tensor cores know no layout's name: a tensor is a start and strides, so that channels that lie together are channels
with a stride of 1.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ...ops.convolution import Conv
from ...ops.layout import CHANNELS_LAST, plain_shape, plain_strides
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
    conv, op = conv_problem(problem), cast(Conv, problem.op)
    first, second, result = (tensor_strides(operand, op.block(role)) for operand, role in zip(
        (*problem.inputs[:2], problem.outputs[0]), (*op.kind.reads, op.kind.produces), strict=True))
    return ConvGeometry(make_geometry(conv, flatten=False), conv.spec.ndim, first, second, result)


def tensor_strides(operand: Operand, block: int) -> TensorStrides:
    """The strides of a tensor that is plain or has its channels last (`block` is the layout's).

    Along axes of one element they are 0, whatever the operand says; a single channel counts as lying together.
    """
    shape, every = plain_shape(operand.shape, block), plain_strides(operand.strides, block)
    outer, channel, *spatial = (stride if size != 1 else 0 for stride, size in zip(every, shape, strict=True))
    one, two, three = (*(0,) * (3 - len(spatial)), *spatial)
    return TensorStrides(outer, 1 if shape[1] == 1 else channel, (one, two, three))


def refuse_blocks_of_channels(op: Conv) -> str | None:
    """Why tensors in blocks of channels are none that strides describe."""
    blocks = {op.block(role) for role in (*op.kind.reads, op.kind.produces)}
    return None if blocks <= {0, CHANNELS_LAST} else f"channels lie in blocks of {max(blocks)}"


def span(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The greatest distance between elements of a tensor, in elements."""
    return sum(max(0, size - 1) * abs(stride) for size, stride in zip(sizes, strides, strict=True))

