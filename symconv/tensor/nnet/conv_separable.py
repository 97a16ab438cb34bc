"""Depthwise, separable and causal convolutions: grouped and padded forms of the one convolution."""
from __future__ import annotations

from typing import Any

from ...errors import ShapeError, explain_error
from ...graph import Variable
from ...ops.constants import as_variable
from ...ops.conv_builders import conv_fprop
from ...ops.user_lines import tells_user_line
from .conv import conv1d, theano_spec
from .shape_hints import with_shape_hint


@tells_user_line
def _depthwise(ndim: int, input: Any, filters: Any, input_shape: Any, filter_shape: Any, num_channels: Any,
               border_mode: Any, subsample: Any, filter_flip: Any, filter_dilation: Any) -> Variable:
    input = with_shape_hint(as_variable(input), input_shape, "input_shape", ndim + 2)
    filters = with_shape_hint(as_variable(filters), filter_shape, "filter_shape", ndim + 2)
    channels = input.type.shape[1] if num_channels is None and input.ndim == ndim + 2 else num_channels
    if channels is None:
        raise ShapeError(explain_error("a depthwise convolution needs the number of channels when the graph is built",
                                       f"{input.label}: {input.type}", "give num_channels, or a static shape"))
    spec = theano_spec(ndim, border_mode, subsample, filter_flip, filter_dilation, max(channels, 1))
    return conv_fprop(input, filters, spec)


def depthwise_conv1d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None,
                     border_mode: Any = "valid", subsample: Any = 1, filter_flip: bool = True, filter_dilation: Any = 1,
                     num_channels: int | None = None) -> Variable:
    """Every channel of `input` (batch, channels, length) with its own filters. Arguments as `depthwise_conv2d`."""
    return _depthwise(1, input, filters, input_shape, filter_shape, num_channels, border_mode, subsample, filter_flip,
                      filter_dilation)


def depthwise_conv2d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None,
                     border_mode: Any = "valid", subsample: Any = (1, 1), filter_flip: bool = True,
                     filter_dilation: Any = (1, 1), num_channels: int | None = None) -> Variable:
    """Every channel of `input` (batch, channels, rows, columns) with its own `multiplier` filters.

    `filters` is (channels * multiplier, 1, rows, columns); channel c makes the results c * multiplier … of axis 1.
    `num_channels` is needed where the static shape of `input` does not tell it.  Other arguments as `conv2d`.

    >>> import numpy as np
    >>> depthwise_conv2d(np.ones((1, 3, 8, 8)), np.ones((6, 1, 3, 3)), border_mode="half").type.shape
    (1, 6, 8, 8)
    """
    return _depthwise(2, input, filters, input_shape, filter_shape, num_channels, border_mode, subsample, filter_flip,
                      filter_dilation)


def depthwise_conv3d(input: Any, filters: Any, input_shape: Any = None, filter_shape: Any = None,
                     border_mode: Any = "valid", subsample: Any = (1, 1, 1), filter_flip: bool = True,
                     filter_dilation: Any = (1, 1, 1), num_channels: int | None = None) -> Variable:
    """Every channel of `input` (batch, channels, depth, rows, columns) with its own filters. See `depthwise_conv2d`."""
    return _depthwise(3, input, filters, input_shape, filter_shape, num_channels, border_mode, subsample, filter_flip,
                      filter_dilation)


@tells_user_line
def _separable(ndim: int, input: Any, depthwise_filters: Any, pointwise_filters: Any, num_channels: Any, input_shape: Any,
               depthwise_filter_shape: Any, pointwise_filter_shape: Any, border_mode: Any, subsample: Any,
               filter_flip: Any, filter_dilation: Any) -> Variable:
    pointwise = with_shape_hint(as_variable(pointwise_filters), pointwise_filter_shape, "pointwise_filter_shape", ndim + 2)
    if any(size not in (1, None) for size in pointwise.type.shape[2:]):
        raise ShapeError(explain_error("pointwise filters have kernels of size 1", f"{pointwise.label}: {pointwise.type}"))
    depthwise = with_shape_hint(as_variable(depthwise_filters), depthwise_filter_shape, "depthwise_filter_shape", ndim + 2)
    between = _depthwise(ndim, input, depthwise, input_shape, None, num_channels, border_mode, subsample, filter_flip,
                         filter_dilation)
    claimed = with_shape_hint(pointwise, (None, None, *(1,) * ndim), "pointwise_filter_shape", ndim + 2)
    return conv_fprop(between, claimed, theano_spec(ndim, "valid", 1, filter_flip, 1, 1))


def separable_conv1d(input: Any, depthwise_filters: Any, pointwise_filters: Any, num_channels: int | None,
                     input_shape: Any = None, depthwise_filter_shape: Any = None, pointwise_filter_shape: Any = None,
                     border_mode: Any = "valid", subsample: Any = 1, filter_flip: bool = True,
                     filter_dilation: Any = 1) -> Variable:
    """A depthwise convolution of `input` (batch, channels, length), then a pointwise one. See `separable_conv2d`."""
    return _separable(1, input, depthwise_filters, pointwise_filters, num_channels, input_shape, depthwise_filter_shape,
                      pointwise_filter_shape, border_mode, subsample, filter_flip, filter_dilation)


def separable_conv2d(input: Any, depthwise_filters: Any, pointwise_filters: Any, num_channels: int | None,
                     input_shape: Any = None, depthwise_filter_shape: Any = None, pointwise_filter_shape: Any = None,
                     border_mode: Any = "valid", subsample: Any = (1, 1), filter_flip: bool = True,
                     filter_dilation: Any = (1, 1)) -> Variable:
    """A depthwise convolution of `input` (batch, num_channels, rows, columns), then one with 1 × 1 kernels.

    `depthwise_filters` is (num_channels * multiplier, 1, rows, columns), `pointwise_filters` (filters, num_channels *
    multiplier, 1, 1).  Padding, stride and dilation are the depthwise convolution's.  Other arguments as `conv2d`.

    >>> import numpy as np
    >>> separable_conv2d(np.ones((1, 3, 8, 8)), np.ones((6, 1, 3, 3)), np.ones((5, 6, 1, 1)), 3).type.shape
    (1, 5, 6, 6)
    """
    return _separable(2, input, depthwise_filters, pointwise_filters, num_channels, input_shape, depthwise_filter_shape,
                      pointwise_filter_shape, border_mode, subsample, filter_flip, filter_dilation)


def separable_conv3d(input: Any, depthwise_filters: Any, pointwise_filters: Any, num_channels: int | None,
                     input_shape: Any = None, depthwise_filter_shape: Any = None, pointwise_filter_shape: Any = None,
                     border_mode: Any = "valid", subsample: Any = (1, 1, 1), filter_flip: bool = True,
                     filter_dilation: Any = (1, 1, 1)) -> Variable:
    """A depthwise convolution of `input` (batch, channels, depth, rows, columns), then a pointwise one."""
    return _separable(3, input, depthwise_filters, pointwise_filters, num_channels, input_shape, depthwise_filter_shape,
                      pointwise_filter_shape, border_mode, subsample, filter_flip, filter_dilation)


def causal_conv1d(input: Any, filters: Any, filter_shape: Any = None, input_shape: Any = None, subsample: Any = 1,
                  filter_flip: bool = True, filter_dilation: Any = 1, num_groups: int = 1) -> Variable:
    """Convolution over time: result t of (batch, filters, time) depends on inputs up to t * subsample only.

    Pads (k - 1) * filter_dilation zeros before the start.  `filter_shape` may be left out (Theano needed it).

    >>> import numpy as np
    >>> causal_conv1d(np.ones((1, 2, 9)), np.ones((4, 2, 3)), filter_dilation=2).type.shape
    (1, 4, 9)
    """
    return conv1d(input, filters, input_shape, filter_shape, "causal", subsample, filter_flip, filter_dilation, num_groups)
