"""How expressions that carry state make their shared variables, without knowing the runtime that keeps them.

The runtime registers its constructor when it is imported; `make_shared` calls it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InternalError
from ..graph import Variable

_CONSTRUCTORS: list[Callable[..., Any]] = []


def register_shared_constructor(constructor: Callable[..., Any]) -> None:
    """Say what makes a shared variable: `constructor(value, name=…, shape=…)`; the last one registered counts."""
    _CONSTRUCTORS[:] = [constructor]


def make_shared(value: Any, name: str | None = None, shape: Sequence[int | None] | None = None) -> Any:
    """A shared variable with this initial value, of its shape unless `shape` leaves sizes open.

    It has `get_value`, `set_value` and `default_update`.
    """
    if not _CONSTRUCTORS:
        raise InternalError("no shared variable can be made: symconv.runtime.shared has not been imported")
    variable = _CONSTRUCTORS[0](value, name=name, shape=np.shape(value) if shape is None else shape)
    if not isinstance(variable, Variable):
        raise InternalError(f"the constructor of shared variables gave {variable!r}")
    return variable
