"""Builds what the emulator runs: the emulator itself (C, once) and the host form of each kernel (C++), checked or fast.

The compiler is the one that builds CPU kernels, told that the text is C++; both kinds of library come from the kernel cache.
"""
from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from ...config import config
from ...errors import BackendError, explain_error
from ..cache import current_cache
from ..compiler import Compiler, find_compiler, missing_compiler_error, run_compiler
from ..toolchain import KERNEL_SECONDS, build_sources
from .headers import HOST_HEADERS, emulator_source, header

# Products are rounded before they are added to something unless the kernel says sc_fma: NVRTC is told the same.
_FLAGS = ("-x", "c++", "-std=gnu++17", "-fPIC", "-shared", "-fwrapv", "-fno-strict-aliasing", "-fno-math-errno",
          "-fno-trapping-math", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti", "-fstack-clash-protection",
          "-fvisibility=hidden", "-w")
_CHECKED = ("-O1", "-DSC_CHECKED", "-fsanitize=bounds", "-nodefaultlibs")
_FAST = ("-O2",)
_FUNCTION = re.compile(r"__global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")
_loaded: dict[str, ctypes.CDLL] = {}
_lock = threading.Lock()


def emulator() -> ctypes.CDLL:
    """The emulator's own library."""
    source = emulator_source()
    return build_sources([source])[source]


def kernel_names(source: str) -> list[str]:
    """The kernels that a source defines.

    >>> kernel_names('extern "C" __global__ void __launch_bounds__(128) sc_copy(sc_global<float> out) {')
    ['sc_copy']
    """
    return _FUNCTION.findall(source)


def host_kernel(source: str, name: str, checked: bool) -> int:
    """The address of the function that runs one CUDA thread of the kernel `name` on the host."""
    library = _library(source, checked)
    address = ctypes.cast(library[f"sc_entry_{name}"], ctypes.c_void_p).value
    assert address is not None
    return address


def _library(source: str, checked: bool) -> ctypes.CDLL:
    compiler = find_compiler()
    if compiler is None:
        raise missing_compiler_error()
    flags = _flags(compiler, checked)
    name = _entry_name(source, flags, compiler)
    with _lock:
        known = _loaded.get(name)
    if known is None:
        path = current_cache().find(name) or _compiled(source, name, flags, compiler)
        with _lock:
            known = _loaded.setdefault(name, ctypes.CDLL(str(path)))
    return known


def _flags(compiler: Compiler, checked: bool) -> tuple[str, ...]:
    native = tuple(flag for flag in compiler.flags if flag.endswith("=native"))
    return (*_FLAGS, *native, *(_CHECKED if checked else _FAST))


def _entry_name(source: str, flags: Sequence[str], compiler: Compiler) -> str:
    parts = (compiler.identity, *flags, *map(header, HOST_HEADERS), source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _compiled(source: str, name: str, flags: Sequence[str], compiler: Compiler) -> Path:
    cache = current_cache()
    entries = "".join(f"SC_ENTRY({kernel})\n" for kernel in kernel_names(source))
    with cache.scratch() as folder:
        for file in HOST_HEADERS:
            (folder / file).write_text(header(file), encoding="utf-8")
        text, result = folder / "kernel.cu", folder / "kernel.so"
        text.write_text(f"{source}\n{entries}", encoding="utf-8")
        command = [*compiler.command, *flags, "-I", str(folder), "-o", str(result), str(text), "-lm", "-lc", "-lgcc"]
        status, said = run_compiler(command, folder, KERNEL_SECONDS)
        if status != 0:
            raise _compile_error(source, name, compiler, said)
        if config.keep_sources:
            cache.keep(name[:2], f"{name}.cu", source)
        return cache.store(name, result)


def _compile_error(source: str, name: str, compiler: Compiler, output: str) -> BackendError:
    place = current_cache().keep("failed", f"{name}.cu", source)
    if "cc1plus" in output or "cannot execute" in output:
        return BackendError(explain_error("the emulator needs a C++ compiler", f"{' '.join(compiler.command)} is for C only",
                                          "install one (apt install g++), or set SYMCONV_COMPILER to one"))
    lines = [line.strip() for line in output.splitlines() if "error" in line] or output.splitlines()
    found = "\n    ".join(lines[:6] or ["the compiler said nothing"])
    return BackendError(explain_error(f"{' '.join(compiler.command)} ({compiler.version}) does not take a generated CUDA kernel",
                                      f"{found}\n  source: {place}", "report this with the source"))
