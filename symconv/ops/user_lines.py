"""Errors found before a node is made tell the user's line too (`make_apply` tells it for those found in a node's types)."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ..errors import UserError
from ..graph import current_source

P = ParamSpec("P")
R = TypeVar("R")


def tells_user_line(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, whose UserErrors end in the line of the user's code that called it."""

    @functools.wraps(function)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except UserError as error:
            places = current_source()
            if not places or "\n  where: " in str(error):
                raise
            raise type(error)(f"{error}\n  where: {places[0]}") from None

    return run
