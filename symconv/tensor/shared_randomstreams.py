"""Theano's names of the source of random tensors: `RandomStreams` and `MRG_RandomStreams` are `T.random.RandomStream`.

The numbers are Philox's, not those of Theano; `random_integers(low, high)` is `integers(low, high + 1)`.
"""
from __future__ import annotations

from .random import RandomStream

RandomStreams = MRG_RandomStreams = RandomStream

__all__ = ["MRG_RandomStreams", "RandomStreams"]
