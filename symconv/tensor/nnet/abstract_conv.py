"""Theano's path of convolutions, `theano.tensor.nnet.abstract_conv`: the functions are those of `symconv.tensor.nnet`."""
from __future__ import annotations

from .conv import (
    conv2d,
    conv2d_grad_wrt_inputs,
    conv2d_grad_wrt_weights,
    conv3d,
    conv3d_grad_wrt_inputs,
    conv3d_grad_wrt_weights,
)
from .conv_separable import causal_conv1d, separable_conv2d, separable_conv3d
from .conv_transposed import conv2d_transpose
from .upsampling import bilinear_kernel_1D, bilinear_kernel_2D, bilinear_upsampling

__all__ = ["bilinear_kernel_1D", "bilinear_kernel_2D", "bilinear_upsampling", "causal_conv1d", "conv2d",
           "conv2d_grad_wrt_inputs", "conv2d_grad_wrt_weights", "conv2d_transpose", "conv3d", "conv3d_grad_wrt_inputs",
           "conv3d_grad_wrt_weights", "separable_conv2d", "separable_conv3d"]
