"""cuDNN's three convolution operations as functions on graphs, with the frontend's names and meanings.

Layouts: image (N, C, *spatial), weight (K, C / groups, *kernel), response and loss (N, K, *spatial).  The rank is the
tensors' (3, 4 or 5 axes).  **Cross-correlation** is the default, as in cuDNN; `convolution_mode="CONVOLUTION"` flips the
kernel.

Parameters of all three, also as an attribute structure (third argument, or `attributes=`, or before the tensors):
- `pre_padding`, `post_padding`: zeros before and after each spatial axis; or `padding`: the same on both sides (also a
  border mode of `conv2d` such as "same").  Default 0.
- `stride`, `dilation`: a number or one for each spatial axis.  Default 1.
- `compute_data_type`: "FLOAT" or "DOUBLE" (or a dtype): what products are summed in.
- `groups`: cuDNN tells them by the shapes (channels of the image / channels of the weight), and so does this where both are
  static; else 1.
- `name`: the name of the result.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError, GraphTypeError, explain_error
from ...graph import Variable
from ...ops import conv_builders
from ...ops.border_modes import axis_values, is_whole_number
from ...ops.constants import as_variable
from ...ops.spec import ConvSpec, make_spec
from ...ops.user_lines import tells_user_line
from .conv_attributes import ConvAttributes, ConvDgradAttributes, ConvFpropAttributes, ConvWgradAttributes

_MODES = {"cross_correlation": False, "convolution": True}
_COMPUTE = {"float": "float32", "double": "float64", "half": "float16"}


def _takes_attributes(structure: type[ConvAttributes]) -> Callable[[Callable[..., Variable]], Callable[..., Variable]]:
    """Let an operation take its attribute structure at any place among the positional arguments."""

    def decorate(operation: Callable[..., Variable]) -> Callable[..., Variable]:
        @functools.wraps(operation)
        @tells_user_line
        def run(*arguments: Any, **keywords: Any) -> Variable:
            found = [each for each in arguments if isinstance(each, ConvAttributes)]
            if found:
                arguments = tuple(each for each in arguments if not isinstance(each, ConvAttributes))
            if keywords.get("attributes") is not None:
                found.append(keywords["attributes"])
            if len(found) > 1 or any(not isinstance(each, structure) for each in found):
                raise GraphTypeError(explain_error(f"{operation.__name__} takes one {structure.__name__}", repr(found)))
            return operation(*arguments, **{**keywords, **({"attributes": found[0]} if found else {})})

        return run

    return decorate


@_takes_attributes(ConvFpropAttributes)
def conv_fprop(image: Any, weight: Any, pre_padding: Any = None, post_padding: Any = None, stride: Any = None,
               dilation: Any = None, convolution_mode: Any = None, compute_data_type: Any = None, name: str | None = None,
               *, padding: Any = None, groups: int | None = None,
               attributes: ConvFpropAttributes | None = None) -> Variable:
    """The response image * weight. Parameters: the module's text.

    >>> import numpy as np
    >>> conv_fprop(np.ones((1, 4, 9, 9)), np.ones((6, 2, 3, 3)), ConvFpropAttributes().set_padding([1, 1])).type.shape
    (1, 6, 9, 9)
    """
    image, weight = as_variable(image), as_variable(weight)
    spec, label = _spec(image.ndim, attributes, _given(locals()), _groups(groups, _channels(image), _channels(weight)))
    return _named(conv_builders.conv_fprop(image, weight, spec), label)


@_takes_attributes(ConvDgradAttributes)
def conv_dgrad(loss: Any, filter: Any, pre_padding: Any = None, post_padding: Any = None, stride: Any = None,
               dilation: Any = None, convolution_mode: Any = None, compute_data_type: Any = None, name: str | None = None,
               *, padding: Any = None, image_shape: Any = None, groups: int | None = None,
               attributes: ConvDgradAttributes | None = None) -> Variable:
    """The data gradient: what the loss (N, K, *spatial) of the response is for the image. Parameters: the module's text.

    `image_shape` is the shape of the image (ints, symbolic scalars, None where it is told otherwise).  It may be left out
    where the stride is 1.

    >>> import numpy as np
    >>> conv_dgrad(np.ones((1, 6, 5, 5)), np.ones((6, 4, 3, 3)), stride=2, padding=1, image_shape=(1, 4, 9, 10)).type.shape
    (1, 4, 9, 10)
    """
    loss, filter = as_variable(loss), as_variable(filter)
    channels = image_shape[1] if isinstance(image_shape, (tuple, list)) and len(image_shape) > 1 else None
    spec, label = _spec(loss.ndim, attributes, _given(locals()), _groups(groups, channels, _channels(filter)))
    return _named(conv_builders.conv_dgrad(loss, filter, image_shape, spec), label)


@_takes_attributes(ConvWgradAttributes)
def conv_wgrad(image: Any, loss: Any, pre_padding: Any = None, post_padding: Any = None, stride: Any = None,
               dilation: Any = None, convolution_mode: Any = None, compute_data_type: Any = None, name: str | None = None,
               *, padding: Any = None, weight_shape: Any = None, groups: int | None = None,
               attributes: ConvWgradAttributes | None = None) -> Variable:
    """The weight gradient: what the loss (N, K, *spatial) of the response is for the weight. Parameters: the module's text.

    `weight_shape` is the shape of the weight (ints, symbolic scalars, None where it is told otherwise).  It may be left out
    where the stride is 1 and the static sizes are known.

    >>> import numpy as np
    >>> conv_wgrad(np.ones((1, 4, 9, 9)), np.ones((1, 6, 4, 4)), stride=2, weight_shape=(6, 2, 3, 3)).type.shape
    (6, 2, 3, 3)
    """
    image, loss = as_variable(image), as_variable(loss)
    per_group = weight_shape[1] if isinstance(weight_shape, (tuple, list)) and len(weight_shape) > 1 else None
    spec, label = _spec(image.ndim, attributes, _given(locals()), _groups(groups, _channels(image), per_group))
    return _named(conv_builders.conv_wgrad(image, loss, weight_shape, spec), label)


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation that an attribute structure may say too."""
    names = ("padding", "pre_padding", "post_padding", "stride", "dilation", "convolution_mode", "compute_data_type", "name")
    return {name: arguments[name] for name in names}


def _spec(rank: int, attributes: ConvAttributes | None, given: dict[str, Any], groups: int) -> tuple[ConvSpec, str | None]:
    """The spec and the name of the result."""
    if rank not in (3, 4, 5):
        raise GraphTypeError(explain_error("a convolution takes tensors of 3, 4 or 5 axes (batch, channels, *spatial)",
                                           f"{rank} axes"))
    values = (attributes or ConvAttributes()).merged(given)
    spec = make_spec(rank - 2, _padding(values, rank - 2), 1 if values["stride"] is None else values["stride"],
                     1 if values["dilation"] is None else values["dilation"], groups, _flip(values["convolution_mode"]),
                     _compute_dtype(values["compute_data_type"]), ("padding", "stride", "dilation", "groups"))
    return spec, values["name"]


def _padding(values: dict[str, Any], ndim: int) -> Any:
    padding, before, after = values["padding"], values["pre_padding"], values["post_padding"]
    if before is None and after is None:
        return 0 if padding is None else padding
    if padding is not None:
        raise ArgumentError(explain_error("padding says what pre_padding and post_padding say",
                                          f"padding {padding!r}, pre_padding {before!r}, post_padding {after!r}",
                                          "give padding, or the other two"))
    return list(zip(_side(before, ndim, "pre_padding"), _side(after, ndim, "post_padding"), strict=True))


def _side(values: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The zeros on one side of each axis, from 0."""
    if values is None:
        return (0,) * ndim
    entries = [values] * ndim if is_whole_number(values) else values
    if isinstance(entries, (tuple, list)) and all(map(is_whole_number, entries)):
        if any(entry < 0 for entry in entries):
            raise ArgumentError(explain_error(f"{name} must not be negative", repr(values),
                                              "pad by 0 or more; cut the image with slices instead"))
        return tuple(value - 1 for value in axis_values([entry + 1 for entry in entries], ndim, name))
    return axis_values(values, ndim, name)


def _word(value: Any) -> Any:
    """A string in lower case for a string or an enumeration of cuDNN; other values as they are."""
    text = value if isinstance(value, str) else getattr(value, "name", value)
    return text.lower() if isinstance(text, str) else value


def _flip(mode: Any) -> bool:
    if mode is None:
        return False
    if _word(mode) not in _MODES:
        raise ArgumentError(explain_error("convolution_mode does not take this value", repr(mode),
                                          'use "CROSS_CORRELATION" or "CONVOLUTION"'))
    return _MODES[_word(mode)]


def _compute_dtype(dtype: Any) -> Any:
    word = _word(dtype)
    return _COMPUTE.get(word, word) if isinstance(word, str) else dtype


def _channels(x: Variable) -> int | None:
    return x.type.shape[1] if x.ndim > 1 else None


def _groups(groups: int | None, channels: Any, per_group: Any) -> int:
    """The groups that were given, or those that the channels of image and weight tell."""
    if groups is not None:
        return groups
    known = is_whole_number(channels) and is_whole_number(per_group) and per_group > 0 and channels % per_group == 0
    return max(channels // per_group, 1) if known else 1


def _named(result: Variable, name: str | None) -> Variable:
    if name is not None:
        result.name = name
    return result
