"""Random expressions, each built twice side by side: as a symconv expression and with plain NumPy, the oracle.

`RandomGraph(seed)` holds the inputs with their values, the outputs and the outputs' NumPy values.  Nodes have several
readers, there are several outputs, inputs have known or unknown sizes.  Values stay moderate: what grows is squashed by
tanh.  Comparisons are only made of values that another rounding cannot tip over: see `_apart`.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import symconv.tensor as T
from symconv.graph import TensorType, Variable
from symconv.tensor import nnet
from symconv.tensor.signal.pool import pool_2d

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pair:
    """A symbolic value and its NumPy value."""

    variable: Variable
    array: Array


class RandomGraph:
    """A random expression of about `size` operations; `known`: whether inputs have static sizes (default: random)."""

    def __init__(self, seed: int, size: int = 14, known: bool | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.known = bool(self.rng.integers(2)) if known is None else known
        self.inputs: dict[Variable, Array] = {}
        self.pool: list[Pair] = []
        for number, shape in enumerate(self._input_shapes()):
            self._input(f"x{number}", shape)
        for _ in range(size):
            self._step()
        chosen = self.rng.permutation(len(self.pool))[:3]
        others = [self.pool[place] for place in chosen]
        self.results = [self.pool[-1], *(pair for pair in others if pair.variable.apply is not None)]

    @property
    def outputs(self) -> list[Variable]:
        """The symbolic outputs."""
        return [pair.variable for pair in self.results]

    @property
    def expected(self) -> list[Array]:
        """What NumPy computes for them."""
        return [pair.array for pair in self.results]

    def _input_shapes(self) -> list[tuple[int, ...]]:
        n, m = (int(each) for each in self.rng.integers(1, 6, 2))
        return [(n, m), (m,), (n, 1), (2, 3, 6, 5), (3,), ()]

    def _input(self, name: str, shape: tuple[int, ...]) -> None:
        array = self.rng.normal(size=shape)
        sizes = shape if self.known or not shape else (None, *shape[1:]) if self.rng.integers(2) else (None,) * len(shape)
        variable = Variable(TensorType("float64", sizes), name)
        self.inputs[variable] = array
        self.pool.append(Pair(variable, array))

    def _step(self) -> None:
        kinds = (self._unary, self._unary, self._binary, self._binary, self._binary, self._reduce, self._move, self._index,
                 self._identity, self._stable, self._choose, self._image, self._join, self._product, self._write)
        made = kinds[self.rng.integers(len(kinds))]()
        if made is None:
            return
        assert np.isfinite(made.array).all()
        if made.array.size and np.abs(made.array).max() > 30:
            made = Pair(T.tanh(made.variable), np.tanh(made.array))
        self.pool.append(made)

    def _pick(self, test: Callable[[Array], bool] = lambda array: True) -> Pair | None:
        """A value that passes a test; later ones are likelier."""
        fitting = [pair for pair in self.pool if test(pair.array)]
        if not fitting:
            return None
        return fitting[max(self.rng.integers(len(fitting)), self.rng.integers(len(fitting)))]

    def _one_of(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def _unary(self) -> Pair | None:
        pair = self._pick()
        assert pair is not None
        x, a = pair.variable, pair.array
        makers: tuple[Callable[[], tuple[Variable, Array]], ...] = (
            lambda: (T.tanh(x), np.tanh(a)), lambda: (T.sigmoid(x), 1 / (1 + np.exp(-a))),
            lambda: (T.exp(T.tanh(x)), np.exp(np.tanh(a))), lambda: (T.square(x), a * a), lambda: (-x, -a),
            lambda: (T.sqrt(abs(x) + 1), np.sqrt(np.abs(a) + 1)), lambda: (T.log(abs(x) + 0.5), np.log(np.abs(a) + 0.5)),
            lambda: (T.softplus(x), np.logaddexp(a, 0)), lambda: (T.relu(x), np.maximum(a, 0)),
            lambda: (T.sin(x), np.sin(a)), lambda: (abs(x), np.abs(a)), lambda: (x ** 2, a ** 2), lambda: (x ** 3, a ** 3),
            lambda: (2.5 * x, 2.5 * a), lambda: (1 - x, 1 - a), lambda: (x / 3, a / 3),
            lambda: (T.clip(x, -10.0, 10.0), np.clip(a, -10, 10)), lambda: (x.astype("float64"), a))
        return Pair(*makers[self.rng.integers(len(makers))]())

    def _binary(self) -> Pair | None:
        left = self._pick()
        assert left is not None
        right = self._pick(lambda array: _broadcasts(left.array, array))
        if right is None:
            return None
        x, y, a, b = left.variable, right.variable, left.array, right.array
        makers: tuple[Callable[[], tuple[Variable, Array]], ...] = (
            lambda: (x + y, a + b), lambda: (x - y, a - b), lambda: (x * y, a * b),
            lambda: (x / (1 + y * y), a / (1 + b * b)), lambda: (T.maximum(x, y), np.maximum(a, b)),
            lambda: (T.minimum(x, y), np.minimum(a, b)), lambda: (x + (-y), a - b), lambda: (x * y + x, a * b + a))
        return Pair(*makers[self.rng.integers(len(makers))]())

    def _choose(self) -> Pair | None:
        condition, left = self._pick(), self._pick()
        assert condition is not None
        assert left is not None
        right = self._pick(lambda array: _broadcasts(left.array, array))
        if right is None or not _broadcasts(condition.array, left.array + right.array) or not _apart(condition.array):
            return None
        test = condition.array > 0.25
        if self.rng.integers(2):
            return Pair(T.where(condition.variable > 0.25, left.variable, right.variable),
                        np.where(test, left.array, right.array))
        counted = (condition.variable > 0.25).astype("int64")
        return Pair((counted * 2 + 1).astype("float64") * left.variable, (test * 2.0 + 1) * left.array)

    def _reduce(self) -> Pair | None:
        pair = self._pick(lambda array: array.ndim > 0 and array.size > 0)
        if pair is None:
            return None
        axis = self._one_of(None, int(self.rng.integers(pair.array.ndim)), tuple(range(pair.array.ndim)))
        keep = bool(self.rng.integers(2))
        name = self._one_of("sum", "mean", "max", "min", "sum")
        x, a = pair.variable, pair.array
        if self.rng.integers(3) == 0:
            x, a = x * x, a * a
        return Pair(getattr(T, name)(x, axis=axis, keepdims=keep), getattr(np, name)(a, axis=axis, keepdims=keep))

    def _move(self) -> Pair | None:
        pair = self._pick(lambda array: array.ndim > 0)
        if pair is None:
            return None
        x, a = pair.variable, pair.array
        order = tuple(int(axis) for axis in self.rng.permutation(a.ndim))
        makers: tuple[Callable[[], tuple[Variable, Array]], ...] = (
            lambda: (x.transpose(*order), a.transpose(order)), lambda: (x.reshape((-1,)), a.reshape(-1)),
            lambda: (x.reshape((1, -1)), a.reshape(1, -1)), lambda: (T.expand_dims(x, 0), a[None]),
            lambda: (x.reshape(x.shape), a), lambda: (x.flatten(), a.reshape(-1)),
            lambda: (T.tanh(x).transpose(*order).transpose(*np.argsort(order).tolist()), np.tanh(a)),
            lambda: (x.dimshuffle("x", *range(a.ndim)), a[None]) if a.ndim < 4 else (x, a))
        return Pair(*makers[self.rng.integers(len(makers))]())

    def _index(self) -> Pair | None:
        pair = self._pick(lambda array: array.ndim > 0 and array.size > 0)
        if pair is None:
            return None
        x, a = pair.variable, pair.array
        size = a.shape[0]
        makers: tuple[Any, ...] = (
            slice(None, None, -1), slice(0, max(1, size - 1)), slice(None), int(self.rng.integers(size)),
            self.rng.integers(-size, size, 3), (Ellipsis, slice(None, None, 2)), (Ellipsis, slice(None, None, -1)))
        index = makers[self.rng.integers(len(makers))]
        return Pair(x[index], a[index])

    def _write(self) -> Pair | None:
        pair = self._pick(lambda array: array.ndim > 0 and array.size > 0)
        if pair is None:
            return None
        part = slice(0, 1 + int(self.rng.integers(pair.array.shape[0])))
        array = pair.array.copy()
        if self.rng.integers(2):
            array[part] += 0.5
            return Pair(T.inc_subtensor(pair.variable[part], 0.5), array)
        array[part] = -0.5
        return Pair(T.set_subtensor(pair.variable[part], -0.5), array)

    def _identity(self) -> Pair | None:
        """What laws should make disappear."""
        pair = self._pick()
        assert pair is not None
        x, a = pair.variable, pair.array
        makers = (lambda: x * 1.0, lambda: x - 0.0, lambda: x + 0.0, lambda: T.neg(-x), lambda: x / 1, lambda: x ** 1,
                  lambda: T.where(T.constant(True), x, x + 1), lambda: x.astype("float64"),
                  lambda: x + T.zeros_like(x), lambda: x * T.ones_like(x), lambda: T.minimum(x, x),
                  lambda: T.log(T.exp(x)), lambda: T.concatenate([x]) if a.ndim else x)
        return Pair(makers[self.rng.integers(len(makers))](), a)

    def _stable(self) -> Pair | None:
        """What laws should bring to stable forms."""
        pair = self._pick(lambda array: array.ndim > 0 and array.size > 0)
        if pair is None:
            return None
        x, a = pair.variable, pair.array
        axis = int(self.rng.integers(a.ndim))
        shifted = a - a.max(axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        by_hand = T.exp(x) / T.exp(x).sum(axis=axis, keepdims=True)
        makers: tuple[Callable[[], tuple[Variable, Array]], ...] = (
            lambda: (nnet.softmax(x, axis), np.exp(shifted) / total), lambda: (by_hand, np.exp(shifted) / total),
            lambda: (T.log(nnet.softmax(x, axis)), shifted - np.log(total)),
            lambda: (T.log(nnet.softmax(x, axis).flatten()), (shifted - np.log(total)).reshape(-1)),
            lambda: (T.log(nnet.softmax(x, axis)[::-1]), (shifted - np.log(total))[::-1]),
            lambda: (T.log(T.exp(x).sum(axis=axis)), np.log(total.squeeze(axis)) + a.max(axis)),
            lambda: (T.log(T.sigmoid(x)), -np.logaddexp(-a, 0)), lambda: (T.log(1 - T.sigmoid(x)), -np.logaddexp(a, 0)),
            lambda: (T.log(1 + T.exp(x)), np.logaddexp(a, 0)), lambda: (1 / (1 + T.exp(-x)), 1 / (1 + np.exp(-a))),
            lambda: (T.exp(x / 40) - 1, np.expm1(a / 40)), lambda: (T.sqrt(T.square(x)), np.abs(a)))
        return Pair(*makers[self.rng.integers(len(makers))]())

    def _image(self) -> Pair | None:
        """A convolution with what usually follows it, or a pooling."""
        pair = self._pick(lambda array: array.ndim == 4 and min(array.shape[2:]) >= 3 and array.size > 0)
        if pair is None:
            return None
        x, a = pair.variable, pair.array
        if self.rng.integers(3) == 0:
            return self._pooled(x, a)
        channels = int(self.rng.integers(1, 4))
        w = self.rng.normal(size=(channels, a.shape[1], 3, 3)) / 4
        bias = self.rng.normal(size=channels)
        weights, pad = T.constant(w), int(self.rng.integers(2))
        flip = bool(self.rng.integers(2))
        if self.rng.integers(4) == 0:
            result = nnet.conv2d(T.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad))), weights, filter_flip=flip)
        elif self.rng.integers(4) == 0:
            result = nnet.conv2d(x, weights[:, :, ::-1, ::-1], border_mode=pad, filter_flip=not flip)
        else:
            result = nnet.conv2d(x, weights, border_mode=pad, filter_flip=flip)
        array = _convolution(a, w[:, :, ::-1, ::-1] if flip else w, pad)
        if self.rng.integers(4) == 0:
            self.pool.append(Pair(result, array))  # a second reader, perhaps
        by_channel = T.constant(bias).dimshuffle("x", 0, "x", "x")
        result, array = result + by_channel, array + bias[:, None, None]
        if self.rng.integers(3) == 0:
            result, array = result * by_channel - by_channel, array * bias[:, None, None] - bias[:, None, None]
        if array.shape == a.shape and self.rng.integers(2):
            result, array = result + x, array + a
        kind = self.rng.integers(4)
        if kind == 0:
            return Pair(T.relu(result), np.maximum(array, 0))
        if kind == 1:
            return Pair(result * T.sigmoid(result), array / (1 + np.exp(-array)))
        return Pair(T.tanh(result), np.tanh(array)) if kind == 2 else Pair(result, array)

    def _pooled(self, x: Variable, a: Array) -> Pair:
        rows, columns = a.shape[2] // 2, a.shape[3] // 2
        windows = a[:, :, :2 * rows, :2 * columns].reshape(*a.shape[:2], rows, 2, columns, 2)
        if self.rng.integers(2):
            return Pair(pool_2d(x, (2, 2), ignore_border=True), windows.max((3, 5)))
        return Pair(pool_2d(x, (2, 2), ignore_border=True, mode="average_exc_pad"), windows.mean((3, 5)))

    def _join(self) -> Pair | None:
        pair = self._pick(lambda array: array.ndim > 0)
        if pair is None:
            return None
        other = self._pick(lambda array: array.shape == pair.array.shape)
        assert other is not None
        return Pair(T.concatenate([pair.variable, other.variable], axis=0), np.concatenate([pair.array, other.array]))

    def _product(self) -> Pair | None:
        left = self._pick(lambda array: array.ndim == 2)
        if left is None:
            return None
        right = self._pick(lambda array: array.ndim == 2 and array.shape[0] == left.array.shape[1])
        if right is None:
            return Pair(T.dot(left.variable, left.variable.T), left.array @ left.array.T)
        if self.rng.integers(2):
            return Pair(T.dot(left.variable, right.variable).T, (left.array @ right.array).T)
        return Pair(T.dot(left.variable, right.variable), left.array @ right.array)


def _broadcasts(a: Array, b: Array) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= 4096
    except ValueError:
        return False


def _apart(array: Array) -> bool:
    """Whether no element is so near the threshold 0.25 that another rounding would tip it over."""
    return not (np.abs(array - 0.25) < 1e-6).any()


def _convolution(x: Array, w: Array, pad: int) -> Array:
    """Cross-correlation with equal zero padding, by windows."""
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwrs,kcrs->nkhw", windows, w)
