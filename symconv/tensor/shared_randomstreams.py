"""Theano's sources of random tensors: `RandomStreams` and `MRG_RandomStreams` are one class, a `T.random.RandomStream` with more.

The numbers are Philox's, not those of Theano.
"""
from __future__ import annotations

from typing import Any

from ..config import config
from ..errors import ArgumentError, explain_error
from ..graph import Variable
from ..ops.constants import as_variable
from ..ops.creation import arange
from ..ops.cumulative import cumsum
from ..ops.elementwise import cast, eq, ge, minimum
from ..ops.indexing import getitem
from ..ops.random import random_sizes
from ..ops.shape import dimshuffle, shape_sizes, size_of
from ..ops.sorting import argsort, take_along_axis
from .random import RandomStream

__all__ = ["MRG_RandomStreams", "RandomStreams"]


class RandomStreams(RandomStream):
    """A `RandomStream` with Theano's further names; `random_integers(low, high)` is `integers(low, high + 1)`.

    >>> stream = RandomStreams(seed=234)
    >>> stream.permutation(n=4).type
    TensorType(dtype='int64', shape=(4,))
    """

    def random_integers(self, size: Any = (), low: Any = 0, high: Any = 1, dtype: Any = "int64") -> Variable:
        """Whole numbers from `low` to `high`, both included."""
        return self.integers(size, low, high + 1, dtype)

    def permutation(self, size: Any = (), n: Any = 1, dtype: Any = "int64") -> Variable:
        """Permutations of 0 … n - 1 as a last axis behind `size`; `n` is an int or a symbolic scalar."""
        return cast(argsort(self.uniform((*random_sizes(size), n), dtype="float64")), dtype)

    def shuffle_row_elements(self, x: Any) -> Variable:
        """x with the elements of its last axis in random order, another for every row."""
        x = as_variable(x)
        return take_along_axis(x, argsort(self.uniform(shape_sizes(x), dtype="float64")), -1)

    def multinomial(self, size: Any = None, n: int = 1, pvals: Any = None, dtype: Any = "int64") -> Variable:
        """How often each class was drawn in `n` draws, for every row of probabilities; of the shape of `pvals`.

        Args:
            size: for programs written for Theano: None, or the shape of `pvals` without its last axis.
            n: how many draws, an int from 1.
            pvals: probabilities along the last axis; each row is taken relative to its sum.
        """
        if pvals is None or isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ArgumentError(explain_error("multinomial takes probabilities and a number of draws from 1",
                                              f"{pvals!r}, n={n!r}"))
        chances = as_variable(pvals, None if isinstance(pvals, Variable) else config.floatX)
        if size is not None and len(random_sizes(size)) != chances.ndim - 1:
            raise ArgumentError(explain_error("the size of a multinomial draw is that of pvals without its last axis",
                                              f"{size!r} for {chances.type}", "leave it out"))
        drawn = self._classes((n, *shape_sizes(chances)[:-1]), chances)
        places = dimshuffle(arange(size_of(chances, chances.ndim - 1)), ["x"] * chances.ndim + [0])
        return cast(eq(dimshuffle(drawn, [*range(drawn.ndim), "x"]), places), "int64").sum(axis=0).astype(dtype)

    def choice(self, size: Any = (), a: Any = 2, replace: bool = True, p: Any = None, dtype: Any = "int64") -> Variable:
        """Elements of `a` (a vector; an int a stands for 0 … a - 1) at random, with probabilities `p` where they are given.

        With `replace=False` no element is drawn twice; then `size` is one int, at most the length of `a`, and there is no `p`.
        """
        count = a if isinstance(a, int) else size_of(as_variable(a), 0)
        if not replace:
            sizes = random_sizes(size)
            if len(sizes) != 1 or p is not None:
                raise ArgumentError(explain_error("a choice without replacement takes one size and no probabilities",
                                                  f"size={size!r}, p={p!r}"))
            places = getitem(self.permutation(n=count), slice(None, sizes[0]))
        elif p is None:
            places = self.integers(size, 0, count)
        else:
            chances = as_variable(p, None if isinstance(p, Variable) else config.floatX)
            places = self._classes(random_sizes(size), chances)
        return cast(places, dtype) if isinstance(a, int) else getitem(as_variable(a), places)

    def _classes(self, size: Any, chances: Variable) -> Variable:
        """Numbers of classes, of shape `size`, whose last axes are those of `chances` without its last."""
        ends = cumsum(chances, axis=-1)
        total = getitem(ends, (..., slice(-1, None)))
        drawn = dimshuffle(self.uniform(size, dtype=ends.dtype), [*range(len(random_sizes(size))), "x"]) * total
        return minimum(cast(ge(drawn, ends), "int64").sum(axis=-1), size_of(chances, chances.ndim - 1) - 1)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(explain_error(f"a random stream has no {name!r}", do=_ABSENT.get(name, "")))


_ABSENT = {"poisson": "draw it with NumPy and give it to the function",
           "truncated_normal": "T.clip(stream.normal(…), low, high), which heaps up at the ends",
           "gen_seedgen": "seed(number)", "state_updates": "updates()", "inc_rstate": "leave it out", "rstate": "states"}

MRG_RandomStreams = RandomStreams
