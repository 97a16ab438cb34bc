"""The operations, and what Python's operators and the methods of a variable mean."""
from __future__ import annotations

from ..graph.operators import register_meanings
from . import elementwise

register_meanings({name: getattr(elementwise, name) for name in (
    "add", "sub", "mul", "true_div", "floor_div", "mod", "pow", "and_", "or_", "xor", "invert", "neg", "abs",
    "lt", "le", "gt", "ge", "cast", "clip")})
