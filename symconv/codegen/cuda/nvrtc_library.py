"""Where NVRTC is, and its few functions by ctypes: it compiles CUDA C++ to machine code without a GPU and without a driver.

Looked for in the wheels `nvidia-cuda-nvrtc` and `nvidia-cuda-nvrtc-cu12`, then under CUDA_PATH, CUDA_HOME and /usr/local/cuda,
then by the loader's own search.  CuPy uses the same library.
"""
from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ...errors import BackendError, explain_error

_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
_IN_WHEELS = ("cu13/lib", "cuda_nvrtc/lib")
_COMPILATION = 6  # NVRTC_ERROR_COMPILATION: the program's log says what


@dataclass(frozen=True, slots=True, eq=False)
class Nvrtc:
    """The library, where it lies and its version (13, 5)."""

    library: ctypes.CDLL
    path: str
    version: tuple[int, int]

    def compile(self, source: str, headers: Mapping[str, str], options: Sequence[str]) -> tuple[bytes, str]:
        """The cubin of a source, and what the compiler said; BackendError with its words if it does not take the source."""
        program = ctypes.c_void_p()
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        self._check(self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", len(headers), texts,
                                                    names))
        try:
            flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            result = self.library.nvrtcCompileProgram(program, len(options), flags)
            log = self._text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode(errors="replace")
            if result == _COMPILATION:
                raise BackendError(_said(log, self, options))
            self._check(result)
            return self._text(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"), log
        finally:
            self._check(self.library.nvrtcDestroyProgram(ctypes.byref(program)))

    def architectures(self) -> tuple[int, ...]:
        """Those it compiles for."""
        count = ctypes.c_int()
        self._check(self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        found = (ctypes.c_int * count.value)()
        self._check(self.library.nvrtcGetSupportedArchs(found))
        return tuple(found)

    def _text(self, program: ctypes.c_void_p, size_name: str, name: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self.library, size_name)(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self._check(getattr(self.library, name)(program, text))
        return text.raw

    def _check(self, result: int) -> None:
        if result:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            said = self.library.nvrtcGetErrorString(result).decode()
            raise BackendError(explain_error("NVRTC failed", f"{said} ({self.path}, version {self.version[0]}.{self.version[1]})",
                                             "reinstall it: python -m pip install --force-reinstall nvidia-cuda-nvrtc"))


def _said(log: str, nvrtc: Nvrtc, options: Sequence[str]) -> str:
    lines = [line.strip() for line in log.splitlines() if "error" in line] or log.strip("\0\n").splitlines()
    return explain_error(f"NVRTC {nvrtc.version[0]}.{nvrtc.version[1]} does not take a generated kernel ({' '.join(options)})",
                         "\n    ".join(lines[:6]), "report this with the source")


def find_nvrtc() -> Nvrtc | None:
    """The NVRTC of this machine, or None (see `missing_nvrtc_error`)."""
    return _search(os.environ.get("CUDA_PATH", ""), os.environ.get("CUDA_HOME", ""))[0]


def missing_nvrtc_error() -> BackendError:
    """The error that says where NVRTC was looked for and how to get it."""
    tried = _search(os.environ.get("CUDA_PATH", ""), os.environ.get("CUDA_HOME", ""))[1]
    return BackendError(explain_error("there is no NVRTC, which compiles CUDA kernels", "; ".join(tried),
                                      "python -m pip install nvidia-cuda-nvrtc"))


@lru_cache(maxsize=8)
def _search(*roots: str) -> tuple[Nvrtc | None, tuple[str, ...]]:
    tried = []
    for place in _places(roots):
        try:
            library = ctypes.CDLL(place)
        except OSError as error:
            tried.append(str(error))
            continue
        major, minor = ctypes.c_int(), ctypes.c_int()
        library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return Nvrtc(library, place, (major.value, minor.value)), tuple(tried)
    return None, tuple(tried)


def _places(roots: Sequence[str]) -> Iterator[str]:
    """Files that are there, best first; at the end bare names, for which the loader searches."""
    spec = importlib.util.find_spec("nvidia")
    wheels = [Path(folder) / part for folder in (spec.submodule_search_locations or () if spec else ()) for part in _IN_WHEELS]
    systems = [Path(root) / "lib64" for root in (*roots, "/usr/local/cuda") if root]
    for folder in (*wheels, *systems):
        yield from (str(folder / name) for name in _NAMES if (folder / name).exists())
    yield from _NAMES
