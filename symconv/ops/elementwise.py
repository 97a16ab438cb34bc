"""Elementwise operations with NumPy's broadcasting, and one builder for each scalar operation.

Builders bring their arguments to one dtype (rules in `symconv/dtypes.py`) by inserting `cast` nodes only where needed.
Broadcasting is NumPy's, at run time too: a size that is None may turn out to be 1.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .broadcasting import broadcast_types
from .constants import as_variable
from .promotion import common_dtype, float_dtype
from .scalar import SCALAR_OPS, evaluate_scalar, result_dtype

_KIND_NAMES = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats"}


@dataclass(frozen=True, slots=True)
class Elementwise(Op):
    """The scalar operation `scalar` on every element of its broadcast arguments; `dtype` is the target of a cast."""

    scalar: str
    dtype: str | None = None

    @property
    def name(self) -> str:
        """The scalar operation's name."""
        return self.scalar

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        """The broadcast shape; ShapeError where sizes clash, GraphTypeError for dtypes that the operation does not take."""
        dtype = _checked_dtype(self.scalar, tuple([type.dtype for type in types]), self.dtype)
        return (TensorType(dtype, broadcast_types(self.scalar, types)),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """By the table in `ops/elementwise_gradients.py`, summed over what was broadcast."""
        from .elementwise_gradients import elementwise_gradient

        return elementwise_gradient(apply, cotangents[0])

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        """NumPy's answer, rounded to the result's dtype."""
        dtype = result_dtype(self.scalar, tuple(array.dtype.name for array in inputs), self.dtype)
        return (evaluate_scalar(self.scalar, inputs, dtype),)

    def __str__(self) -> str:
        return self.scalar if self.dtype is None else f"{self.scalar}{{{self.dtype}}}"


@lru_cache(maxsize=4096)
def _checked_dtype(scalar: str, arguments: tuple[str, ...], dtype: str | None) -> str:
    """The result's dtype for arguments of these dtypes; kept, since every node of every graph asks."""
    _check_dtypes(scalar, arguments)
    return result_dtype(scalar, arguments, dtype)


def _check_dtypes(scalar: str, arguments: tuple[str, ...]) -> None:
    row = SCALAR_OPS[scalar]
    if len(arguments) != row.arity:
        raise GraphTypeError(explain_error(f"{scalar} takes {row.arity} arguments", str(len(arguments))))
    values = arguments[1:] if scalar == "where" else arguments
    if scalar == "where" and arguments[0] != "bool":
        raise GraphTypeError(explain_error("the condition of where must be bool", arguments[0], "compare it with something"))
    if len(set(values)) > 1:
        raise GraphTypeError(explain_error(f"the arguments of {scalar} must have one dtype", ", ".join(values),
                                           "use the builder function, which casts, or T.cast"))
    if dtypes.kind(values[0]) not in row.kinds:
        takes = ", ".join(_KIND_NAMES[kind] for kind in row.kinds)
        advice = "use ~, & , | or ^ on bool, or cast it first" if values[0] == "bool" else "cast it first"
        raise GraphTypeError(explain_error(f"{scalar} takes {takes}", values[0], advice))


def elementwise(scalar: str, *values: Any, dtype: str | None = None) -> Variable:
    """The node of a scalar operation on values brought to `dtype` (default: the dtype in which they meet)."""
    wanted = common_dtype(values) if dtype is None else dtype
    return apply_op(Elementwise(scalar), *(as_variable(value, wanted) for value in values))


def cast(x: Any, dtype: Any) -> Variable:
    """The same values in another dtype, as NumPy's `astype`; `x` itself where it has that dtype already.

    Floats are cut towards zero on the way to integers, everything but 0 becomes True on the way to bool.
    """
    variable, name = as_variable(x), dtypes.canonical(dtype)
    return variable if variable.dtype == name else apply_op(Elementwise("cast", name), variable)


Unary = Callable[[Any], Variable]
Binary = Callable[[Any, Any], Variable]


def _named(function: Callable[..., Variable], name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _float_unary(scalar: str, text: str) -> Unary:
    """A function of floats: integers and bool are cast to a float dtype first."""
    def build(x: Any) -> Variable:
        variable = as_variable(x)
        return elementwise(scalar, variable, dtype=float_dtype(variable.dtype))

    return _named(build, scalar, f"{text}, elementwise. Integers and bool are cast to float first (`float_dtype`).")


def _number_unary(scalar: str, text: str, on_bool: str = "") -> Unary:
    """A function of all numbers that keeps the dtype; `on_bool` says what a bool does: "" (an error) or "same"."""
    def build(x: Any) -> Variable:
        variable = as_variable(x)
        return variable if variable.dtype == "bool" and on_bool else elementwise(scalar, variable)

    return _named(build, scalar, f"{text}, elementwise; keeps the dtype.")


def _rounding(scalar: str, text: str) -> Unary:
    def build(x: Any) -> Variable:
        variable = as_variable(x)
        return elementwise(scalar, variable) if dtypes.is_float(variable.dtype) else variable

    return _named(build, scalar, f"{text}, elementwise; keeps the dtype; integers and bool stay as they are.")


def _float_binary(scalar: str, text: str) -> Binary:
    """A function of two floats: where both are integers they are cast to a float dtype first."""
    def build(a: Any, b: Any) -> Variable:
        return elementwise(scalar, a, b, dtype=float_dtype(common_dtype((a, b))))

    return _named(build, scalar, f"{text}, with broadcasting. Two integers are cast to float first (`float_dtype`).")


def _number_binary(scalar: str, text: str, on_bool: str = "") -> Binary:
    """A function of two numbers; `on_bool` names the operation for two bools: "" the same one, "int8" in int8 as NumPy."""
    def build(a: Any, b: Any) -> Variable:
        dtype = common_dtype((a, b))
        if dtype != "bool" or not on_bool:
            return elementwise(scalar, a, b, dtype=dtype)
        return elementwise(scalar, a, b, dtype="int8") if on_bool == "int8" else elementwise(on_bool, a, b)

    return _named(build, scalar, f"{text}, with broadcasting.")


def _comparison(scalar: str, text: str, name: str = "") -> Binary:
    def build(a: Any, b: Any) -> Variable:
        return elementwise(scalar, a, b)

    return _named(build, name or scalar, f"Whether {text}, with broadcasting; bool. NaN compares as IEEE says.")


add = _number_binary("add", "Sum; integers wrap; of two bools: or", "or_")
sub = _number_binary("sub", "Difference; integers wrap; an error for two bools")
mul = _number_binary("mul", "Product; integers wrap; of two bools: and", "and_")
true_div = _float_binary("true_div", "Quotient")
floor_div = _number_binary("floor_div", "Quotient rounded down (Python's //); integers by 0 give 0", "int8")
mod = _number_binary("mod", "Remainder with the divisor's sign (Python's %); integers by 0 give 0", "int8")
maximum = _number_binary("maximum", "The larger one; NaN wins")
minimum = _number_binary("minimum", "The smaller one; NaN wins")
masked_mul = _number_binary("masked_mul", "Product of floats in which 0 times infinity or NaN is 0")
arctan2 = _float_binary("arctan2", "Angle of the point (b, a)")
logaddexp = _float_binary("logaddexp", "log(exp(a) + exp(b)) without overflow")

eq = _comparison("eq", "a equals b")
neq = _comparison("ne", "a differs from b", "neq")
lt = _comparison("lt", "a < b")
le = _comparison("le", "a <= b")
gt = _comparison("gt", "a > b")
ge = _comparison("ge", "a >= b")
and_ = _number_binary("and_", "Bitwise and (logical for bool)")
or_ = _number_binary("or_", "Bitwise or (logical for bool)")
xor = _number_binary("xor", "Bitwise exclusive or (logical for bool)")
invert = _number_unary("invert", "Bitwise not (logical for bool)")

neg = _number_unary("neg", "-x; unsigned integers wrap")
abs = _number_unary("abs", "Absolute value", on_bool="same")
sign = _number_unary("sign", "-1, 0 or 1; NaN stays")
relu = _number_unary("relu", "x where x > 0, else 0; NaN stays")
floor = _rounding("floor", "Largest whole number up to x")
ceil = _rounding("ceil", "Smallest whole number from x")
trunc = _rounding("trunc", "x without its fraction")
round = _rounding("round", "Nearest whole number; halves go to the even one")

exp = _float_unary("exp", "e to the power x")
exp2 = _float_unary("exp2", "2 to the power x")
expm1 = _float_unary("expm1", "exp(x) - 1, exact near 0")
log = _float_unary("log", "Natural logarithm")
log2 = _float_unary("log2", "Logarithm to the base 2")
log10 = _float_unary("log10", "Logarithm to the base 10")
log1p = _float_unary("log1p", "log(1 + x), exact near 0")
sqrt = _float_unary("sqrt", "Square root")
rsqrt = _float_unary("rsqrt", "1 / sqrt(x)")
reciprocal = _float_unary("reciprocal", "1 / x")
sin = _float_unary("sin", "Sine")
cos = _float_unary("cos", "Cosine")
tan = _float_unary("tan", "Tangent")
arcsin = _float_unary("arcsin", "Inverse sine")
arccos = _float_unary("arccos", "Inverse cosine")
arctan = _float_unary("arctan", "Inverse tangent")
sinh = _float_unary("sinh", "Hyperbolic sine")
cosh = _float_unary("cosh", "Hyperbolic cosine")
tanh = _float_unary("tanh", "Hyperbolic tangent")
erf = _float_unary("erf", "Error function")
sigmoid = _float_unary("sigmoid", "1 / (1 + exp(-x)) without overflow")
softplus = _float_unary("softplus", "log(1 + exp(x)) without overflow")
isnan = _float_unary("isnan", "Whether x is NaN")
isinf = _float_unary("isinf", "Whether x is infinite")
isfinite = _float_unary("isfinite", "Whether x is neither NaN nor infinite")


def square(x: Any) -> Variable:
    """x * x, elementwise; keeps the dtype; bool becomes int8, as in NumPy."""
    variable = as_variable(x)
    return elementwise("square", variable, dtype="int8" if variable.dtype == "bool" else variable.dtype)


def pow(a: Any, b: Any) -> Variable:
    """a to the power b, with broadcasting; integers wrap.

    An integer to a negative Python int is an ArgumentError, as in NumPy; where the exponent is known only at run time,
    negative ones give the quotient rounded towards zero (0 but for the bases 1 and -1).
    """
    dtype = common_dtype((a, b))
    if not dtypes.is_float(dtype) and type(b) is int and b < 0:
        raise ArgumentError(explain_error("an integer to a negative power is no integer", f"{dtype} ** {b}",
                                          "cast the base to a float first"))
    return elementwise("pow", a, b, dtype="int8" if dtype == "bool" else dtype)


def where(condition: Any, a: Any, b: Any) -> Variable:
    """`a` where the condition holds, else `b`, with broadcasting. A condition that is not bool holds where it is not 0.

    Gradients go only to the branch that was taken: the other one gets exactly zero, whatever its own derivative is.

    >>> where([True, False], as_variable([[1], [2], [3]], "float32"), 0.5).type
    TensorType(dtype='float32', shape=(3, 2))
    """
    dtype = common_dtype((a, b))
    return apply_op(Elementwise("where"), as_variable(condition, "bool"), as_variable(a, dtype), as_variable(b, dtype))


def clip(x: Any, low: Any, high: Any) -> Variable:
    """x limited to `low` … `high` (`minimum(maximum(x, low), high)`), with broadcasting; NaN stays.

    The gradient with respect to x is 1 inside and at the limits, 0 outside.
    """
    return elementwise("clip", x, low, high)
