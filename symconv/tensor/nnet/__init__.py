"""Layers of neural networks: convolution, pooling, activations, normalisation, dropout and losses."""
from __future__ import annotations

from .activations import (
    elu,
    gelu,
    hard_sigmoid,
    leaky_relu,
    log_softmax,
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
from .dropout import dropout
from .losses import binary_crossentropy, categorical_crossentropy, sigmoid_binary_crossentropy, softmax_cross_entropy
from .normalisation import (
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

__all__ = ["average_pool_1d", "average_pool_2d", "average_pool_3d", "batch_normalization_test", "batch_normalization_train",
           "binary_crossentropy", "categorical_crossentropy", "dropout", "elu", "gelu", "global_average_pool",
           "global_max_pool", "group_normalization", "hard_sigmoid", "instance_normalization", "layer_normalization",
           "leaky_relu", "local_response_normalization", "log_softmax", "max_pool_1d", "max_pool_2d", "max_pool_3d",
           "pool_1d", "pool_2d", "pool_3d", "relu", "selu", "sigmoid", "sigmoid_binary_crossentropy", "silu", "softmax",
           "softmax_cross_entropy", "softplus", "softsign", "swish", "tanh"]
