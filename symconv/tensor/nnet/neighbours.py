"""Patches of images as the rows of a matrix, and back; Theano's `nnet.neighbours`."""
from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ...graph import Variable
from ...ops.constants import as_variable
from ...ops.creation import arange, zeros
from ...ops.effects import Assert
from ...ops.elementwise import eq
from ...ops.indexing import getitem, set_subtensor
from ...ops.padding import pad
from ...ops.shape import Size, dimshuffle, reshape, shape_sizes
from ...ops.sizes import as_sizes, joined_size

__all__ = ["images2neibs", "neibs2images"]

MODES = ("valid", "ignore_borders", "half", "full", "wrap_centered")


def images2neibs(images: Any, neib_shape: Any, neib_step: Any = None, mode: str = "valid") -> Variable:
    """The patches of (N, C, H, W) images as rows [N·C·rows·columns, height·width]: by image, channel, place in the grid.

    Args:
        images: a tensor of rank 4.
        neib_shape: height and width of a patch, ints from 1.
        neib_step: how far apart patches start, two ints from 1; by default `neib_shape`, so that they tile the image.
        mode: "valid": the patches must cover the image (a ShapeError, at run time where sizes are not known before);
            "ignore_borders": what is left at the ends is left out; "half", "full": as "valid", of the image padded on all
            sides with zeros, by half a patch or by all of it but one pixel; "wrap_centered": a patch (of odd sizes) around every
            step-th pixel, which takes up the image from the other side where it reaches over an end.

    Raises:
        GraphTypeError, ArgumentError, ShapeError: no images, no such patch or mode, patches that do not fit.

    Theano: `nnet.neighbours.images2neibs` (there, some modes had no gradient).

    >>> import numpy as np
    >>> images2neibs(np.arange(16).reshape(1, 1, 4, 4), (2, 2)).eval()[1].tolist()
    [2, 3, 6, 7]
    """
    images = _checked_images(images)
    shape = _two("neib_shape", neib_shape)
    step = shape if neib_step is None else _two("neib_step", neib_step)
    if mode not in MODES:
        raise ArgumentError(explain_error("images2neibs has no such mode", repr(mode), f"use one of {', '.join(MODES)}"))
    if mode == "wrap_centered":
        return _rows(images, [_wrapped(size, *each) for size, *each in zip(shape_sizes(images)[2:], shape, step, strict=True)],
                     shape)
    if mode in ("half", "full"):
        high, wide = (size // 2 if mode == "half" else size - 1 for size in shape)
        images = pad(images, ((0, 0), (0, 0), (high, high), (wide, wide)))
    if mode != "ignore_borders":
        images = _covered(images, shape, step)
    places = []
    for size, length, apart in zip(shape_sizes(images)[2:], shape, step, strict=True):
        starts = arange((size - length) // apart + 1) * apart
        places.append(dimshuffle(starts, [0, "x"]) + dimshuffle(arange(length), ["x", 0]))
    return _rows(images, places, shape)


def neibs2images(neibs: Any, neib_shape: Any, original_shape: Any, mode: str = "valid") -> Variable:
    """The images [N, C, H, W] whose tiles are the rows of `neibs`, as `images2neibs(images, neib_shape)` gives them.

    Args:
        neibs: a matrix [N·C·rows·columns, height·width].
        neib_shape: height and width of a patch, ints from 1.
        original_shape: N, C, H, W: ints, symbolic scalars or a symbolic vector.
        mode: "valid", or "ignore_borders": what the patches do not reach is 0.

    Theano: `nnet.neighbours.neibs2images`.

    >>> import numpy as np
    >>> images = np.arange(32.0).reshape(1, 2, 4, 4)
    >>> bool((neibs2images(images2neibs(images, (2, 2)), (2, 2), (1, 2, 4, 4)).eval() == images).all())
    True
    """
    high, wide = _two("neib_shape", neib_shape)
    neibs, sizes = as_variable(neibs), as_sizes(original_shape, "neibs2images")
    if neibs.ndim != 2 or len(sizes) != 4:
        raise GraphTypeError(explain_error("neibs2images takes a matrix and the four sizes of the images",
                                           f"{neibs.type} and {len(sizes)} sizes"))
    if mode not in ("valid", "ignore_borders"):
        raise ArgumentError(explain_error("neibs2images has no such mode", repr(mode), "use valid or ignore_borders"))
    count, channels, height, width = sizes
    rows, columns = height // high, width // wide
    parts = dimshuffle(reshape(neibs, (count, channels, rows, columns, high, wide)), [0, 1, 2, 4, 3, 5])
    if mode == "valid":
        return reshape(parts, sizes)
    covered = reshape(parts, (count, channels, rows * high, columns * wide))
    return set_subtensor(zeros(sizes, neibs.dtype)[:, :, :rows * high, :columns * wide], covered)


def _rows(images: Variable, places: list[Variable], shape: tuple[int, int]) -> Variable:
    """The matrix of patches; `places` has for each axis the pixels [grid, patch]."""
    in_front = dimshuffle(images, [2, 3, 0, 1])
    patches = getitem(in_front, (dimshuffle(places[0], [0, "x", 1, "x"]), dimshuffle(places[1], ["x", 0, "x", 1])))
    ordered = dimshuffle(patches, [4, 5, 0, 1, 2, 3])
    return reshape(ordered, (joined_size(shape_sizes(ordered)[:4]), shape[0] * shape[1]))


def _wrapped(size: Size, length: int, apart: int) -> Variable:
    if length % 2 == 0:
        raise ArgumentError(explain_error("wrap_centered takes patches of odd sizes", str(length)))
    if isinstance(size, int) and size < length:
        raise ShapeError(explain_error("a patch is larger than the image", f"{length} of {size} pixels"))
    centres = arange((size + apart - 1) // apart) * apart
    return (dimshuffle(centres, [0, "x"]) + dimshuffle(arange(length), ["x", 0]) - length // 2) % size


def _covered(images: Variable, shape: tuple[int, int], step: tuple[int, int]) -> Variable:
    """The images, whose sizes are those that the patches cover."""
    for axis, size, length, apart in zip((2, 3), shape_sizes(images)[2:], shape, step, strict=True):
        text = explain_error(f"patches of {length} every {apart} pixels do not cover axis {axis} of the images",
                             f"size {size if isinstance(size, int) else 'not known before the run'}", 'use mode="ignore_borders"')
        if not isinstance(size, int):
            images = Assert(text)(images, eq((size - length) % apart, 0))
        elif size < length or (size - length) % apart:
            raise ShapeError(text)
    return images


def _checked_images(images: Any) -> Variable:
    variable = as_variable(images)
    if variable.ndim != 4:
        raise GraphTypeError(explain_error("images2neibs takes images (N, C, H, W)", str(variable.type)))
    return variable


def _two(name: str, given: Any) -> tuple[int, int]:
    sizes = tuple(given) if isinstance(given, (tuple, list)) else ()
    if len(sizes) != 2 or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise ArgumentError(explain_error(f"{name} is a pair of ints from 1", repr(given)))
    return sizes[0], sizes[1]
