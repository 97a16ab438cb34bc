"""Rendered kernels are kept by what the template is given."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from symconv.codegen.rendered import kept_by_context


@dataclass(frozen=True)
class Loop:
    """A value as kernels hand it to templates."""

    name: str
    size: int


def counting() -> tuple[Any, list[str]]:
    """A kept function, and the texts it has made so far."""
    made: list[str] = []

    def render(template: str, /, **context: Any) -> str:
        made.append(f"{template} {context}")
        return made[-1]

    return kept_by_context(render), made


def test_equal_contexts_are_rendered_once() -> None:
    render, made = counting()
    first = render("a.c.j2", loops=[Loop("i", 4)], lines=("x", "y"), tile=None, table={"a": 1})
    assert render("a.c.j2", loops=[Loop("i", 4)], lines=("x", "y"), tile=None, table={"a": 1}) is first
    assert len(made) == 1


def test_what_prints_differently_is_rendered_again() -> None:
    render, made = counting()
    contexts: list[dict[str, Any]] = [{"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}, {"n": 0.0}, {"n": -0.0}, {"n": [1]},
                                      {"n": (1,)}, {"m": 1}, {"n": Loop("i", 1)}, {"n": Loop("i", 2)}, {"n": {"a": 1}}, {"n": None}]
    for context in contexts:
        assert render("a.c.j2", **context) == f"a.c.j2 {context}"
    render("b.c.j2", n=1)
    assert len(made) == len(contexts) + 1


def test_other_values_are_never_kept() -> None:
    """An object may say something else tomorrow, and another may lie at its address."""
    render, made = counting()
    thing = object()
    render("a.c.j2", thing=thing)
    render("a.c.j2", thing=thing)
    assert len(made) == 2
