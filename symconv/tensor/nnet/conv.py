"""Convolutions as Theano spells them, in one, two and three dimensions.

Layouts: images (batch, channels, *spatial), filters (filters, channels / num_groups, *kernel).  **True convolution** is the
default (`filter_flip=True`: the kernel is reversed along every spatial axis); `filter_flip=False` is cross-correlation.
Image and filters of different float dtypes meet in the wider one; float16 and bfloat16 are summed in float32.
"""
from __future__ import annotations

import warnings
from typing import Any

from ...errors import ArgumentError, explain_error
from ...graph import Variable
from ...ops.constants import as_variable
from ...ops.conv_builders import conv_dgrad, conv_fprop, conv_wgrad
from ...ops.spec import ConvSpec, make_spec
from ...ops.user_lines import tells_user_line
from .shape_hints import with_shape_hint

_NAMES = ("border_mode", "subsample", "filter_dilation", "num_groups")


def theano_spec(ndim: int, border_mode: Any, subsample: Any, filter_flip: Any, filter_dilation: Any, num_groups: Any,
                compute_dtype: Any = None) -> ConvSpec:
    """The spec that Theano's words say; errors speak in those words."""
    return make_spec(ndim, border_mode, subsample, filter_dilation, num_groups, filter_flip, compute_dtype, _NAMES)


@tells_user_line
def _forward(ndim: int, input: Any, filters: Any, input_shape: Any, filter_shape: Any, *words: Any) -> Variable:
    spec = theano_spec(ndim, *words)
    return conv_fprop(with_shape_hint(as_variable(input), input_shape, "input_shape", ndim + 2),
                      with_shape_hint(as_variable(filters), filter_shape, "filter_shape", ndim + 2), spec)


def conv1d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None, border_mode: Any = "valid",
           subsample: Any = 1, filter_flip: bool = True, filter_dilation: Any = 1, num_groups: int = 1) -> Variable:
    """Convolution of `input` (batch, channels, length) with `filters` (filters, channels / num_groups, length).

    Arguments as `conv2d`; `subsample` and `filter_dilation` may be plain numbers.

    >>> import numpy as np
    >>> conv1d(np.ones((1, 1, 8)), np.ones((4, 1, 3)), border_mode="causal", subsample=2).type.shape
    (1, 4, 4)
    """
    return _forward(1, input, filters, input_shape, filter_shape, border_mode, subsample, filter_flip, filter_dilation,
                    num_groups)


def conv2d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None, border_mode: Any = "valid",
           subsample: Any = (1, 1), filter_flip: bool = True, image_shape: Any = None, filter_dilation: Any = (1, 1),
           num_groups: int = 1) -> Variable:
    """Convolution of `input` (batch, channels, rows, columns) with `filters` (filters, channels / num_groups, rows,
    columns).

    - `input_shape`, `filter_shape`: sizes that are known (None: not known).  They are checked, now and on every call.
      `image_shape` is Theano's deprecated name of `input_shape`.
    - `border_mode`: "valid", "full", "half", "same" (= "same_upper"), "same_lower", "causal", a number, or one entry for
      each axis: a number, a pair (before, after) or a name.  `ops/border_modes.py` has the table of sizes.
    - `subsample`: the stride; `filter_dilation`: 1 is no gaps.
    - `filter_flip`: True is a true convolution, False cross-correlation.
    - `num_groups`: channels and filters fall into so many groups that do not see each other.

    The result is (batch, filters, rows', columns'), for each axis (size + pads - (k - 1) * dilation - 1) // stride + 1.
    GraphTypeError for ranks and dtypes, ArgumentError for parameters, ShapeError for sizes that do not fit.

    >>> import numpy as np
    >>> conv2d(np.ones((10, 3, 32, 32)), np.ones((16, 3, 3, 3))).type.shape
    (10, 16, 30, 30)
    """
    if image_shape is not None:
        if input_shape is not None:
            raise ArgumentError(explain_error("input_shape and image_shape should not be provided at the same time",
                                              f"{input_shape!r} and {image_shape!r}", "give input_shape only"))
        warnings.warn("conv2d: image_shape is deprecated, use input_shape", DeprecationWarning, stacklevel=2)
        input_shape = image_shape
    return _forward(2, input, filters, input_shape, filter_shape, border_mode, subsample, filter_flip, filter_dilation,
                    num_groups)


def conv3d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None, border_mode: Any = "valid",
           subsample: Any = (1, 1, 1), filter_flip: bool = True, filter_dilation: Any = (1, 1, 1),
           num_groups: int = 1) -> Variable:
    """Convolution of `input` (batch, channels, depth, rows, columns) with `filters` (filters, channels / num_groups, depth,
    rows, columns). Arguments as `conv2d`.

    >>> import numpy as np
    >>> conv3d(np.ones((1, 2, 8, 8, 8)), np.ones((4, 2, 3, 3, 3)), border_mode=((1, 0), 1, 1)).type.shape
    (1, 4, 7, 8, 8)
    """
    return _forward(3, input, filters, input_shape, filter_shape, border_mode, subsample, filter_flip, filter_dilation,
                    num_groups)


@tells_user_line
def _grad_wrt_inputs(ndim: int, output_grad: Any, filters: Any, input_shape: Any, filter_shape: Any,
                     *words: Any) -> Variable:
    filters = with_shape_hint(as_variable(filters), filter_shape, "filter_shape", ndim + 2)
    return conv_dgrad(as_variable(output_grad), filters, input_shape, theano_spec(ndim, *words))


@tells_user_line
def _grad_wrt_weights(ndim: int, input: Any, output_grad: Any, filter_shape: Any, input_shape: Any,
                      *words: Any) -> Variable:
    input = with_shape_hint(as_variable(input), input_shape, "input_shape", ndim + 2)
    return conv_wgrad(input, as_variable(output_grad), filter_shape, theano_spec(ndim, *words))


def conv1d_grad_wrt_inputs(output_grad: Any, filters: Any, input_shape: Any, filter_shape: Any = None,
                           border_mode: Any = "valid", subsample: Any = 1, filter_flip: bool = True,
                           filter_dilation: Any = 1, num_groups: int = 1) -> Variable:
    """The gradient of `conv1d` with respect to its input. Arguments as `conv2d_grad_wrt_inputs`."""
    return _grad_wrt_inputs(1, output_grad, filters, input_shape, filter_shape, border_mode, subsample, filter_flip,
                            filter_dilation, num_groups)


def conv2d_grad_wrt_inputs(output_grad: Any, filters: Any, input_shape: Any, filter_shape: Any = None,
                           border_mode: Any = "valid", subsample: Any = (1, 1), filter_flip: bool = True,
                           filter_dilation: Any = (1, 1), num_groups: int = 1) -> Variable:
    """The gradient of `conv2d` with respect to its input, for `output_grad` (batch, filters, rows', columns').

    `input_shape` is the shape of that input: ints, symbolic scalars, or None where the other arguments tell the size (batch,
    channels, and sizes along axes with stride 1).  The other arguments are those of the forward convolution.

    >>> import numpy as np
    >>> conv2d_grad_wrt_inputs(np.ones((1, 4, 3, 3)), np.ones((4, 2, 3, 3)), (None, None, 8, 7), subsample=(2, 2)).type.shape
    (1, 2, 8, 7)
    """
    return _grad_wrt_inputs(2, output_grad, filters, input_shape, filter_shape, border_mode, subsample, filter_flip,
                            filter_dilation, num_groups)


def conv3d_grad_wrt_inputs(output_grad: Any, filters: Any, input_shape: Any, filter_shape: Any = None,
                           border_mode: Any = "valid", subsample: Any = (1, 1, 1), filter_flip: bool = True,
                           filter_dilation: Any = (1, 1, 1), num_groups: int = 1) -> Variable:
    """The gradient of `conv3d` with respect to its input. Arguments as `conv2d_grad_wrt_inputs`."""
    return _grad_wrt_inputs(3, output_grad, filters, input_shape, filter_shape, border_mode, subsample, filter_flip,
                            filter_dilation, num_groups)


def conv1d_grad_wrt_weights(input: Any, output_grad: Any, filter_shape: Any, input_shape: Any = None,
                            border_mode: Any = "valid", subsample: Any = 1, filter_flip: bool = True,
                            filter_dilation: Any = 1, num_groups: int = 1) -> Variable:
    """The gradient of `conv1d` with respect to its filters. Arguments as `conv2d_grad_wrt_weights`."""
    return _grad_wrt_weights(1, input, output_grad, filter_shape, input_shape, border_mode, subsample, filter_flip,
                             filter_dilation, num_groups)


def conv2d_grad_wrt_weights(input: Any, output_grad: Any, filter_shape: Any, input_shape: Any = None,
                            border_mode: Any = "valid", subsample: Any = (1, 1), filter_flip: bool = True,
                            filter_dilation: Any = (1, 1), num_groups: int = 1) -> Variable:
    """The gradient of `conv2d` with respect to its filters, for `output_grad` (batch, filters, rows', columns').

    `filter_shape` is the shape of those filters: ints, symbolic scalars, or None where the other arguments tell the size
    (filters and channels; kernel sizes along axes with stride 1 and numeric padding).

    >>> import numpy as np
    >>> conv2d_grad_wrt_weights(np.ones((1, 2, 8, 7)), np.ones((1, 4, 3, 3)), (4, 2, 3, 3), subsample=(2, 2)).type.shape
    (4, 2, 3, 3)
    """
    return _grad_wrt_weights(2, input, output_grad, filter_shape, input_shape, border_mode, subsample, filter_flip,
                             filter_dilation, num_groups)


def conv3d_grad_wrt_weights(input: Any, output_grad: Any, filter_shape: Any, input_shape: Any = None,
                            border_mode: Any = "valid", subsample: Any = (1, 1, 1), filter_flip: bool = True,
                            filter_dilation: Any = (1, 1, 1), num_groups: int = 1) -> Variable:
    """The gradient of `conv3d` with respect to its filters. Arguments as `conv2d_grad_wrt_weights`."""
    return _grad_wrt_weights(3, input, output_grad, filter_shape, input_shape, border_mode, subsample, filter_flip,
                             filter_dilation, num_groups)
