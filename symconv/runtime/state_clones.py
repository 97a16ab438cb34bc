"""Several shared variables with one value (`SharedVariable.clone`) in one function: one of them stands for all."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import ArgumentError, explain_error
from ..graph import Variable, leaves
from ..graph.substitute import clone
from .container import Container
from .shared import SharedVariable

Pairs = Sequence[tuple[SharedVariable, Variable]]


def one_for_each_value(outputs: Iterable[Variable], updates: Pairs, givens: dict[Variable, Variable]) -> dict[Variable, Variable]:
    """The givens, with the variable that is updated (else the first) in place of all others that have the same value.

    Raises:
        ArgumentError: two variables with one value are both updated.
    """
    chosen: dict[Container, SharedVariable] = {}
    for target, new in updates:
        before = chosen.setdefault(target.container, target)
        if before is not target:
            raise ArgumentError(explain_error(f"the value of the shared variable {target.label!r} is updated twice",
                                              f"it is that of {before.label!r} too, a clone", "leave one update out", new.source))
    used = leaves([*outputs, *(new for _, new in updates), *givens.values()])
    others = {leaf: chosen.setdefault(leaf.container, leaf) for leaf in used if isinstance(leaf, SharedVariable)}
    replaced: dict[Variable, Variable] = {leaf: one for leaf, one in others.items() if leaf is not one}
    if not replaced:
        return givens
    return {**replaced, **{old: clone(new, replaced) for old, new in givens.items()}}
