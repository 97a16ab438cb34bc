"""Reverse-mode differentiation of expressions: `grad`, `Lop` and `Rop`.

One walk from the outputs back adds, for every node on a path to a variable asked for, what `Op.grad` says.  The result
is again an expression, so gradients of gradients need nothing more.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, DisconnectedInputError, GradientError, GraphTypeError, InternalError, explain_error
from .node import Apply
from .operators import meaning
from .scope import gradient_scope
from .traversal import toposort
from .variable import Constant, Variable

WhenDisconnected = Literal["raise", "warn", "ignore"]
Disconnected = Literal["zero", "none", "disconnected"]


def grad(cost: Variable | None, wrt: Variable | Sequence[Variable], consider_constant: Iterable[Variable] | None = None,
         disconnected_inputs: WhenDisconnected = "raise", known_grads: Mapping[Variable, Any] | None = None,
         return_disconnected: Disconnected = "zero", add_names: bool = True) -> Any:
    """The gradient of a scalar expression with respect to one variable or several.

    Args:
        cost: a float expression of rank 0; None where `known_grads` says it all.
        wrt: a variable, or a list or tuple of them. The result has the same form.
        consider_constant: variables through which no gradient flows.
        disconnected_inputs: what to do when the cost does not depend on a variable of `wrt`.
        known_grads: the gradient of the cost with respect to some variables, given instead of computed.
        return_disconnected: what stands for such a variable: zeros of its shape ("zero") or None ("none", "disconnected").
        add_names: name the results `(dcost/dx)` where both have names.

    Raises:
        GradientError: the cost is not a float of rank 0, or an operation on the way has no gradient.
        DisconnectedInputError: the cost does not depend on a variable of `wrt`.

    Theano: `theano.gradient.grad`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.scalar("x")
    >>> float(sc.grad(x**3, x).eval({x: 2.0}))
    12.0
    """
    known = _known_cotangents(cost, known_grads)
    wanted = _as_list(wrt)
    _check_choice("disconnected_inputs", disconnected_inputs, ("raise", "warn", "ignore"))
    _check_choice("return_disconnected", return_disconnected, ("zero", "none", "disconnected"))
    found = pull_back(known, wanted, frozenset(consider_constant or ()))
    results = []
    for variable, cotangent in zip(wanted, found, strict=True):
        if cotangent is None:
            _handle_disconnected(cost, variable, disconnected_inputs)
            cotangent = _zero_like(variable) if return_disconnected == "zero" else None
        elif add_names and cost is not None and cost.name and variable.name and cotangent.name is None \
                and cotangent.apply is not None:
            cotangent.name = f"(d{cost.name}/d{variable.name})"
        results.append(cotangent)
    return type(wrt)(results) if isinstance(wrt, (list, tuple)) else results[0]


def Lop(f: Variable | Sequence[Variable], wrt: Variable | Sequence[Variable], eval_points: Any,
        consider_constant: Iterable[Variable] | None = None, disconnected_inputs: WhenDisconnected = "raise") -> Any:
    """Row vector times Jacobian: the gradient of the sum of `f · eval_points` with respect to `wrt`.

    `eval_points` has one value for each of `f`, of its shape. Theano: `theano.gradient.Lop`.
    """
    outputs = _as_list(f)
    points = list(eval_points) if isinstance(eval_points, (list, tuple)) else [eval_points]
    if len(outputs) != len(points):
        raise ArgumentError(explain_error("Lop needs one evaluation point for each output",
                                          f"{len(outputs)} outputs and {len(points)} points"))
    known = dict(zip(outputs, points, strict=True))
    return grad(None, wrt, consider_constant, disconnected_inputs, known)


def Rop(f: Variable | Sequence[Variable], wrt: Variable | Sequence[Variable], eval_points: Any) -> Any:
    """Jacobian times column vector: how `f` changes when `wrt` moves along `eval_points`.

    Computed as the gradient of the (linear) map u → Lop(f, wrt, u) against `eval_points`, so every differentiable op has
    it.  Theano: `theano.gradient.Rop`.
    """
    outputs, variables = _as_list(f), _as_list(wrt)
    points = list(eval_points) if isinstance(eval_points, (list, tuple)) else [eval_points]
    if len(variables) != len(points):
        raise ArgumentError(explain_error("Rop needs one evaluation point for each variable",
                                          f"{len(variables)} variables and {len(points)} points"))
    dummies = [_zero_like(output) for output in outputs]
    rows = pull_back(dict(zip(outputs, dummies, strict=True)), variables, frozenset())
    pairs = {row: _as_variable(point) for row, point in zip(rows, points, strict=True) if row is not None}
    columns = pull_back(pairs, dummies, frozenset())
    results = [_zero_like(output) if column is None else column for output, column in zip(outputs, columns, strict=True)]
    return type(f)(results) if isinstance(f, (list, tuple)) else results[0]


def pull_back(known: Mapping[Variable, Variable], wanted: Sequence[Variable],
              constant: frozenset[Variable]) -> list[Variable | None]:
    """Cotangents of `wanted`, from `known` cotangents; None where nothing flows."""
    order = toposort(known)
    relevant = _depending_on(order, set(wanted), constant)
    cotangents: dict[Variable, Variable] = dict(known)
    for node in reversed(order):
        flowing = [cotangents.get(output) for output in node.outputs]
        if all(each is None for each in flowing) or not any(variable in relevant for variable in node.inputs):
            continue
        for variable, cotangent in zip(node.inputs, _node_gradients(node, flowing), strict=True):
            if cotangent is None or variable not in relevant or variable in known:
                continue
            before = cotangents.get(variable)
            cotangents[variable] = cotangent if before is None else _sum(before, cotangent, variable)
    return [cotangents.get(variable) if variable in relevant else None for variable in wanted]


def _depending_on(order: Iterable[Apply], wanted: set[Variable], constant: frozenset[Variable]) -> set[Variable]:
    """The variables whose value depends on one of `wanted` without passing through one of `constant`."""
    relevant = wanted - constant
    for node in order:
        if any(variable in relevant for variable in node.inputs):
            relevant.update(output for output in node.outputs if output not in constant)
    return relevant


def _sum(before: Variable, cotangent: Variable, variable: Variable) -> Variable:
    """The cotangent of a variable that several nodes read, in the scope of its gradient."""
    with gradient_scope(variable.scopes):
        return before + cotangent


def _node_gradients(node: Apply, flowing: Sequence[Variable | None]) -> Sequence[Variable | None]:
    with gradient_scope(node.outputs[0].scopes):
        gradients = node.op.grad(node, flowing)
    if len(gradients) != len(node.inputs):
        raise InternalError(f"{node.op}.grad gives {len(gradients)} gradients for {len(node.inputs)} inputs")
    for variable, gradient in zip(node.inputs, gradients, strict=True):
        if gradient is not None and (gradient.dtype != variable.dtype or gradient.ndim != variable.ndim):
            raise InternalError(f"{node.op}.grad gives {gradient.type} as the gradient of {variable.type}")
    return gradients


def _known_cotangents(cost: Variable | None, known_grads: Mapping[Variable, Any] | None) -> dict[Variable, Variable]:
    known: dict[Variable, Variable] = {}
    for variable, value in (known_grads or {}).items():
        known[variable] = _checked_cotangent(variable, _as_variable(value))
    if cost is None:
        if not known:
            raise ArgumentError(explain_error("grad needs a cost or known_grads", "neither"))
        return known
    if not isinstance(cost, Variable):
        raise GraphTypeError(explain_error("the cost of a gradient is a symbolic variable", type(cost).__name__))
    if cost.ndim != 0:
        raise GradientError(explain_error("the cost of a gradient is a scalar (rank 0)", f"{cost.label}: {cost.type}",
                                          "take its sum() or mean()", cost.source))
    if not dtypes.is_float(cost.dtype):
        raise GradientError(explain_error("the cost of a gradient is a float", f"{cost.label}: {cost.type}",
                                          where=cost.source))
    known.setdefault(cost, Constant(np.ones((), dtypes.numpy_dtype(cost.dtype))))
    return known


def _checked_cotangent(variable: Variable, value: Variable) -> Variable:
    if value.dtype != variable.dtype:
        value = value.astype(variable.dtype)
    if not variable.type.accepts(value.type):
        raise GradientError(explain_error(f"the known gradient of {variable!r} has another type",
                                          f"{value.type} for {variable.type}", where=variable.source))
    return value


def _handle_disconnected(cost: Variable | None, variable: Variable, how: WhenDisconnected) -> None:
    if how == "ignore":
        return
    reason = ("it is an integer or bool, which has no gradient" if not dtypes.is_float(variable.dtype)
              else "no differentiable path leads from it to the cost")
    text = explain_error(f"the cost{' ' + repr(cost.name) if cost is not None and cost.name else ''} does not depend on "
                         f"{variable.label!r} ({variable.type})", reason,
                         'leave it out of wrt, or pass disconnected_inputs="ignore" for a gradient of zeros', variable.source)
    if how == "raise":
        raise DisconnectedInputError(text)
    import warnings

    warnings.warn(text, stacklevel=4)


def _zero_like(variable: Variable) -> Variable:
    if dtypes.is_float(variable.dtype):
        return meaning("zeros_like")(variable)
    from ..config import config

    return meaning("zeros_like")(variable, dtype=config.floatX)


def _as_variable(value: Any) -> Variable:
    return meaning("as_variable")(value)


def _as_list(variables: Variable | Sequence[Variable]) -> list[Variable]:
    chosen: list[Any] = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    for variable in chosen:
        if not isinstance(variable, Variable):
            raise GraphTypeError(explain_error("wrt is a symbolic variable, or a list or tuple of them",
                                               f"{type(variable).__name__} {variable!r}"))
    return chosen


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(explain_error(f"{name} is one of {', '.join(choices)}", repr(value)))
