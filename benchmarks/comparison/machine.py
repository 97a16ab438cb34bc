"""What the machine is and what it can do: facts, and the ceilings from the generated kernels that estimates use too."""
from __future__ import annotations

import datetime
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

import symconv as sc
from symconv.codegen import ceilings
from symconv.codegen.compiler import find_compiler


def fma_peak(threads: int, seconds: float = 0.3) -> float:
    """FLOP/s of the best of several runs."""
    return ceilings.fma_peak(threads, _vector_bytes(), seconds=seconds)


def copy_bandwidth(threads: int, floats: int, seconds: float = 0.3) -> float:
    """Bytes read and written per second by a copy of so many floats, the best of several runs."""
    return ceilings.copy_bandwidth(threads, 4 * floats, _vector_bytes(), seconds)


def _vector_bytes() -> int:
    from symconv.runtime.targets import make_target

    return make_target("cpu").vector_bytes


def facts(threads: int, versions: dict[str, str]) -> dict[str, str]:
    """What a reader must know to judge the numbers."""
    compiler = find_compiler()
    known = {"symconv": sc.__version__, "numpy": version("numpy"), **versions}
    return {"date": datetime.date.today().isoformat(), "processor": _processor(),
            "system": f"{platform.system()} {platform.machine()}", "cores": str(os.cpu_count()), "threads used": str(threads),
            "load average at the start": load(),
            "vector width": f"{8 * _vector_bytes()} bits", "compiler": json.loads(compiler.identity)[1] if compiler else "none",
            "versions": ", ".join(f"{name} {number}" for name, number in known.items()) + f", Python {platform.python_version()}"}


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def load() -> str:
    """The load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
