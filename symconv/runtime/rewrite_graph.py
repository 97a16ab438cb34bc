"""rewrite_graph: an expression as the compiler's rewrites leave it, without compiling it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..config import config
from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Constant, FunctionGraph, Variable, capture
from ..graph.traversal import leaves
from ..rewrites.pipeline import BOUND, SYMBOLIC, rewrite_bound, rewrite_symbolic
from .shared import SharedVariable
from .targets import make_target


def rewrite_graph(expression: Any, include: str | Iterable[str] | None = None, exclude: str | Iterable[str] = ()) -> Any:
    """The expression after the compiler's rewrites; nothing is compiled and the given expression stays as it is.

    Rewrites that hold for any shape always run; those that look at sizes (they fuse, choose layouts) run where all sizes of all
    leaves are known.  What a device can fuse is asked of `config.device`.  `fn.rewrites` lists what was done in a function.

    Args:
        expression: a variable, or a list, tuple or dict of variables.
        include: names of the phases and rules to run; None: all of them.
        exclude: names of phases and rules to leave out.

    Returns:
        The rewritten expressions, in the form in which they were given, over the same leaves.

    Raises:
        ArgumentError: no rewrite has one of the names (the message lists all names), or a rewrite was asked for that needs
            sizes which are not known.
        GraphTypeError: `expression` is something else.

    PyTensor: `pytensor.graph.rewrite_graph`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> print(sc.pprint(sc.rewrite_graph(T.log(1 + T.exp(x)))))
    softplus(x)
    >>> print(sc.pprint(sc.rewrite_graph(T.log(1 + T.exp(x)), exclude="stabilize")))
    log(1.0 + exp(x))
    """
    outputs = _flat(expression)
    inputs = [leaf for leaf in leaves(outputs) if not isinstance(leaf, (Constant, SharedVariable))]
    target = make_target(config.device)
    graph, log = rewrite_symbolic(capture(inputs, outputs), target, include, exclude)
    variables = (*graph.leaves, *(each for node in graph.nodes for each in node.outputs))
    if all(variable.type.is_static for variable in variables):
        graph, _ = rewrite_bound(graph, target, include, exclude, log)
    elif include is not None:
        _refuse_bound(include, graph)
    return _in_form(expression, iter(graph.outputs))


def _flat(expression: Any) -> list[Variable]:
    values: Sequence[Any] = [expression]
    if isinstance(expression, Mapping):
        values = list(expression.values())
    elif isinstance(expression, (list, tuple)):
        values = expression
    if not all(isinstance(value, Variable) for value in values):
        raise GraphTypeError(explain_error("only a variable, or a list, tuple or dict of variables, can be rewritten",
                                           f"{type(expression).__name__} {expression!r:.80}"))
    return list(values)


def _in_form(expression: Any, outputs: Any) -> Any:
    if isinstance(expression, Mapping):
        return dict(zip(expression, outputs, strict=True))
    if isinstance(expression, (list, tuple)):
        form = type(expression)
        make = getattr(form, "_make", form)
        return make(list(outputs))
    return next(outputs)


def _refuse_bound(include: str | Iterable[str], graph: FunctionGraph) -> None:
    """Names that mean rewrites of known sizes only cannot be followed here."""
    symbolic, bound = ({name for phase in phases for name in (phase.name, *phase.names)} for phases in (SYMBOLIC, BOUND))
    wanted = {include} if isinstance(include, str) else set(include)
    late = sorted((wanted & bound) - symbolic)
    if late:
        unknown = next((leaf for leaf in graph.leaves if not leaf.type.is_static), None)
        found = "sizes that depend on values" if unknown is None else f"{unknown.label!r} is {unknown.type}"
        raise ArgumentError(explain_error(f"these rewrites run when all sizes are known: {', '.join(late)}", found,
                                          "give the leaves their sizes: T.tensor4(name, shape=(8, 3, 32, 32))"))
