"""Convolutions from variables: dtypes that differ are promoted, and whatever is known of the shapes is put into the op."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ..graph import Variable, apply_op
from .border_modes import is_whole_number
from .convolution import Conv, meet_sizes
from .elementwise import cast
from .shape import Size, size_of
from .shape_rules import shape_text
from .sizes import as_sizes, known_sizes, size_vector
from .spec import ConvSpec, Kind, Sizes, check_ranks, filters_shape, image_shape


def conv_fprop(x: Variable, w: Variable, spec: ConvSpec) -> Variable:
    """y (N, K, *spatial) from x (N, C, *spatial) and w (K, C / groups, *kernel), in the wider of their dtypes."""
    x, w = _promoted(x, w)
    check_ranks(x.type.shape, w.type.shape, spec)
    return apply_op(Conv(Kind.FPROP, spec.resolved(x.type.shape[2:], w.type.shape[2:])), x, w)


def conv_dgrad(y: Variable, w: Variable, x_shape: Any, spec: ConvSpec) -> Variable:
    """x from y (N, K, *spatial) and w (K, C / groups, *kernel).

    `x_shape` has for each axis an int, a symbolic integer scalar, or None where y and w tell the size: batch and channels
    always do, a spatial axis where the stride is 1; or it is a symbolic vector; or None for all of them.
    """
    y, w = _promoted(y, w)
    told = image_shape(y.type.shape, w.type.shape, spec)

    def default(axis: int) -> Size | None:
        if axis < 2:
            return size_of(y, 0) if axis == 0 else size_of(w, 1) * spec.groups
        return natural_size(y, w, spec, axis - 2) if spec.stride[axis - 2] == 1 else None

    return _with_shape(Kind.DGRAD, spec, y, w, x_shape, told, default)


def conv_wgrad(x: Variable, y: Variable, w_shape: Any, spec: ConvSpec) -> Variable:
    """w from x (N, C, *spatial) and y (N, K, *spatial).

    `w_shape` as `x_shape` of `conv_dgrad`; x and y tell the size of a kernel axis where the stride is 1, the pads are given
    as numbers and the sizes are static.
    """
    x, y = _promoted(x, y)
    told = filters_shape(x.type.shape, y.type.shape, spec)

    def default(axis: int) -> Size | None:
        if axis < 2:
            return size_of(y, 1) if axis == 0 else size_of(x, 1) // spec.groups
        return told[axis]

    return _with_shape(Kind.WGRAD, spec, x, y, w_shape, told, default)


def conv_transpose(y: Variable, w: Variable, spec: ConvSpec, output_shape: Any = None, output_padding: Any = 0) -> Variable:
    """The transposed convolution of y (N, K, *spatial) with w (K, C / groups, *kernel): the adjoint of the forward one.

    The result is (N, C, *sizes), with size = (n - 1) * stride + dilation * (k - 1) + 1 - pads + output_padding, or
    n * stride where the padding is `same`.  `output_shape` asks for other sizes: all ndim + 2 of them or the spatial ones
    only, None where the rule above shall say.  A size that the forward convolution does not bring back to n is a
    ShapeError.
    """
    y, w = _promoted(y, w)
    told = image_shape(y.type.shape, w.type.shape, spec)
    extra = _checked_output_padding(output_padding, spec, output_shape)
    shape = _asked_shape(output_shape, spec)

    def default(axis: int) -> Size:
        if axis < 2:
            return size_of(y, 0) if axis == 0 else size_of(w, 1) * spec.groups
        return natural_size(y, w, spec, axis - 2, extra[axis - 2])

    return _with_shape(Kind.DGRAD, spec, y, w, shape, (*told[:2], *(None,) * spec.ndim), default)


def natural_size(y: Variable, w: Variable, spec: ConvSpec, axis: int, extra: int = 0) -> Size:
    """The smallest image size along a spatial axis that gives y (the largest with `same` padding), plus `extra`."""
    spec = spec.resolved((None,) * spec.ndim, w.type.shape[2:])
    rule, stride, outputs = spec.pad_rule[axis], spec.stride[axis], size_of(y, 2 + axis)
    if rule.startswith("same"):
        return outputs * stride
    dilated = (size_of(w, 2 + axis) - 1) * spec.dilation[axis] + 1
    pads: Size = spec.pad_lo[axis] + spec.pad_hi[axis]
    if rule:
        pads = {"full": (dilated - 1) * 2, "half": dilated // 2 * 2, "causal": dilated - 1}[rule]
    return (outputs - 1) * stride + dilated - pads + extra


def _checked_output_padding(output_padding: Any, spec: ConvSpec, output_shape: Any) -> tuple[int, ...]:
    values = [output_padding] * spec.ndim if is_whole_number(output_padding) else output_padding
    if not isinstance(values, (tuple, list)) or len(values) != spec.ndim or not all(map(is_whole_number, values)):
        raise GraphTypeError(explain_error(f"output_padding is a whole number or {spec.ndim} of them", repr(output_padding)))
    if any(values) and output_shape is not None:
        raise ArgumentError(explain_error("output_padding and output_shape say the same thing twice",
                                          f"{output_padding!r} and {output_shape!r}", "give one of them"))
    for axis, value in enumerate(values):
        same = spec.pad_rule[axis].startswith("same")
        if not 0 <= value < (1 if same else spec.stride[axis]):
            raise ArgumentError(explain_error(
                "output_padding must be 0 or more and less than the stride (0 with 'same' padding)",
                f"{value} with stride {spec.stride[axis]} along spatial axis {axis}",
                "give the size itself as output_shape" if same else ""))
    return tuple(int(value) for value in values)


def _asked_shape(output_shape: Any, spec: ConvSpec) -> Any:
    """`output_shape` with None for batch and channels where only the spatial sizes are given."""
    if isinstance(output_shape, Variable):
        output_shape = as_sizes(output_shape, "a transposed convolution")
    if output_shape is not None and not isinstance(output_shape, (tuple, list)):
        raise GraphTypeError(explain_error("output_shape is a sequence of sizes or a symbolic vector", repr(output_shape)))
    return (None, None, *output_shape) if output_shape is not None and len(output_shape) == spec.ndim else output_shape


def _with_shape(kind: Kind, spec: ConvSpec, first: Variable, second: Variable, shape: Any, told: Sizes,
                default: Callable[[int], Size | None]) -> Variable:
    """A DGRAD or WGRAD with a result of `shape`; for entries that are None `default` says the size of an axis."""
    sizes = as_sizes(_entries(kind, spec, shape, told, default), f"a {kind.value}")
    asked = tuple(known_sizes(sizes))
    if any(size is not None and size < 0 for size in asked):
        raise ShapeError(explain_error(f"the shape of the result of a {kind.value} has a negative size", shape_text(asked)))
    known = meet_sizes(told, asked, Conv(kind, spec))
    shapes = dict(zip(kind.reads, (first.type.shape, second.type.shape), strict=True)) | {kind.produces: known}
    resolved = spec.resolved(shapes["x"][2:], shapes["w"][2:])
    return apply_op(Conv(kind, resolved, None, known), first, second, size_vector(sizes))


def _entries(kind: Kind, spec: ConvSpec, shape: Any, told: Sizes, default: Callable[[int], Size | None]) -> list[Size]:
    entries = (None,) * len(told) if shape is None else shape
    if isinstance(entries, Variable):
        entries = as_sizes(entries, f"a {kind.value}")
    if not isinstance(entries, (tuple, list)) or len(entries) != len(told):
        raise ShapeError(explain_error(
            f"the shape of the result of a {spec.ndim}-D {kind.value} has {len(told)} sizes", repr(entries)))
    sizes: list[Size] = []
    for axis, entry in enumerate(entries):
        size = default(axis) if entry is None else entry
        if size is None:
            raise ShapeError(explain_error(
                f"the size of the result along axis {axis} is not told by the inputs of a {kind.value}",
                f"{spec}; what they tell: {shape_text(told)}",
                f"give the shape of the {'image (image_shape=…)' if kind is Kind.DGRAD else 'filters (weight_shape=…)'}"))
        sizes.append(size)
    return sizes


def _promoted(first: Variable, second: Variable) -> tuple[Variable, Variable]:
    """Both in the dtype in which they meet."""
    for variable in (first, second):
        if not dtypes.is_float(variable.dtype):
            raise GraphTypeError(explain_error("a convolution takes float tensors", f"{variable.label}: {variable.type}",
                                               f"cast it: {variable.name or 'x'}.astype('float32')"))
    common = dtypes.promote([first.dtype, second.dtype])
    return cast(first, common), cast(second, common)
