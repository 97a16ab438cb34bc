"""Operations that do something beside giving their input on: `Print` shows it when the function runs, `Assert` checks conditions.

Both are Theano's (`theano.printing.Print`, `theano.tensor.opt.Assert`): called with a variable they give the same value, and only
what reads *their result* makes them run.  Rewrites keep them, and compute nothing of them while compiling.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError, AssertionFailedError, GraphTypeError, UserError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .constants import as_variable
from .elementwise import neq

# What a printed array may be asked. A fixed table: a loaded file names one of these, and nothing else is called.
_ATTRIBUTES: dict[str, Callable[[Array], Any]] = {
    "__str__": str, "__repr__": repr, "shape": lambda x: x.shape, "dtype": lambda x: x.dtype.name, "ndim": lambda x: x.ndim,
    "size": lambda x: x.size, "strides": lambda x: x.strides, "min": np.min, "max": np.max, "mean": np.mean, "std": np.std,
    "sum": np.sum, "any": np.any, "all": np.all,
}


@dataclass(frozen=True, slots=True)
class Print(Op):
    """`Print(message)(x)` is x; when the function runs, a line `message attribute = value` is printed for each of `attrs`.

    `attrs` are names of `__str__` (the default), `__repr__`, `shape`, `dtype`, `ndim`, `size`, `strides`, `min`, `max`, `mean`,
    `std`, `sum`, `any`, `all`.  Two equal prints of one variable are one.  On a device the value is fetched to be shown.
    Its gradient is that of x and prints nothing.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> f = sc.compile([x], sc.Print("x has", attrs=("shape", "max"))(x) * 2)
    >>> y = f([1.0, 3.0])
    x has shape = (2,)
    x has max = 3.0
    """

    message: str = ""
    attrs: tuple[str, ...] = ("__str__",)

    has_effect: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_message("Print", self.message)
        names = self.attrs if isinstance(self.attrs, (tuple, list)) else (self.attrs,)
        unknown = [name for name in names if not isinstance(name, str) or name not in _ATTRIBUTES]
        if unknown:
            raise ArgumentError(explain_error("Print cannot show this of an array", ", ".join(map(repr, unknown)),
                                              f"use names of {', '.join(_ATTRIBUTES)}"))
        object.__setattr__(self, "attrs", tuple(names))

    def __call__(self, x: Any) -> Variable:
        """`x`, printed when the function runs."""
        return apply_op(self, as_variable(x))

    def __str__(self) -> str:
        return f"Print{{{self.message!r}}}"

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """The input's type."""
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """The cotangent."""
        return tuple(cotangents)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """The input."""
        return (x,)

    def act(self, x: Array) -> None:
        """Print the lines."""
        for name in self.attrs:
            print(self.message, name, "=", _shown(name, x))


@dataclass(frozen=True, slots=True)
class Assert(Op):
    """`Assert(message)(x, *conditions)` is x; when the function runs and an element of a condition is 0, it is an error.

    The error is an `AssertionFailedError` (which is an `AssertionError`) that says the message; then no state has been changed.
    Conditions are variables of any shape and dtype; the gradient is that of x, and nothing flows to the conditions.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> f = sc.compile([x], T.log(sc.Assert("x must be positive")(x, x > 0)))
    >>> f([1.0, -1.0])
    Traceback (most recent call last):
      ...
    symconv.errors.AssertionFailedError: x must be positive...
    """

    message: str = "an assertion failed"

    run_time_error: ClassVar[type[UserError]] = AssertionFailedError
    has_effect: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_message("Assert", self.message)

    def __call__(self, x: Any, *conditions: Any) -> Variable:
        """`x`, where all elements of all conditions are true."""
        if not conditions:
            raise ArgumentError(explain_error("Assert has no condition", do="give the variable, then at least one condition"))
        made = [as_variable(each) for each in conditions]
        return apply_op(self, as_variable(x), *(each if each.dtype == "bool" else neq(each, 0) for each in made))

    def __str__(self) -> str:
        return f"Assert{{{self.message!r}}}"

    def infer(self, x: TensorType, *conditions: TensorType) -> tuple[TensorType, ...]:
        """The first input's type; the others must be booleans."""
        for position, condition in enumerate(conditions):
            if condition.dtype != "bool":
                raise GraphTypeError(explain_error(f"condition {position} of Assert is not of dtype bool", str(condition)))
        return (x,)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """The cotangent for x."""
        return (cotangents[0], *(None for _ in apply.inputs[1:]))

    def reference(self, x: Array, *conditions: Array) -> tuple[Array, ...]:
        """The input; conditions are looked at by `act`."""
        return (x,)

    def act(self, x: Array, *conditions: Array) -> None:
        """Raise where a condition fails."""
        if not all(bool(condition.all()) for condition in conditions):
            raise AssertionFailedError(self.message)


def _check_message(name: str, message: Any) -> None:
    if not isinstance(message, str):
        raise ArgumentError(explain_error(f"the message of {name} is not text", type(message).__name__, f'write {name}("…")(x)'))


def _shown(name: str, x: Any) -> Any:
    array = x.get() if hasattr(x, "get") else x  # CuPy's
    try:
        return _ATTRIBUTES[name](array)
    except ValueError as error:  # the largest of no elements
        return f"none ({error})"
