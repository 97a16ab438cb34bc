"""A function compiled once more with other state (`Function.copy`)."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import GraphTypeError, explain_error
from ..graph import Variable
from ..graph.substitute import clone
from .function import Function, Recipe
from .shared import SharedVariable


def copied(function: Function, swap: Mapping[SharedVariable, SharedVariable], delete_updates: bool, name: str | None,
           profile: bool | None) -> Function:
    """`Function.copy`."""
    from .compile import compile_recipe

    options = dict(function.recipe.options)
    if delete_updates:
        options["on_unused_input"] = "ignore"  # the calls keep their form, whatever the updates alone have used
    if name is not None:
        options["name"] = name
    if profile is not None:
        options["profile"] = profile
    return compile_recipe(replace(_swapped(function.recipe, _checked(function, swap), delete_updates), options=options))


def _swapped(recipe: Recipe, swap: dict[Variable, Variable], delete_updates: bool) -> Recipe:
    """Givens put the new state in place, so that outputs keep the form that the user gave them."""
    pairs = () if delete_updates else recipe.updates
    updates = tuple((swap.get(target, target), new) for target, new in pairs)
    givens = {**swap, **{old: clone(new, swap) for old, new in recipe.givens.items()}}
    return replace(recipe, updates=updates, givens=givens)  # type: ignore[arg-type]


def _checked(function: Function, swap: Mapping[Any, Any]) -> dict[Variable, Variable]:
    for old, new in swap.items():
        if old not in function.shared_variables:
            names = ", ".join(each.label for each in function.shared_variables) or "none"
            raise GraphTypeError(explain_error(f"{function.name} has no such state to swap", f"{old!r}; it uses {names}"))
        if not isinstance(new, SharedVariable) or not old.type.accepts(new.type):
            raise GraphTypeError(explain_error(f"what is swapped for {old.label!r} is a shared variable of its type",
                                               f"{new!r}: {getattr(new, 'type', type(new).__name__)} for {old.type}"))
    return dict(swap)
