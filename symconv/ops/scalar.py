"""The closed vocabulary of scalar operations, and programs of them.

A `ScalarProgram` is the body of a fused elementwise kernel, the prologue of a reduction or the epilogue of a
convolution: a flat tuple of instructions over numbered values.  Values 0 … n-1 are the inputs, then one for each
instruction.  All arguments of one instruction have one dtype (casts are instructions), but for the condition of `where`.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import InternalError
from .array_module import as_array, erf

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One scalar operation: name, number of arguments, the kinds of dtype it takes, its result and its NumPy meaning.

    `result` is "same" (as the arguments), "bool", or "cast" (the instruction's own dtype).
    """

    name: str
    arity: int
    kinds: str
    result: str
    numpy: Callable[..., Any]
    symbol: str = ""
    commutative: bool = False


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def _softplus(x: Array) -> Array:
    return np.where(np.isnan(x), x, np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def _relu(x: Array) -> Array:
    return np.where(x <= 0, x.dtype.type(0), x)


def _floor_div(a: Array, b: Array) -> Array:
    return np.floor_divide(a, b)


def _clip(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        return _integer_pow(a, b)
    return np.power(a, b)


def _integer_pow(a: Array, b: Array) -> Array:
    """Integer powers that wrap; a negative exponent gives 0 but for the bases 1 and -1 (NumPy raises there)."""
    positive = np.power(a, np.maximum(b, 0))
    if a.dtype.kind == "u":
        return positive  # beside a signed inverse, uint64 would meet int64 in float64
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b < 0, inverse, positive).astype(a.dtype)


def _masked_mul(a: Array, b: Array) -> Array:
    return np.where((a == 0) | (b == 0), a.dtype.type(0), a * b)


_ROWS = (
    ScalarOp("add", 2, "iuf", "same", np.add, "+", True),
    ScalarOp("sub", 2, "iuf", "same", np.subtract, "-"),
    ScalarOp("mul", 2, "iuf", "same", np.multiply, "*", True),
    ScalarOp("masked_mul", 2, "f", "same", _masked_mul, "", True),  # the product, but 0 * inf and 0 * NaN are 0
    ScalarOp("true_div", 2, "f", "same", np.true_divide, "/"),
    ScalarOp("floor_div", 2, "iuf", "same", _floor_div, "//"),
    ScalarOp("mod", 2, "iuf", "same", np.mod, "%"),
    ScalarOp("pow", 2, "iuf", "same", _pow, "**"),
    ScalarOp("maximum", 2, "biuf", "same", np.maximum, "", True),
    ScalarOp("minimum", 2, "biuf", "same", np.minimum, "", True),
    ScalarOp("arctan2", 2, "f", "same", np.arctan2),
    ScalarOp("logaddexp", 2, "f", "same", np.logaddexp, "", True),
    ScalarOp("eq", 2, "biuf", "bool", np.equal, "==", True),
    ScalarOp("ne", 2, "biuf", "bool", np.not_equal, "!=", True),
    ScalarOp("lt", 2, "biuf", "bool", np.less, "<"),
    ScalarOp("le", 2, "biuf", "bool", np.less_equal, "<="),
    ScalarOp("gt", 2, "biuf", "bool", np.greater, ">"),
    ScalarOp("ge", 2, "biuf", "bool", np.greater_equal, ">="),
    ScalarOp("and_", 2, "biu", "same", np.bitwise_and, "&", True),
    ScalarOp("or_", 2, "biu", "same", np.bitwise_or, "|", True),
    ScalarOp("xor", 2, "biu", "same", np.bitwise_xor, "^", True),
    ScalarOp("invert", 1, "biu", "same", np.invert, "~"),
    ScalarOp("neg", 1, "iuf", "same", np.negative, "-"),
    ScalarOp("abs", 1, "iuf", "same", np.abs),
    ScalarOp("sign", 1, "iuf", "same", np.sign),
    ScalarOp("square", 1, "iuf", "same", np.square),
    ScalarOp("exp", 1, "f", "same", np.exp),
    ScalarOp("exp2", 1, "f", "same", np.exp2),
    ScalarOp("expm1", 1, "f", "same", np.expm1),
    ScalarOp("log", 1, "f", "same", np.log),
    ScalarOp("log2", 1, "f", "same", np.log2),
    ScalarOp("log10", 1, "f", "same", np.log10),
    ScalarOp("log1p", 1, "f", "same", np.log1p),
    ScalarOp("sqrt", 1, "f", "same", np.sqrt),
    ScalarOp("rsqrt", 1, "f", "same", lambda x: 1 / np.sqrt(x)),
    ScalarOp("reciprocal", 1, "f", "same", lambda x: 1 / x),
    ScalarOp("sin", 1, "f", "same", np.sin),
    ScalarOp("cos", 1, "f", "same", np.cos),
    ScalarOp("tan", 1, "f", "same", np.tan),
    ScalarOp("arcsin", 1, "f", "same", np.arcsin),
    ScalarOp("arccos", 1, "f", "same", np.arccos),
    ScalarOp("arctan", 1, "f", "same", np.arctan),
    ScalarOp("sinh", 1, "f", "same", np.sinh),
    ScalarOp("cosh", 1, "f", "same", np.cosh),
    ScalarOp("tanh", 1, "f", "same", np.tanh),
    ScalarOp("erf", 1, "f", "same", erf),
    ScalarOp("sigmoid", 1, "f", "same", _sigmoid),
    ScalarOp("softplus", 1, "f", "same", _softplus),
    ScalarOp("relu", 1, "iuf", "same", _relu),
    ScalarOp("floor", 1, "f", "same", np.floor),
    ScalarOp("ceil", 1, "f", "same", np.ceil),
    ScalarOp("trunc", 1, "f", "same", np.trunc),
    ScalarOp("round", 1, "f", "same", np.rint),
    ScalarOp("isnan", 1, "f", "bool", np.isnan),
    ScalarOp("isinf", 1, "f", "bool", np.isinf),
    ScalarOp("isfinite", 1, "f", "bool", np.isfinite),
    ScalarOp("cast", 1, "biuf", "cast", lambda x: x),
    ScalarOp("where", 3, "biuf", "same", np.where),
    ScalarOp("clip", 3, "iuf", "same", _clip),
)
SCALAR_OPS: dict[str, ScalarOp] = {row.name: row for row in _ROWS}


def result_dtype(name: str, arguments: tuple[str, ...], own: str | None = None) -> str:
    """The dtype that a scalar operation gives for arguments of these dtypes (`own`: the target of a cast)."""
    rule = SCALAR_OPS[name].result
    if rule == "cast":
        if own is None:
            raise InternalError("a cast needs its dtype")
        return own
    return "bool" if rule == "bool" else arguments[-1]


def evaluate_scalar(name: str, arguments: tuple[Array, ...], dtype: str) -> Array:
    """One scalar operation on whole arrays, rounded to `dtype`; float16 and bfloat16 are computed in float32."""
    with np.errstate(all="ignore"):
        wide = [_widened(argument) for argument in arguments]
        result = SCALAR_OPS[name].numpy(*wide)
        return as_array(result).astype(dtypes.numpy_dtype(dtype), copy=False)


def _widened(array: Array) -> Array:
    """In float32 where it is narrower; an array of NumPy without axes as a scalar, which arrays of any package work with."""
    wide = array.astype(np.float32) if array.dtype.name in ("float16", "bfloat16") else array
    return wide[()] if isinstance(wide, np.ndarray) and wide.ndim == 0 else wide


@dataclass(frozen=True, slots=True)
class Instruction:
    """`op` applied to the values numbered `args`, giving `dtype`; `op` "constant" has a Python value and no args."""

    op: str
    args: tuple[int, ...]
    dtype: str
    value: float | int | bool | None = None

    def __eq__(self, other: object) -> bool:
        """Whether both are the same instruction; 0.0 and -0.0 are not the same value, since 1 divided by them differs."""
        return isinstance(other, Instruction) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        negative_zero = isinstance(self.value, float) and self.value == 0 and math.copysign(1, self.value) < 0
        return self.op, self.args, self.dtype, self.value, negative_zero

    def __str__(self) -> str:
        if self.op == "constant":
            return f"{self.value!r}:{self.dtype}"
        suffix = f":{self.dtype}" if self.op == "cast" else ""
        return f"{self.op}({', '.join(f'v{arg}' for arg in self.args)}){suffix}"


@dataclass(frozen=True, slots=True)
class ScalarProgram:
    """A straight-line program over scalars; frozen and hashable, so that it can be a field of an Op.

    >>> program = ScalarProgram(("float32", "float32"), (Instruction("add", (0, 1), "float32"),
    ...                                                  Instruction("relu", (2,), "float32")), (3,))
    >>> print(program)
    v2 = add(v0, v1); v3 = relu(v2) -> v3
    """

    inputs: tuple[str, ...]
    body: tuple[Instruction, ...]
    outputs: tuple[int, ...]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of every value."""
        return self.inputs + tuple(instruction.dtype for instruction in self.body)

    @property
    def output_dtypes(self) -> tuple[str, ...]:
        """The dtype of every output."""
        every = self.dtypes
        return tuple(every[number] for number in self.outputs)

    def evaluate(self, *arrays: Array) -> tuple[Array, ...]:
        """The outputs on whole arrays with NumPy's broadcasting."""
        values: list[Array] = list(arrays)
        for step in self.body:
            if step.op == "constant":
                values.append(np.asarray(step.value, dtypes.numpy_dtype(step.dtype)))
            else:
                values.append(evaluate_scalar(step.op, tuple(values[arg] for arg in step.args), step.dtype))
        return tuple(values[number] for number in self.outputs)

    def __str__(self) -> str:
        first = len(self.inputs)
        lines = [f"v{first + number} = {step}" for number, step in enumerate(self.body)]
        return "; ".join(lines) + " -> " + ", ".join(f"v{number}" for number in self.outputs)


def single(name: str, arguments: tuple[str, ...], dtype: str) -> ScalarProgram:
    """The program of one operation."""
    return ScalarProgram(arguments, (Instruction(name, tuple(range(len(arguments))), dtype),), (len(arguments),))
