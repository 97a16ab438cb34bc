"""Nodes: an Op applied to variables.

An Op is a frozen dataclass whose fields are its identity.  It says what is computed: types (`infer`), gradient (`grad`)
and a plain NumPy reference (`reference`).  How it is computed is no part of it.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import GradientError, IndexRangeError, InternalError, UserError, explain_error
from .provenance import Sources, current_source
from .types import TensorType
from .variable import Constant, Variable

Array = np.ndarray[Any, Any]


class Op:
    """Base of all operations; subclasses are `@dataclass(frozen=True, slots=True)`.

    `value_inputs` are the positions of inputs whose *values* (not just shapes) decide the shape of an output: the new
    shape of a reshape, the bounds of a slice.  Before a program is made, `infer_bound` gets those values.
    `has_effect`: it does more than compute its results (prints, checks); it is never computed ahead of a run, and `act` says
    what else it does.  `run_time_error` is the class of the errors that its kernels' codes stand for.
    """

    __slots__ = ()
    value_inputs: ClassVar[tuple[int, ...]] = ()
    has_effect: ClassVar[bool] = False
    run_time_error: ClassVar[type[UserError]] = IndexRangeError

    @property
    def name(self) -> str:
        """Short name for printing."""
        return type(self).__name__

    def infer(self, *types: Any, **_: Any) -> tuple[TensorType, ...]:
        """Types of the outputs, sizes None where they are not known; a UserError where the inputs do not fit."""
        raise InternalError(f"{self.name} does not say the types of its outputs")

    def infer_variables(self, inputs: Sequence[Variable]) -> tuple[TensorType, ...]:
        """Types of the outputs as far as the input *variables* tell; what `apply_op` calls.

        Where every shape and every value in `value_inputs` is known this is `infer_bound`, else `infer`.  An op whose
        shape argument may be known in part (`reshape(x, (n, 10))`) overrides it and looks at the variables.
        """
        types = [variable.type for variable in inputs]
        chosen = {position: inputs[position] for position in self.value_inputs}
        values = {position: each.data for position, each in chosen.items() if isinstance(each, Constant)}
        if all(type.is_static for type in types) and len(values) == len(self.value_inputs):
            return self.infer_bound(types, values)
        return self.infer(*types)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        """Types of the outputs when all input shapes are known, with the values of the inputs in `value_inputs`.

        The result must be fully static.  The same rule as `infer`, with more known: one function should serve both.
        """
        return self.infer(*types)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """Gradient with respect to each input, given those of the outputs (None: that output is not used).

        None in the result means that the output does not depend on that input continuously (an index, a shape).
        """
        raise GradientError(explain_error(f"the operation {self.name} has no gradient", where=apply.source))

    def reference(self, *inputs: Any, **_: Any) -> tuple[Array, ...]:
        """The outputs computed plainly with NumPy: the oracle every other path is tested against."""
        raise InternalError(f"{self.name} has no reference")

    def act(self, *inputs: Any) -> None:
        """What a program does before it runs the reference of an op with an effect."""

    def view(self, shape: tuple[int, ...], strides: tuple[int, ...], result_shape: tuple[int, ...],
             constants: Mapping[int, Array]) -> tuple[int, tuple[int, ...]] | None:
        """How output 0 lies in the memory of input 0, which has this shape and these strides (in elements).

        The answer is the offset of the first element and the strides of the output, or None where the output must be
        computed.  `constants` holds the values of the inputs that are constant.  Ops that only rename elements
        (dimshuffle, reshape, slices, broadcast) answer; the schedule then makes no step for them.
        """
        return None

    def __str__(self) -> str:
        return self.name


class Apply:
    """One node: `op` applied to `inputs`; made by `apply_op`, never changed afterwards."""

    __slots__ = ("__weakref__", "inputs", "op", "outputs", "source")

    def __init__(self, op: Op, inputs: Iterable[Variable], types: Iterable[TensorType], source: Sources) -> None:
        self.op = op
        self.inputs = tuple(inputs)
        self.outputs = tuple(Variable(type, None, self, index) for index, type in enumerate(types))
        self.source = source

    def __repr__(self) -> str:
        return f"{self.op}({', '.join(variable.label for variable in self.inputs)})"

    def __reduce__(self) -> Any:
        from .pickling import reduce_apply

        return reduce_apply(self)


def make_apply(op: Op, inputs: Sequence[Variable], source: Sources | None = None) -> Apply:
    """A node with inferred output types, marked with the user's line; a UserError is told where the inputs came from."""
    places = current_source() if source is None else source
    try:
        types = op.infer_variables(inputs)
    except UserError as error:
        if places and "\n  where: " not in str(error):
            raise type(error)(f"{error}\n  where: {places[0]}") from None
        raise
    return Apply(op, inputs, types, places)


def apply_op(op: Op, *inputs: Variable) -> Variable:
    """The first output of `op` applied to `inputs`."""
    return make_apply(op, inputs).outputs[0]
