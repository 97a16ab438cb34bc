"""Rendered kernels, kept for the process: the text depends on nothing but the template and its context.

A new batch size asks for the texts of the same kernels again, and to render them takes longer than all the rest of planning.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, Protocol

_MOST_TEXTS = 4096


class Render(Protocol):
    """Renders a template in a context."""

    def __call__(self, template: str, /, **context: Any) -> str:
        """The text."""


class _NotPlainError(Exception):
    """A context holds something that cannot be compared by its value."""


def kept_by_context(render: Callable[..., str]) -> Render:
    """The same function, which renders each template once for each context made of plain values."""
    texts: dict[Hashable, str] = {}

    @wraps(render)
    def rendered(template: str, /, **context: Any) -> str:
        try:
            key = template, frozen(context)
        except _NotPlainError:
            return render(template, **context)
        text = texts.get(key)
        if text is None:
            if len(texts) >= _MOST_TEXTS:
                texts.clear()
            text = texts[key] = render(template, **context)
        return text

    return rendered


def frozen(value: Any) -> Hashable:
    """A plain value as a key: equal keys print the same (so 1, 1.0 and True differ, and 0.0 and -0.0).

    >>> frozen({"sizes": [1, 2]}) == frozen({"sizes": [1, 2]}), frozen([1]) == frozen([1.0]), frozen(0.0) == frozen(-0.0)
    (True, False, False)
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind in (int, float, bool):
        return kind, repr(value)
    if kind in (list, tuple, range):
        return kind, tuple([frozen(each) for each in value])
    if kind is dict:
        return dict, tuple([(frozen(key), frozen(each)) for key, each in value.items()])
    if is_dataclass(value):
        return kind, tuple([frozen(getattr(value, each.name)) for each in fields(value)])
    raise _NotPlainError
