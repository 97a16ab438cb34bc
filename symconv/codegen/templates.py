"""The only door to Jinja2: renders the C sources of `codegen/templates/`.

Every number and string is decided before a template is rendered; a name that the template asks for and the context lacks is
an error.  What Jinja2 makes of a template is kept in the kernel cache: to parse them all takes a new process a second.
"""
from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from typing import Any

from .cache import current_cache
from .helpers import with_helpers
from .rendered import kept_by_context

_ROUNDING = frozenset(("elementwise.c.j2", "reduction.c.j2"))  # templates that print what users wrote


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    class CompiledTemplates(jinja2.BytecodeCache):
        """Templates as Python bytecode; `Bucket` itself checks that it was made from the same text."""

        def load_bytecode(self, bucket: Any) -> None:
            found = current_cache().find(_entry(bucket, jinja2.__version__), ".template")
            if found is not None:
                bucket.bytecode_from_string(found.read_bytes())

        def dump_bytecode(self, bucket: Any) -> None:
            current_cache().store_made(_entry(bucket, jinja2.__version__), bucket.bytecode_to_string(), ".template")

    return jinja2.Environment(loader=jinja2.PackageLoader("symconv.codegen", "templates"), undefined=jinja2.StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
                              auto_reload=False, bytecode_cache=CompiledTemplates())


def _entry(bucket: Any, jinja_version: str) -> str:
    """The name in the cache of a template of this text, compiled by this Jinja2 for this Python."""
    return hashlib.sha256("\n".join((bucket.key, bucket.checksum, jinja_version, sys.version)).encode()).hexdigest()


def render(template: str, /, **context: Any) -> str:
    """The text of a template (`elementwise.c.j2`) in a context."""
    return str(_environment().get_template(template).render(**context))


@kept_by_context
def render_kernel(template: str, /, **context: Any) -> str:
    """A whole C file: the includes, those helpers of `prelude.h.j2` that the rendered template uses, and the template."""
    return with_helpers(render(template, **context), rounds_products=template in _ROUNDING)
