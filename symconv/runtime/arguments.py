"""What may be said of a function's inputs and outputs, and how a call's arguments become arrays."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, GraphTypeError, InputTypeError, explain_error
from ..graph import Constant, Variable
from .shared import SharedVariable, checked_value

Array = np.ndarray[Any, Any]
_READABLE = 0x0001 | 0x0100  # NumPy's flags of a row-major, aligned array


class In:
    """An input with options.

    Args:
        variable: the symbolic variable.
        name: keyword by which it is passed; its own name by default.
        value: default value of the argument.
        strict: take only NumPy arrays of exactly the variable's dtype.
        allow_downcast: True: convert whatever dtype comes; False: never lose anything; None: Python numbers may round.
        borrow: accepted for Theano's programs: inputs are never changed and never copied without need.
    """

    def __init__(self, variable: Variable, name: str | None = None, value: Any = None, strict: bool = False,
                 allow_downcast: bool | None = None, borrow: bool = True) -> None:
        _check_input(variable)
        self.variable = variable
        self.name = name or variable.name
        self.strict = strict
        self.allow_downcast = allow_downcast
        self.borrow = borrow
        self.numpy_dtype = dtypes.numpy_dtype(variable.dtype)
        self._ndim = variable.ndim
        self._shape = variable.static_shape if variable.type.is_static else None
        self._sizes = [(axis, size) for axis, size in enumerate(variable.type.shape) if size is not None]
        self.default = None if value is None else self.convert(value, 0).copy()  # what the caller does to his array is his

    def convert(self, value: Any, position: int) -> Array:
        """The argument as an array the program can read (row-major, aligned), or an error naming the input."""
        wanted = self.numpy_dtype
        if (type(value) is np.ndarray and ((dtype := value.dtype) is wanted or dtype == wanted)
                and value.flags.num & _READABLE == _READABLE):
            shape = value.shape
            if shape == self._shape or (len(shape) == self._ndim and (not self._sizes or self._fits(shape))):
                return value
        what = f"the input {self.name!r} (argument {position})" if self.name else f"argument {position}"
        array = checked_value(value, self.variable.type, what, allow_downcast=self.allow_downcast, strict=self.strict)
        return np.require(array, requirements=["C", "A"])

    def _fits(self, shape: tuple[int, ...]) -> bool:
        return all(shape[axis] == size for axis, size in self._sizes)


class Out:
    """An output with options.

    Args:
        variable: the expression.
        borrow: accepted for Theano's programs: outputs are always arrays of their own.
        on_device: leave the result on the function's device: on "cuda" a CuPy array, which other libraries take without a copy
            (DLPack, `__cuda_array_interface__`). On the CPU results are NumPy arrays either way.
    """

    def __init__(self, variable: Variable, borrow: bool = False, on_device: bool = False) -> None:
        self.variable = variable
        self.borrow = borrow
        self.on_device = on_device


def _check_input(variable: Any) -> None:
    if not isinstance(variable, Variable):
        raise GraphTypeError(explain_error("an input of a function is a symbolic variable",
                                           f"{type(variable).__name__} {variable!r}",
                                           "make it with symconv.tensor (T.matrix(), T.tensor4(), …)"))
    if isinstance(variable, SharedVariable):
        raise GraphTypeError(explain_error("a shared variable is no input: every function reads its value by itself",
                                           repr(variable), "leave it out of the inputs, or replace it with givens"))
    if isinstance(variable, Constant):
        raise GraphTypeError(explain_error("a constant is no input", repr(variable)))


def make_inputs(inputs: Any, allow_downcast: bool | None) -> list[In]:
    """The inputs of `compile` as `In` objects; a variable given twice is an error."""
    if not isinstance(inputs, (list, tuple)):
        raise GraphTypeError(explain_error("the inputs of a function are a list or tuple of variables", type(inputs).__name__,
                                           "write [x] for a single input"))
    made = [each if isinstance(each, In) else In(each, allow_downcast=allow_downcast) for each in inputs]
    seen: set[Variable] = set()
    for position, each in enumerate(made):
        if each.variable in seen:
            raise ArgumentError(explain_error("a variable stands twice in the inputs", f"{each.variable!r} again at {position}",
                                              "remove it", each.variable.source))
        seen.add(each.variable)
    return made


def match_arguments(inputs: Sequence[In], args: Sequence[Any], kwargs: Mapping[str, Any], function: str,
                    convert: Callable[[In, Any, int], Any] = In.convert) -> list[Any]:
    """The arrays of one call in the order of the inputs, each made by `convert(input, value, position)`."""
    if not kwargs and len(args) == len(inputs):
        return [convert(each, value, position) for position, (each, value) in enumerate(zip(inputs, args, strict=True))]
    if len(args) > len(inputs):
        raise InputTypeError(explain_error(f"{function} takes {len(inputs)} arguments", f"{len(args)}", _signature(inputs)))
    given: dict[int, Any] = dict(enumerate(args))
    for name, value in kwargs.items():
        positions = [position for position, each in enumerate(inputs) if each.name == name]
        if len(positions) != 1:
            found = "several inputs have this name" if positions else "no input has this name"
            raise InputTypeError(explain_error(f"{function} has no single input named {name!r}", found, _signature(inputs)))
        if positions[0] in given:
            raise InputTypeError(explain_error(f"{function} got the input {name!r} twice", "by position and by name"))
        given[positions[0]] = value
    arrays = []
    for position, each in enumerate(inputs):
        if position in given:
            arrays.append(convert(each, given[position], position))
        elif each.default is not None:
            arrays.append(each.default)
        else:
            raise InputTypeError(explain_error(f"{function} misses the argument {position}"
                                               f"{f' ({each.name!r})' if each.name else ''}",
                                               f"{len(given)} of {len(inputs)} arguments", _signature(inputs)))
    return arrays


def _signature(inputs: Sequence[In]) -> str:
    names = ", ".join(f"{each.name or f'argument {position}'}: {each.variable.type}" for position, each in enumerate(inputs))
    return f"call it with ({names})"
