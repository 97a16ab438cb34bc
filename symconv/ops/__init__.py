"""The operations, and what Python's operators and the methods of a variable mean."""
from __future__ import annotations

from ..graph.operators import register_meanings
from . import (
    axis_moves,
    constants,
    creation,
    cumulative,
    diagonals,
    elementwise,
    indexing,
    joining,
    linalg,
    reductions,
    shape,
    sorting,
    statistics,
)

register_meanings({name: getattr(elementwise, name) for name in (
    "add", "sub", "mul", "true_div", "floor_div", "mod", "pow", "and_", "or_", "xor", "invert", "neg", "abs",
    "lt", "le", "gt", "ge", "cast", "clip", "round")})
register_meanings({name: getattr(reductions, name) for name in (
    "sum", "prod", "max", "min", "any", "all", "argmax", "argmin")})
register_meanings({name: getattr(statistics, name) for name in ("mean", "var", "std", "norm")})
register_meanings({"as_variable": constants.as_variable, "matmul": linalg.matmul, "dot": linalg.dot})
register_meanings({name: getattr(shape, name) for name in ("shape", "reshape", "flatten", "dimshuffle")})
register_meanings({name: getattr(axis_moves, name) for name in ("transpose", "swapaxes", "squeeze", "size")})
register_meanings({name: getattr(indexing, name) for name in ("getitem", "length", "iterate", "take")})
register_meanings({"repeat": joining.repeat})
register_meanings({"zeros_like": creation.zeros_like})
register_meanings({"sort": sorting.sort, "argsort": sorting.argsort, "cumsum": cumulative.cumsum, "cumprod": cumulative.cumprod,
                   "diagonal": diagonals.diagonal, "trace": diagonals.trace})
