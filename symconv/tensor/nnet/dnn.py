"""Theano's names for convolutions on cuDNN.

The graphs are those of `nnet.conv2d`: where a convolution runs is decided by `compile`, for these and all others alike, by
the device and by `config.dnn.enabled` ("auto": cuDNN where it can; True: cuDNN or a BackendError; False: never).
"""
from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, GraphTypeError, explain_error
from ...graph import Variable
from ...ops import conv_builders
from ...ops.constants import as_variable
from ...ops.spec import ConvSpec, make_spec
from ...ops.user_lines import tells_user_line
from .conv import conv2d, conv3d

__all__ = ["conv2d", "conv3d", "dnn_conv", "dnn_conv3d", "dnn_gradinput", "dnn_gradinput3d", "dnn_gradweight",
           "dnn_gradweight3d"]

_PRECISIONS = {None: None, "as_input_f32": None, "float32": "float32", "float64": "float64"}


def dnn_conv(img: Any, kerns: Any, border_mode: Any = "valid", subsample: Any = (1, 1), dilation: Any = (1, 1),
             conv_mode: str = "conv", precision: str | None = None, num_groups: int = 1) -> Variable:
    """Convolution of `img` (batch, channels, rows, columns) with `kerns` (filters, channels / num_groups, rows, columns).

    `conv_mode` is "conv" (kernels flipped) or "cross"; `precision`, what products are summed in, is "as_input_f32" (the
    default: float16 in float32), "float32" or "float64".  Other arguments as `conv2d`.  Theano's `algo`, `workmem` and
    `direction_hint` are no part of an expression here: see `config.conv.implementation`.

    >>> import numpy as np
    >>> dnn_conv(np.ones((1, 3, 8, 8)), np.ones((4, 3, 3, 3)), conv_mode="cross").type.shape
    (1, 4, 6, 6)
    """
    return _forward(2, img, kerns, border_mode, subsample, dilation, conv_mode, precision, num_groups)


def dnn_conv3d(img: Any, kerns: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1), dilation: Any = (1, 1, 1),
               conv_mode: str = "conv", precision: str | None = None, num_groups: int = 1) -> Variable:
    """Convolution of `img` (batch, channels, depth, rows, columns). Arguments as `dnn_conv`."""
    return _forward(3, img, kerns, border_mode, subsample, dilation, conv_mode, precision, num_groups)


@tells_user_line
def dnn_gradinput(kerns: Any, topgrad: Any, img_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
                  dilation: Any = (1, 1), conv_mode: str = "conv", precision: str | None = None,
                  num_groups: int = 1) -> Variable:
    """The gradient of `dnn_conv` with respect to its image of shape `img_shp`, for `topgrad` (batch, filters, …)."""
    spec = _spec(2, border_mode, subsample, dilation, conv_mode, precision, num_groups)
    return conv_builders.conv_dgrad(as_variable(topgrad), as_variable(kerns), img_shp, spec)


@tells_user_line
def dnn_gradinput3d(kerns: Any, topgrad: Any, img_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
                    dilation: Any = (1, 1, 1), conv_mode: str = "conv", precision: str | None = None,
                    num_groups: int = 1) -> Variable:
    """The gradient of `dnn_conv3d` with respect to its image of shape `img_shp`."""
    spec = _spec(3, border_mode, subsample, dilation, conv_mode, precision, num_groups)
    return conv_builders.conv_dgrad(as_variable(topgrad), as_variable(kerns), img_shp, spec)


@tells_user_line
def dnn_gradweight(img: Any, topgrad: Any, kerns_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1),
                   dilation: Any = (1, 1), conv_mode: str = "conv", precision: str | None = None,
                   num_groups: int = 1) -> Variable:
    """The gradient of `dnn_conv` with respect to its kernels of shape `kerns_shp`, for `topgrad` (batch, filters, …)."""
    spec = _spec(2, border_mode, subsample, dilation, conv_mode, precision, num_groups)
    return conv_builders.conv_wgrad(as_variable(img), as_variable(topgrad), kerns_shp, spec)


@tells_user_line
def dnn_gradweight3d(img: Any, topgrad: Any, kerns_shp: Any, border_mode: Any = "valid", subsample: Any = (1, 1, 1),
                     dilation: Any = (1, 1, 1), conv_mode: str = "conv", precision: str | None = None,
                     num_groups: int = 1) -> Variable:
    """The gradient of `dnn_conv3d` with respect to its kernels of shape `kerns_shp`."""
    spec = _spec(3, border_mode, subsample, dilation, conv_mode, precision, num_groups)
    return conv_builders.conv_wgrad(as_variable(img), as_variable(topgrad), kerns_shp, spec)


@tells_user_line
def _forward(ndim: int, img: Any, kerns: Any, *words: Any) -> Variable:
    return conv_builders.conv_fprop(as_variable(img), as_variable(kerns), _spec(ndim, *words))


def _spec(ndim: int, border_mode: Any, subsample: Any, dilation: Any, conv_mode: Any, precision: Any,
          num_groups: Any) -> ConvSpec:
    if conv_mode not in ("conv", "cross"):
        raise ArgumentError(explain_error("conv_mode does not take this value", repr(conv_mode), 'use "conv" or "cross"'))
    if precision is not None and not isinstance(precision, str):
        raise GraphTypeError(explain_error("precision is a string", repr(precision)))
    if precision not in _PRECISIONS:
        raise ArgumentError(explain_error("precision does not take this value", repr(precision),
                                          'use "as_input_f32", "float32" or "float64"'))
    return make_spec(ndim, border_mode, subsample, dilation, num_groups, conv_mode == "conv", _PRECISIONS[precision],
                     ("border_mode", "subsample", "dilation", "num_groups"))
