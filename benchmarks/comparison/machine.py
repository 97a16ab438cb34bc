"""What the machine is and what it can do: facts, the FMA peak and the copy bandwidth, measured by generated kernels."""
from __future__ import annotations

import ctypes
import datetime
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import symconv as sc
from symconv.codegen.compiler import find_compiler
from symconv.codegen.kernel import Kernel
from symconv.codegen.threads import pool_header
from symconv.codegen.toolchain import build

Array = np.ndarray[Any, Any]
ACCUMULATORS = 12
_FMA = """#include <stdint.h>
/* The peak of multiply-and-add: {accumulators} independent accumulators of {lanes} floats, on each of sizes[1] threads. */
typedef float vector __attribute__((vector_size({bytes})));
int measure_fma(void *const *buffers, const int64_t *sizes) {{
    float *out = buffers[0];
    #pragma omp parallel for schedule(static) num_threads((int)sizes[1])
    for (int64_t task = 0; task < sizes[1]; task++) {{
        vector a[{accumulators}], x, y;
        for (int lane = 0; lane < {lanes}; lane++) {{ x[lane] = 0.999f + out[0]; y[lane] = 0.001f + out[1]; }}
        for (int i = 0; i < {accumulators}; i++) a[i] = x * (float)i;
        for (int64_t n = 0; n < sizes[0]; n++) {{
            #pragma GCC unroll {accumulators}
            for (int i = 0; i < {accumulators}; i++) a[i] = a[i] * x + y;
        }}
        float sum = 0;
        for (int i = 0; i < {accumulators}; i++) for (int lane = 0; lane < {lanes}; lane++) sum += a[i][lane];
        out[2 + task] = sum;
    }}
    return 0;
}}
"""
_COPY = """#include <stdint.h>
#include <string.h>
/* Copying of sizes[0] floats in pieces, on sizes[1] threads. */
int measure_copy(void *const *buffers, const int64_t *sizes) {
    float *out = buffers[0];
    const float *in = buffers[1];
    const int64_t piece = 32768;
    #pragma omp parallel for schedule(dynamic) num_threads((int)sizes[1])
    for (int64_t i = 0; i < sizes[0] / piece; i++)
        for (int64_t j = 0; j < piece; j++) out[i * piece + j] = in[i * piece + j];
    return 0;
}
"""


def fma_peak(threads: int, seconds: float = 0.3) -> float:
    """FLOP/s of the best of several runs."""
    vector_bytes = _vector_bytes()
    lanes = vector_bytes // 4
    source = _FMA.format(accumulators=ACCUMULATORS, lanes=lanes, bytes=vector_bytes)
    out = np.zeros(2 + threads, np.float32)
    repeats = 2_000_000
    best = _best("measure_fma", source, [out], [repeats, threads], seconds)
    return 2 * ACCUMULATORS * lanes * repeats * threads / best


def copy_bandwidth(threads: int, floats: int, seconds: float = 0.3) -> float:
    """Bytes read and written per second by a copy of so many floats, the best of several runs."""
    source, result = np.ones(floats, np.float32), np.zeros(floats, np.float32)
    return 8 * floats / _best("measure_copy", _COPY, [result, source], [floats, threads], seconds)


def _vector_bytes() -> int:
    from symconv.runtime.targets import make_target

    return make_target("cpu").vector_bytes


def _best(name: str, source: str, arrays: list[Array], sizes: list[int], seconds: float) -> float:
    """The shortest time of one kernel."""
    (built,) = build([Kernel(name, f"{pool_header()}\n{source}")])
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)
    buffers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    numbers = (ctypes.c_int64 * len(sizes))(*sizes)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        function(ctypes.addressof(buffers), ctypes.addressof(numbers))
        times.append(time.perf_counter() - start)
    return min(times)


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
