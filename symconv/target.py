"""What a device can do, as far as rewrites and code generation ask; `runtime/compile.py` fills it in."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _never(*_: Any) -> str | None:
    return "this device fuses nothing"


@dataclass(frozen=True, slots=True)
class Target:
    """A device as the compiler sees it.

    `has_compiler` is False where only the NumPy references can run.  The two `refuse_…` functions answer None where the
    device can run the fused form, else the reason why not: `refuse_epilogue(conv, input_types, result_type, epilogue)` for
    a convolution without its epilogue, and `refuse_elementwise(program)`.
    """

    device: str = "cpu"
    has_compiler: bool = True
    vector_bytes: int = 32
    threads: int = 1
    refuse_epilogue: Callable[..., str | None] = field(default=_never, compare=False)
    refuse_elementwise: Callable[..., str | None] = field(default=_never, compare=False)
