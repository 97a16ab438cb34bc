"""The libraries on this machine: what is there, and cuDNN without a GPU. The one file that imports `cudnn`."""
from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from ...errors import BackendError, explain_error
from ..cache import current_cache
from ..compiler import find_compiler
from .frontend import Frontend

SUBLIBRARIES = ("graph", "ops", "cnn", "heuristic", "engines_precompiled", "engines_runtime_compiled")
_ENTRY = re.compile(rb"\0(cu[A-Z][A-Za-z0-9]*(?:_v\d)?)(?=\0)")
NO_DRIVER = "not found by the system's loader (LD_LIBRARY_PATH, /etc/ld.so.cache)"
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@dataclass(frozen=True, slots=True)
class Looked:
    """Something that was looked for: what was found (with its version and where), or where it was looked for."""

    name: str
    found: str
    is_there: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.found}"


def looked_for() -> tuple[Looked, ...]:
    """The driver, the packages, cuDNN and the sub-libraries of it that convolutions need."""
    is_usable, words = _driver_state()
    looked = [Looked("driver libcuda.so.1", words, is_usable)]
    for package, distributions in (("cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy")), ("cudnn", ("nvidia-cudnn-frontend",))):
        versions = [f"{name} {importlib.metadata.version(name)}" for name in distributions if _is_installed(name)]
        looked.append(Looked(f"Python package {package}", ", ".join(versions) or "not installed", bool(versions)))
    folder = cudnn_folder()
    if folder is None:
        places = ", ".join(map(str, _cudnn_folders())) or "the installed packages"
        return (*looked, Looked("cuDNN", f"no libcudnn.so.9 in {places}", False))
    looked.append(Looked("cuDNN", f"{_version_text(_cudnn_version(folder))}, {folder / 'libcudnn.so.9'}", True))
    for name in SUBLIBRARIES:
        path = folder / f"libcudnn_{name}.so.9"
        looked.append(Looked(path.name, "found" if path.exists() else f"missing in {folder}", path.exists()))
    return tuple(looked)


def findings() -> tuple[str, ...]:
    """The same as text, one line each."""
    return tuple(map(str, looked_for()))


def available() -> str | None:
    """None where cuDNN can run on a GPU of this machine, else what is missing."""
    missing = [str(each) for each in looked_for() if not each.is_there]
    return "; ".join(missing) or None


def cudnn_folder() -> Path | None:
    """The folder of cuDNN's libraries, None without one: first the installed wheels', then those of the system."""
    return next((folder for folder in _cudnn_folders() if (folder / "libcudnn.so.9").exists()), None)


def _cudnn_folders() -> list[Path]:
    found = importlib.util.find_spec("nvidia")
    wheels = [Path(root) / "cudnn" / "lib" for root in (found.submodule_search_locations or () if found else ())]
    roots = [os.environ[name] for name in ("CUDNN_PATH", "CUDA_PATH", "CUDA_HOME") if os.environ.get(name)]
    return [*wheels, *(Path(root) / part for root in (*roots, "/usr/local/cuda") for part in ("lib64", "lib")),
            Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64")]


def _cudnn_version(folder: Path) -> int:
    """As cuDNN tells it (92800 for 9.28.0); 0 where it does not load."""
    try:
        library: Any = ctypes.CDLL(str(folder / "libcudnn.so.9"))
    except OSError:
        return 0
    library.cudnnGetVersion.restype = ctypes.c_size_t
    return int(library.cudnnGetVersion())


def _version_text(version: int) -> str:
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}" if version else "does not load"


def why_not_deviceless() -> str | None:
    """None where cuDNN can be asked without a GPU, else what is missing."""
    if importlib.util.find_spec("cudnn") is None or cudnn_folder() is None:
        return "the packages nvidia-cudnn-frontend and nvidia-cudnn-cu12 (or -cu13) are not installed"
    if _driver_state()[1] == NO_DRIVER and find_compiler() is None:
        return "there is no NVIDIA driver library, and no C compiler to make a stand-in for it"
    return None


@lru_cache(maxsize=1)
def load_frontend() -> Frontend:
    """The package `cudnn`, ready to be asked; without a driver its engines are linked to a stand-in that has no device."""
    reason = why_not_deviceless()
    if reason is not None:
        raise BackendError(explain_error("cuDNN cannot be loaded", reason, 'python -m pip install "symconv[cuda12]"'))
    if _driver_state()[1] == NO_DRIVER:
        ctypes.CDLL(str(_stand_in()), ctypes.RTLD_GLOBAL)  # before cudnn, whose engine libraries look for this name
    return cast(Frontend, importlib.import_module("cudnn"))


def _is_installed(distribution: str) -> bool:
    return any(True for _ in importlib.metadata.distributions(name=distribution))


@lru_cache(maxsize=1)
def _driver_state() -> tuple[bool, str]:
    """Whether the driver has a device, and words for it."""
    try:
        driver: Any = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False, NO_DRIVER
    count = ctypes.c_int(0)
    state = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    of = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    words = f"{of}, {count.value} GPU(s)" if state == 0 else f"{of}, but cuInit gives error {state}"
    return state == 0 and count.value > 0, words


def _stand_in() -> Path:
    """A library named libcuda.so.1 with every entry point that cuDNN links to, each answering CUDA_ERROR_NO_DEVICE."""
    folder, compiler = cudnn_folder(), find_compiler()
    assert folder is not None
    assert compiler is not None
    names = {name.decode() for path in folder.glob("libcudnn*.so.9") for name in _ENTRY.findall(path.read_bytes())}
    source = (Path(__file__).parent / "driver_stand_in.c").read_text(encoding="utf-8")
    own = set(re.findall(r"^int (cu\w+)\(", source, re.MULTILINE))
    source += "".join(f"int {name}() {{ return {_NO_DEVICE}; }}\n" for name in sorted(names - own))
    key = sha256(source.encode()).hexdigest()
    cache = current_cache()
    found = cache.find(key)
    if found is not None:
        return found
    with cache.scratch() as scratch:
        (scratch / "driver.c").write_text(source, encoding="utf-8")
        subprocess.run([*compiler.command, "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(scratch / "driver.so"),
                        str(scratch / "driver.c"), "-ldl"], check=True, capture_output=True)
        return cache.store(key, scratch / "driver.so")
