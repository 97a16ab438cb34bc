"""Layers of neural networks: convolution, pooling, activations, normalisation, dropout and losses."""
from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any as _Any

from ...errors import explain_error as _explain_error
from . import abstract_conv, bn, neighbours
from .activations import (
    elu,
    gelu,
    hard_sigmoid,
    leaky_relu,
    log_softmax,
    logsoftmax,
    relu,
    selu,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    swish,
    tanh,
)
from .conv import (
    conv1d,
    conv1d_grad_wrt_inputs,
    conv1d_grad_wrt_weights,
    conv2d,
    conv2d_grad_wrt_inputs,
    conv2d_grad_wrt_weights,
    conv3d,
    conv3d_grad_wrt_inputs,
    conv3d_grad_wrt_weights,
)
from .conv_attributes import (
    Conv_dgrad_attributes,
    Conv_fprop_attributes,
    Conv_wgrad_attributes,
    ConvDgradAttributes,
    ConvFpropAttributes,
    ConvWgradAttributes,
)
from .conv_operations import conv_dgrad, conv_fprop, conv_wgrad
from .conv_separable import (
    causal_conv1d,
    depthwise_conv1d,
    depthwise_conv2d,
    depthwise_conv3d,
    separable_conv1d,
    separable_conv2d,
    separable_conv3d,
)
from .conv_transposed import conv1d_transpose, conv2d_transpose, conv3d_transpose
from .dropout import dropout
from .losses import binary_crossentropy, categorical_crossentropy, sigmoid_binary_crossentropy, softmax_cross_entropy
from .neighbours import images2neibs, neibs2images
from .normalisation import (
    batch_normalization,
    batch_normalization_test,
    batch_normalization_train,
    group_normalization,
    instance_normalization,
    layer_normalization,
    local_response_normalization,
)
from .pooling import (
    average_pool_1d,
    average_pool_2d,
    average_pool_3d,
    global_average_pool,
    global_max_pool,
    max_pool_1d,
    max_pool_2d,
    max_pool_3d,
    pool_1d,
    pool_2d,
    pool_3d,
)
from .upsampling import bilinear_kernel_1D, bilinear_kernel_2D, bilinear_upsampling

__all__ = ["ConvDgradAttributes", "ConvFpropAttributes", "ConvWgradAttributes", "Conv_dgrad_attributes", "Conv_fprop_attributes",
           "Conv_wgrad_attributes", "abstract_conv", "average_pool_1d", "average_pool_2d", "average_pool_3d",
           "batch_normalization", "batch_normalization_test", "batch_normalization_train", "bilinear_kernel_1D",
           "bilinear_kernel_2D", "bilinear_upsampling", "binary_crossentropy", "bn", "categorical_crossentropy", "causal_conv1d",
           "conv1d", "conv1d_grad_wrt_inputs", "conv1d_grad_wrt_weights", "conv1d_transpose", "conv2d", "conv2d_grad_wrt_inputs",
           "conv2d_grad_wrt_weights", "conv2d_transpose", "conv3d", "conv3d_grad_wrt_inputs", "conv3d_grad_wrt_weights",
           "conv3d_transpose", "conv_dgrad", "conv_fprop", "conv_wgrad", "depthwise_conv1d", "depthwise_conv2d",
           "depthwise_conv3d", "dropout", "elu", "gelu", "global_average_pool", "global_max_pool", "group_normalization",
           "hard_sigmoid", "images2neibs", "instance_normalization", "layer_normalization", "leaky_relu",
           "local_response_normalization", "log_softmax", "logsoftmax", "max_pool_1d", "max_pool_2d", "max_pool_3d",
           "neibs2images", "neighbours", "pool_1d", "pool_2d", "pool_3d", "relu", "selu", "separable_conv1d", "separable_conv2d",
           "separable_conv3d", "sigmoid", "sigmoid_binary_crossentropy", "silu", "softmax", "softmax_cross_entropy", "softplus",
           "softsign", "swish", "tanh"]

# Names of Theano's that are not here, and what to write instead.
_ABSENT = {
    "softmax_with_bias": "softmax(x + b)",
    "crossentropy_softmax_1hot": "softmax_cross_entropy(x, labels); softmax(x) beside it",
    "crossentropy_softmax_1hot_with_bias": "softmax_cross_entropy(x + b, labels); softmax(x + b) beside it",
    "crossentropy_softmax_argmax_1hot_with_bias": "softmax_cross_entropy(x + b, labels), softmax(x + b), T.argmax(x + b, axis=1)",
    "crossentropy_categorical_1hot": "categorical_crossentropy(probabilities, labels)",
    "ultra_fast_sigmoid": "hard_sigmoid, or sigmoid, whose kernel is vector code",
    "h_softmax": "softmax over groups: softmax(x.reshape((n, groups, each)))",
    "confusion_matrix": "T.bincount(actual * n + predicted, minlength=n * n).reshape((n, n))",
    "blocksparse": "T.batched_dot of the blocks that T.take chooses",
    "sigm": "sigmoid, hard_sigmoid and softplus stand in nnet itself",
    "nnet": "the functions stand in nnet itself",
    "ctc": "the loss of a sequence has to be written out step by step"}


def __getattr__(name: str) -> _Any:
    if name == "dnn":  # imports what asks for cuDNN
        return _import_module(".dnn", __name__)
    raise AttributeError(_explain_error(f"module {__name__!r} has no attribute {name!r}", do=_ABSENT.get(name, "")))
