"""Transposed convolutions: the adjoint of the forward convolution, as a layer of its own.

Filters keep the layout of the forward convolution: their axis 0 is the channels of `input` here, axis 1 (times
`num_groups`) the channels of the result.
"""
from __future__ import annotations

from typing import Any

from ...graph import Variable
from ...ops.constants import as_variable
from ...ops.conv_builders import conv_transpose
from ...ops.user_lines import tells_user_line
from .conv import theano_spec
from .shape_hints import with_shape_hint


@tells_user_line
def _transposed(ndim: int, input: Any, filters: Any, output_shape: Any, filter_shape: Any, output_padding: Any,
                *words: Any) -> Variable:
    filters = with_shape_hint(as_variable(filters), filter_shape, "filter_shape", ndim + 2)
    return conv_transpose(as_variable(input), filters, theano_spec(ndim, *words), output_shape, output_padding)


def conv1d_transpose(input: Any, filters: Any, output_shape: Any = None, filter_shape: Any = None,
                     border_mode: Any = "valid", input_dilation: Any = 1, filter_flip: bool = True,
                     filter_dilation: Any = 1, num_groups: int = 1, output_padding: Any = 0) -> Variable:
    """Transposed convolution of `input` (batch, channels, length). Arguments as `conv2d_transpose`."""
    return _transposed(1, input, filters, output_shape, filter_shape, output_padding, border_mode, input_dilation,
                       filter_flip, filter_dilation, num_groups)


def conv2d_transpose(input: Any, filters: Any, output_shape: Any = None, filter_shape: Any = None,
                     border_mode: Any = "valid", input_dilation: Any = (1, 1), filter_flip: bool = True,
                     filter_dilation: Any = (1, 1), num_groups: int = 1, output_padding: Any = 0) -> Variable:
    """Transposed convolution of `input` (batch, channels, rows, columns) with `filters` (channels, channels of the result /
    num_groups, rows, columns): the gradient of `conv2d` with respect to its input.

    `input_dilation` is the stride of the forward convolution, `border_mode` its padding.  The result has, for each axis,
    `(n - 1) * stride - pads + dilation * (k - 1) + 1 + output_padding` elements (`n * stride` with "same" padding).
    `output_shape` says the sizes instead: four or the last two of them, ints, symbolic scalars or None (by the rule).
    ShapeError where the forward convolution would not bring that size back to n.

    >>> import numpy as np
    >>> conv2d_transpose(np.ones((1, 4, 50, 50)), np.ones((4, 2, 3, 3)), border_mode=4, input_dilation=(2, 2),
    ...                  filter_dilation=(3, 3)).type.shape
    (1, 2, 97, 97)
    """
    return _transposed(2, input, filters, output_shape, filter_shape, output_padding, border_mode, input_dilation,
                       filter_flip, filter_dilation, num_groups)


def conv3d_transpose(input: Any, filters: Any, output_shape: Any = None, filter_shape: Any = None,
                     border_mode: Any = "valid", input_dilation: Any = (1, 1, 1), filter_flip: bool = True,
                     filter_dilation: Any = (1, 1, 1), num_groups: int = 1, output_padding: Any = 0) -> Variable:
    """Transposed convolution of `input` (batch, channels, depth, rows, columns). Arguments as `conv2d_transpose`."""
    return _transposed(3, input, filters, output_shape, filter_shape, output_padding, border_mode, input_dilation,
                       filter_flip, filter_dilation, num_groups)
