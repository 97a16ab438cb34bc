"""Whole matrices of derivatives: `jacobian`, `hessian`; and `hessian_vector_product`, which needs no matrix."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, GradientError, GraphTypeError, explain_error
from ..graph import TensorType, Variable
from ..graph.gradient import WhenDisconnected, grad
from . import batch_convolution, batch_rules  # noqa: F401  register their rules
from .batching import batched
from .constants import as_variable
from .creation import eye, zeros
from .shape import reshape, shape_sizes
from .sizes import joined_size

Wrt = Variable | Sequence[Variable]


def jacobian(expression: Variable, wrt: Wrt, consider_constant: Iterable[Variable] | None = None,
             disconnected_inputs: WhenDisconnected = "raise") -> Any:
    """The derivative of every element of an expression by every element of one variable or several.

    The rows are computed together: the graph of the gradient is applied to all unit vectors at once, every operation to the
    whole batch of them.  So the graph is no larger than that of one gradient, and memory is needed for as many gradients as
    the expression has elements; where that is too much, `sc.Lop` and `sc.Rop` give products with vectors.

    Args:
        expression: a float expression of any rank, with static sizes or unknown ones.
        wrt: a variable, or a list or tuple of them. The result has the same form.
        consider_constant: variables through which no gradient flows.
        disconnected_inputs: what to do when the expression does not depend on a variable of `wrt`: "raise", or "warn" or
            "ignore" and give zeros.

    Returns:
        For each variable of `wrt` the derivatives in the shape of the expression followed by that of the variable (Theano's
        took expressions of rank 0 and 1).

    Raises:
        GradientError: the expression is no float, or an operation on the way has no gradient.
        DisconnectedInputError: the expression does not depend on a variable of `wrt`.

    Theano: `theano.gradient.jacobian`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.dvector("x")
    >>> sc.jacobian(x ** 2, x).eval({x: [1.0, 2.0]})
    array([[2., 0.],
           [0., 4.]])
    """
    _check_expression(expression)
    if expression.ndim == 0:
        return grad(expression, wrt, consider_constant, disconnected_inputs)
    wanted = _as_list(wrt)
    vector = Variable(TensorType(expression.dtype, expression.type.shape))
    found = grad(None, wanted, consider_constant, disconnected_inputs, {expression: vector}, "none")
    sizes = shape_sizes(expression)
    count = joined_size(sizes)
    units = reshape(eye(count, dtype=expression.dtype), (count, *sizes))
    rows = iter(batched([each for each in found if each is not None], vector, units, count))
    results = [_zeros(sizes, variable) if each is None else reshape(next(rows), (*sizes, *shape_sizes(variable)))
               for variable, each in zip(wanted, found, strict=True)]
    return type(wrt)(results) if isinstance(wrt, (list, tuple)) else results[0]


def hessian(cost: Variable, wrt: Wrt, consider_constant: Iterable[Variable] | None = None,
            disconnected_inputs: WhenDisconnected = "raise") -> Any:
    """The second derivatives of a scalar expression by the elements of one variable, or of several each by itself.

    Args:
        cost: a float expression of rank 0.
        wrt: a variable of any rank (Theano's took vectors), or a list or tuple of them. The result has the same form.
        consider_constant, disconnected_inputs: as for `sc.grad`.

    Returns:
        For each variable the derivatives in its shape followed by its shape once more; zeros where the gradient is constant.

    Raises:
        GradientError, DisconnectedInputError: as `sc.grad`.

    Theano: `theano.gradient.hessian`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.dvector("x")
    >>> sc.hessian((x ** 3).sum() + x[0] * x[1], x).eval({x: [1.0, 2.0]})
    array([[ 6.,  1.],
           [ 1., 12.]])
    """
    wanted = _as_list(wrt)
    constant = frozenset(consider_constant or ())
    gradients = grad(cost, wanted, constant, disconnected_inputs)
    results = [jacobian(gradient, variable, constant, "ignore") for gradient, variable in zip(gradients, wanted, strict=True)]
    return type(wrt)(results) if isinstance(wrt, (list, tuple)) else results[0]


def hessian_vector_product(cost: Variable, wrt: Wrt, vectors: Any) -> Any:
    """The Hessian of a scalar expression times a vector, at the price of two gradients.

    Args:
        cost: a float expression of rank 0.
        wrt: a variable, or a list or tuple of them; the Hessian is that of all of them together.
        vectors: for each variable of `wrt` a tensor of its shape, cast to its dtype.

    Returns:
        In the form of `wrt`: for each variable the sum over all elements of `wrt` of second derivatives times `vectors`.

    Raises:
        ArgumentError: as many vectors as variables are needed, each of its variable's shape.
        GradientError, DisconnectedInputError: as `sc.grad`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.dvector("x")
    >>> sc.hessian_vector_product((x ** 3).sum() + x[0] * x[1], x, [1.0, -1.0]).eval({x: [1.0, 2.0]})
    array([  5., -11.])
    """
    wanted = _as_list(wrt)
    points = list(vectors) if isinstance(vectors, (list, tuple)) and isinstance(wrt, (list, tuple)) else [vectors]
    if len(points) != len(wanted):
        raise ArgumentError(explain_error("a product with a Hessian needs one vector for each variable",
                                          f"{len(wanted)} variables and {len(points)} vectors"))
    made = [_checked_vector(variable, point) for variable, point in zip(wanted, points, strict=True)]
    slopes = [(gradient * vector).sum() for gradient, vector in zip(grad(cost, wanted), made, strict=True)]
    total = slopes[0]
    for slope in slopes[1:]:
        total = total + slope
    results = grad(total, wanted, disconnected_inputs="ignore")
    return type(wrt)(results) if isinstance(wrt, (list, tuple)) else results[0]


def _checked_vector(variable: Variable, value: Any) -> Variable:
    """The value as a variable; an error where it has another rank or other sizes."""
    vector = as_variable(value, variable.dtype)
    if not variable.type.accepts(vector.type):
        raise ArgumentError(explain_error(f"the vector for {variable.label!r} has another type",
                                          f"{vector.type} for {variable.type}", "give one of its shape"))
    return vector


def _as_list(wrt: Wrt) -> list[Variable]:
    return [wrt] if isinstance(wrt, Variable) else list(wrt)


def _check_expression(expression: Any) -> None:
    if not isinstance(expression, Variable):
        raise GraphTypeError(explain_error("a jacobian is that of a symbolic variable", type(expression).__name__))
    if not dtypes.is_float(expression.dtype):
        raise GradientError(explain_error("the expression of a jacobian is a float", f"{expression.label}: {expression.type}",
                                          where=expression.source))


def _zeros(sizes: Sequence[Any], variable: Variable) -> Variable:
    """No dependence: zeros in the variable's dtype, or in floatX where that is no float."""
    from ..config import config

    dtype = variable.dtype if dtypes.is_float(variable.dtype) else str(config.floatX)
    return zeros((*sizes, *shape_sizes(variable)), dtype)
