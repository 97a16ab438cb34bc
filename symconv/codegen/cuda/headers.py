"""The files of `templates/cuda/` that are not templates: the primitives, and the C and C++ of the emulator."""
from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

DEVICE_HEADER = "symconv.cuh"
HOST_HEADERS = (DEVICE_HEADER, "emulator.h", "emulator_pointers.h", "emulator_matrices.h", "emulator_interface.h")
EMULATOR_PARTS = ("emulator_fibers.c", "emulator_memory.c", "emulator_schedule.c", "emulator_launch.c")


@lru_cache(maxsize=16)
def header(name: str) -> str:
    """The text of one file."""
    return (files("symconv.codegen") / "templates" / "cuda" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def emulator_source() -> str:
    """The emulator as one C file."""
    return "\n".join([header("emulator_interface.h"), *(header(name) for name in EMULATOR_PARTS)])
