"""Tensors brought into the form that convolutions on tensor cores copy: channels together, in whole vectors of 16 bytes.

A plain (N, C, H, W) image would have to be gathered element by element, and each element once for every tap; one pass over it
before is less work for all kernels but 1x1 ones.  Filters are packed by a step of their own, which for state that rests runs once;
DGRAD wants them turned besides.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from ... import dtypes
from ..helpers import SUFFIXES
from ..scalar_printer import storage_type
from .conv_geometry import TensorStrides
from .conv_tensor_tiles import VECTOR_BYTES
from .kernel import CudaKernel, Scalar
from .printing import render_cuda

_SIDE = 32  # of a packing kernel's tile


@dataclass(frozen=True, slots=True)
class Factor:
    """A tensor as a factor of the product: `groups` x `outer` x three axes of vectors of `channels` elements.

    `group_step` is from one group's part to the next.
    """

    dtype: str
    groups: int
    outer: int
    axes: tuple[int, int, int]
    channels: int
    strides: TensorStrides
    group_step: int

    @property
    def vector(self) -> int:
        """Elements in 16 bytes."""
        return VECTOR_BYTES // dtypes.itemsize(self.dtype)

    @property
    def padded(self) -> int:
        """Channels in whole vectors."""
        return -(-self.channels // self.vector) * self.vector

    @property
    def is_ready(self) -> bool:
        """Whether it can be read as it lies: channels together, and everything else in steps of whole vectors (or it is empty)."""
        if self.places * self.channels == 0:
            return True
        steps = [stride for size, stride in zip((self.outer, *self.axes), self.strides.steps, strict=True) if size > 1]
        steps += [self.group_step] if self.groups > 1 else []
        return self.strides.channel == 1 and all(step % self.vector == 0 for step in steps)

    @property
    def is_whole(self) -> bool:
        """Whether channels are whole vectors."""
        return self.channels == self.padded

    @property
    def places(self) -> int:
        """Vectors of channels that there are."""
        return self.groups * self.outer * math.prod(self.axes)

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed tensor."""
        return self.places * self.padded * dtypes.itemsize(self.dtype)

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written to pack it; none if it is ready."""
        read = self.places * self.channels * dtypes.itemsize(self.dtype)
        return 0 if self.is_ready else read + self.packed_bytes

    def ready(self) -> Factor:
        """The same tensor as the product reads it: as it lies, or packed in the order of its groups, outer axis and axes."""
        if self.is_ready:
            return self
        steps = [self.padded]
        for size in reversed((self.outer, *self.axes)):
            steps.append(steps[-1] * size)
        three, two, one, outer, group = steps
        strides = TensorStrides(outer, 1, (one, two, three))
        return Factor(self.dtype, self.groups, self.outer, self.axes, self.padded, strides, group)

    @property
    def extent(self) -> int:
        """The greatest distance between two of its elements."""
        sizes = (self.groups, self.outer, *self.axes, self.channels)
        steps = (self.group_step, *self.strides.steps, self.strides.channel)
        return sum(max(0, size - 1) * abs(step) for size, step in zip(sizes, steps, strict=True))


def packing_blocks(factor: Factor) -> int:
    """Blocks of the kernel that packs it."""
    return -(-factor.places // _SIDE) * -(-factor.padded // _SIDE)


def packing_kernel(factor: Factor, source: int, target: int) -> CudaKernel:
    """The launch that packs a tensor, from one buffer to another."""
    along_channels = factor.strides.channel == 1
    name = f"sc_conv_pack_{SUFFIXES[factor.dtype]}_{'channels' if along_channels else 'places'}"
    sizes = (factor.groups, factor.outer, *factor.axes)
    steps = (factor.group_step, *factor.strides.steps)
    text = render_cuda("conv_tensor_pack.cu.j2", name=name, type=storage_type(factor.dtype), along_channels=along_channels,
                       title=f"{factor.dtype} tensors with their channels together", axes=(0, 1, 2, 3, 4))
    channel_tiles = -(-factor.padded // _SIDE)
    scalars = [Scalar("int64", factor.places), Scalar("int32", factor.channels), Scalar("int32", factor.padded),
               Scalar("int32", channel_tiles), Scalar("int64", factor.strides.channel)]
    for size, step in zip(sizes, steps, strict=True):
        scalars += [Scalar("int32", size), Scalar("int64", step)]
    return CudaKernel(name, text, (packing_blocks(factor), 1, 1), (256, 1, 1), (target, source), tuple(scalars))
