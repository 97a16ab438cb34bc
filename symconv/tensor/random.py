"""Random tensors: streams whose state is a shared variable (`ops/random.py` says how a number follows from it)."""
from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..config import config
from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Variable
from ..ops.constants import as_variable
from ..ops.elementwise import cast, floor
from ..ops.random import advanced, random, random_sizes
from ..ops.state import make_shared

__all__ = ["RandomStream"]


class RandomStream:
    """A source of random tensors. Every tensor drawn has a state of its own, that each call of a function moves on.

    The numbers depend on the seed and on the order in which the tensors were drawn when the expression was built, not on the
    device, the number of threads or what else is computed: Philox4x32-10, counter-based (Salmon et al. 2011).  Used twice
    in one function, a drawn tensor is the same numbers twice.  The results do not depend continuously on the state, so its
    gradient is none; those with respect to `low`, `high`, `avg` and `std` are exact.

    Args:
        seed: a whole number from 0. Streams with the same seed give the same numbers.

    Theano: `MRG_RandomStreams`, `shared_randomstreams.RandomStreams`.
    """

    def __init__(self, seed: int = 12345) -> None:
        self._key_seed = _checked_seed(seed)
        self.states: list[Any] = []

    def uniform(self, size: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = None) -> Variable:
        """Numbers between `low` and `high`, `low` included (`high` may appear by rounding where low + u·(high - low) does).

        Args:
            size: an int, a tuple of ints and symbolic scalars, or a symbolic vector of static length.
            low, high: numbers or tensors that broadcast against `size`.
            dtype: a float dtype; `config.floatX` by default.
        """
        name = _float_name(dtype)
        if _is_number(low, 0) and _is_number(high, 1):
            return self._draw("uniform", size, name)
        start, end = _operand(low, name), _operand(high, name)
        return self._draw("uniform", size, name) * (end - start) + start

    def normal(self, size: Any = (), avg: Any = 0.0, std: Any = 1.0, dtype: Any = None) -> Variable:
        """Normal numbers of mean `avg` and deviation `std` (numbers or tensors that broadcast against `size`)."""
        name = _float_name(dtype)
        mean, deviation = _operand(avg, name), _operand(std, name)
        draw = self._draw("normal", size, name)
        scaled = draw if _is_number(std, 1) else draw * deviation
        return scaled if _is_number(avg, 0) else scaled + mean

    def bernoulli(self, size: Any = (), p: Any = 0.5, dtype: Any = "bool") -> Variable:
        """True (or 1, in another `dtype`) with probability `p`, a number or a tensor that broadcasts against `size`."""
        if not _surely(lambda chance: (chance >= 0) & (chance <= 1), p):
            raise ArgumentError(explain_error("a probability lies between 0 and 1", repr(p)))
        return cast(self._draw("uniform", size, "float32") < cast(as_variable(p), "float32"), dtype)

    def binomial(self, size: Any = (), n: int = 1, p: Any = 0.5, dtype: Any = "int64") -> Variable:
        """How many of `n` trials succeed, each with probability `p`, which broadcasts against `size`."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ArgumentError(explain_error("the number of trials is an int from 1", repr(n)))
        if n == 1:
            return self.bernoulli(size, p, dtype)
        return cast(self.bernoulli((n, *random_sizes(size)), p).sum(axis=0), dtype)

    def integers(self, size: Any = (), low: Any = 0, high: Any = 2, dtype: Any = "int64") -> Variable:
        """Whole numbers from `low` up to, not including, `high`; a range of up to 2⁵³ (each is as likely as any other to
        within range·2⁻⁵³)."""
        name = dtypes.canonical(dtype)
        if not dtypes.is_integer(name):
            raise GraphTypeError(explain_error("random integers have an integer dtype", name))
        if not _surely(np.less, low, high):
            raise ArgumentError(explain_error("random integers need low < high", f"low={low!r} high={high!r}"))
        start, end = _operand(low, "int64"), _operand(high, "int64")
        steps = floor(self._draw("uniform", size, "float64") * cast(end - start, "float64"))
        return cast(cast(steps, "int64") + start, name)

    def seed(self, seed: int | None = None) -> None:
        """Put all states back to the start of a seed (by default the stream's own)."""
        if seed is not None:
            self._key_seed = _checked_seed(seed)
        for number, state in enumerate(self.states):
            state.set_value(_first_state(self._key_seed, number))

    def updates(self) -> list[tuple[Any, Variable]]:
        """Every state with its next value, for functions compiled without default updates."""
        return [(state, state.default_update) for state in self.states]

    def _draw(self, distribution: str, size: Any, dtype: str) -> Variable:
        number = len(self.states)
        state = make_shared(_first_state(self._key_seed, number), name=f"random_state_{number}")
        result = random(distribution, state, size, dtype)
        state.default_update = advanced(state, size, dtype)
        self.states.append(state)
        return result


def _first_state(seed: int, number: int) -> np.ndarray[Any, Any]:
    """The state of the tensor drawn as the `number`-th from a seed: a key of its own, counter 0."""
    key = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64)[0]
    return np.array([key, 0], np.uint64)


def _checked_seed(seed: Any) -> int:
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or int(seed) < 0:
        raise ArgumentError(explain_error("the seed of a random stream is a whole number from 0", repr(seed)))
    return int(seed)


def _float_name(dtype: Any) -> str:
    return str(config.floatX) if dtype is None else dtypes.canonical(dtype)


def _is_number(value: Any, number: int) -> bool:
    return type(value) in (int, float) and value == number


def _operand(value: Any, dtype: str) -> Variable:
    """A parameter as a variable in the draw's dtype; a wider variable is no silent cast."""
    variable = as_variable(value, None if isinstance(value, Variable) else dtype)
    if dtypes.promote([variable.dtype, dtype]) != dtype:
        raise GraphTypeError(explain_error(f"a parameter of a {dtype} random tensor has a wider dtype", str(variable.type),
                                           f"cast it, or ask for dtype={variable.dtype!r}"))
    return cast(variable, dtype)


def _surely(condition: Any, *values: Any) -> bool:
    """Whether a condition on numbers and arrays holds everywhere; what is symbolic is not looked at."""
    return any(isinstance(value, Variable) for value in values) or bool(np.all(condition(*map(np.asarray, values))))
