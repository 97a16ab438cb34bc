"""Theano's path of batch normalisation, `theano.tensor.nnet.bn`: the functions are those of `symconv.tensor.nnet`."""
from __future__ import annotations

from .normalisation import batch_normalization, batch_normalization_test, batch_normalization_train

__all__ = ["batch_normalization", "batch_normalization_test", "batch_normalization_train"]
