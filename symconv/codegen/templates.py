"""The only door to Jinja2: renders the C sources of `codegen/templates/`.

Every number and string is decided before a template is rendered; a name that the template asks for and the context lacks is
an error.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Any

from .helpers import with_helpers


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(loader=jinja2.PackageLoader("symconv.codegen", "templates"), undefined=jinja2.StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
                              auto_reload=False)


def render(template: str, /, **context: Any) -> str:
    """The text of a template (`elementwise.c.j2`) in a context."""
    return str(_environment().get_template(template).render(**context))


def render_kernel(template: str, /, **context: Any) -> str:
    """A whole C file: the includes, those helpers of `prelude.h.j2` that the rendered template uses, and the template."""
    return with_helpers(render(template, **context))
