"""`python -m symconv doctor`: what this machine has for symconv, what is missing, and the command that brings it."""
from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..codegen.cache import current_cache
from ..codegen.cache_contents import cache_summary
from ..codegen.compiler import find_compiler
from ..codegen.cuda.kernel import CudaKernel, Scalar
from ..codegen.threads import default_threads
from ..config import config
from ..errors import SymconvError

_TRIVIAL = """#include "symconv.cuh"
extern "C" __global__ void twice(sc_global<float> out, sc_global<const float> x, int32_t n) {
    if (threadIdx.x < n) out[threadIdx.x] = 2 * x[threadIdx.x];
}
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: `is_good` None says that it is merely not there, and nothing depends on it."""

    part: str
    name: str
    found: str
    is_good: bool | None = True
    do: str = ""

    def __str__(self) -> str:
        mark = {True: "ok", False: "MISSING", None: "absent"}[self.is_good]
        return f"  {self.name:22} {mark:8} {self.found}" + (f"\n{'':34}to have it: {self.do}" if self.do else "")


def examine() -> list[Finding]:
    """Look at everything; what fails while it is looked at is a finding too."""
    findings: list[Finding] = []
    for look in (_python, _compiler, _cache, _extras, _cupy, _nvrtc, _cudnn, _emulator):
        try:
            findings += look()
        except (SymconvError, OSError, ImportError) as error:
            findings.append(Finding(look.__name__.strip("_"), look.__name__.strip("_"), f"{type(error).__name__}: {error}", False))
    return findings


def report(findings: list[Finding]) -> str:
    """The findings as text, by part."""
    lines: list[str] = []
    for part in dict.fromkeys(finding.part for finding in findings):
        lines += [part, *(str(finding) for finding in findings if finding.part == part)]
    missing = [each.name for each in findings if each.is_good is False]
    lines.append(f"missing: {', '.join(missing)}" if missing else "all that compiling for the CPU needs is here")
    return "\n".join(lines)


def _python() -> Iterator[Finding]:
    yield Finding("python", "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for package in ("symconv", "numpy", "networkx", "jinja2", "platformdirs"):
        yield _package("python", package, needed=True)


def _package(part: str, package: str, needed: bool, do: str = "") -> Finding:
    try:
        return Finding(part, package, importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        if package == "symconv":
            return Finding(part, package, "run from its source folder, not installed", None)
        return Finding(part, package, "not installed", False if needed else None, do or f"python -m pip install {package}")


def _compiler() -> Iterator[Finding]:
    compiler = find_compiler()
    if compiler is None:
        yield Finding("CPU", "C compiler", "none found: functions run their slow NumPy references", False,
                      "apt install gcc, or python -m pip install ziglang")
        return
    yield Finding("CPU", "C compiler", f"{' '.join(compiler.command)}: {compiler.version}")
    yield Finding("CPU", "threads", f"{config.threads or default_threads()} of {os.cpu_count()} processors"
                  if compiler.has_openmp else "1: the compiler has no OpenMP", True if compiler.has_openmp else None)
    yield _works("CPU", "a compiled function", _run_on_cpu)


def _run_on_cpu() -> None:
    import symconv as sc

    x = sc.tensor.vector("x")
    found = sc.compile([x], x * 2 + 1)(np.arange(3, dtype=config.floatX))
    if found.tolist() != [1, 3, 5]:
        raise SymconvError(f"2 x + 1 of 0, 1, 2 is {found.tolist()}")


def _works(part: str, name: str, work: Callable[[], None]) -> Finding:
    try:
        work()
    except (SymconvError, OSError) as error:
        return Finding(part, name, str(error), False)
    return Finding(part, name, "runs and gives the right answer")


def _cache() -> Iterator[Finding]:
    cache = current_cache()
    text = f"{cache.folder}: {cache_summary(cache)}"
    good = cache.writable == cache.folder
    yield Finding("CPU", "kernel cache", text if good else f"{text}; it cannot be written to", good,
                  "" if good else "set SYMCONV_CACHE_DIR to a folder of your own")


def _extras() -> Iterator[Finding]:
    for package, do in (("graphviz", "python -m pip install 'symconv[draw]', and Graphviz itself: apt install graphviz"),
                        ("ml_dtypes", "python -m pip install 'symconv[bfloat16]'")):
        yield _package("extras", package, False, do)


def _cupy() -> Iterator[Finding]:
    if importlib.util.find_spec("cupy") is None:
        yield Finding("CUDA", "CuPy", "not installed", None,
                      "python -m pip install 'symconv[cuda13]' (with a driver of CUDA 12: symconv[cuda12])")
        return
    from .devices.cupy_base import gpu_count, import_cupy

    cupy = import_cupy()
    yield Finding("CUDA", "CuPy", f"{cupy.__version__}, {cupy.__file__}")
    version = cupy.cuda.runtime.runtimeGetVersion()
    yield Finding("CUDA", "CUDA runtime", f"{version // 1000}.{version % 1000 // 10}, CuPy's own")
    try:
        count = gpu_count(cupy)
    except SymconvError as error:
        yield Finding("CUDA", "GPUs", str(error).splitlines()[1].strip().split(";")[0], None)
        return
    for number in range(count):
        from .devices.find import find_device

        gpu = find_device(f"cuda:{number}").properties
        yield Finding("CUDA", f"cuda:{number}", f"{gpu.name}, compute capability {gpu.arch / 10}, "
                                                f"{gpu.memory_bytes / 2**30:.0f} GiB, {gpu.multiprocessors} multiprocessors")


def _nvrtc() -> Iterator[Finding]:
    from ..codegen.cuda.nvrtc_library import find_nvrtc, missing_nvrtc_error

    nvrtc = find_nvrtc()
    if nvrtc is None:
        yield Finding("CUDA", "NVRTC", str(missing_nvrtc_error()).splitlines()[1].strip().removeprefix("found: "), None,
                      "python -m pip install 'symconv[nvrtc]'")
        return
    yield Finding("CUDA", "NVRTC", f"{nvrtc.version[0]}.{nvrtc.version[1]} in {nvrtc.path}")


def _cudnn() -> Iterator[Finding]:
    from ..codegen.cudnn.library import looked_for

    for each in looked_for():
        if each.name != "Python package cupy":  # which has a line of its own
            do = "" if each.is_there or "driver" in each.name else "python -m pip install 'symconv[cuda13]'"
            yield Finding("CUDA", each.name, each.found, True if each.is_there else None, do)
    yield Finding("CUDA", "cuDNN without a GPU", *_deviceless())


def _deviceless() -> tuple[str, bool | None]:
    """Whether plans can be made for GPUs that are not here."""
    from ..codegen.cudnn.library import why_not_deviceless

    reason = why_not_deviceless()
    return ("plans can be made for GPUs that are not here", True) if reason is None else (f"no: {reason}", None)


def _emulator() -> Iterator[Finding]:
    yield _works("CUDA", "the emulator", _run_on_emulator)


def _run_on_emulator() -> None:
    from ..codegen.cuda.emulator import launch_on_arrays

    out = np.zeros(3, np.float32)
    kernel = CudaKernel("twice", _TRIVIAL, (1, 1, 1), (32, 1, 1), (0, 1), (Scalar("int32", 3),))
    launch_on_arrays(kernel, [out, np.arange(3, dtype=np.float32)], written=(0,))
    if out.tolist() != [0, 2, 4]:
        raise SymconvError(f"2 x of 0, 1, 2 is {out.tolist()}")


def main() -> int:
    """Print the report; 1 where something that compiling for the CPU needs is missing."""
    findings = examine()
    print(report(findings), file=sys.stdout)
    return int(any(each.is_good is False for each in findings))
