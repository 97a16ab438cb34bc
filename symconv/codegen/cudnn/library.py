"""The libraries on this machine: what is there, and cuDNN without a GPU. The one file that imports `cudnn`."""
from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import importlib.util
import re
import subprocess
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
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def findings() -> tuple[str, ...]:
    """What was looked for, where, and what was found: one line each (driver, packages, cuDNN and its sub-libraries)."""
    lines = [f"driver libcuda.so.1: {_driver_state()[1]}"]
    for package, distributions in (("cupy", ("cupy-cuda13x", "cupy-cuda12x", "cupy")), ("cudnn", ("nvidia-cudnn-frontend",))):
        versions = [f"{name} {importlib.metadata.version(name)}" for name in distributions if _is_installed(name)]
        lines.append(f"Python package {package}: {', '.join(versions) or 'not installed'}")
    folder = cudnn_folder()
    if folder is None:
        lines.append("cuDNN: no nvidia/cudnn/lib with libcudnn.so.9 among the installed packages")
    for name in ("", *(f"_{each}" for each in SUBLIBRARIES)) if folder is not None else ():
        path = cast(Path, folder) / f"libcudnn{name}.so.9"
        lines.append(f"{path.name}: {path if path.exists() else f'missing in {folder}'}")
    return tuple(lines)


def available() -> str | None:
    """None where cuDNN can run on a GPU of this machine, else why not, with everything that was looked for."""
    lines = findings()
    usable = _driver_state()[0] and not any("not installed" in line or "missing" in line or "no nvidia" in line for line in lines)
    return None if usable else "; ".join(lines)


def cudnn_folder() -> Path | None:
    """The folder of the installed cuDNN wheel's libraries, None without one."""
    found = importlib.util.find_spec("nvidia")
    for root in (found.submodule_search_locations or ()) if found is not None else ():
        folder = Path(root) / "cudnn" / "lib"
        if (folder / "libcudnn.so.9").exists():
            return folder
    return None


def why_not_deviceless() -> str | None:
    """None where cuDNN can be asked without a GPU, else what is missing."""
    if importlib.util.find_spec("cudnn") is None or cudnn_folder() is None:
        return "the packages nvidia-cudnn-frontend and nvidia-cudnn-cu12 (or -cu13) are not installed"
    if _driver_state()[1] == "not found" and find_compiler() is None:
        return "there is no NVIDIA driver library, and no C compiler to make a stand-in for it"
    return None


@lru_cache(maxsize=1)
def load_frontend() -> Frontend:
    """The package `cudnn`, ready to be asked; without a driver its engines are linked to a stand-in that has no device."""
    reason = why_not_deviceless()
    if reason is not None:
        raise BackendError(explain_error("cuDNN cannot be loaded", reason, 'python -m pip install "symconv[cuda12]"'))
    if _driver_state()[1] == "not found":
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
        return False, "not found"
    count = ctypes.c_int(0)
    state = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    words = f"found, {count.value} devices" if state == 0 else f"found, but cuInit gives error {state}"
    return state == 0 and count.value > 0, words


def _stand_in() -> Path:
    """A library named libcuda.so.1 with every entry point that cuDNN links to, each answering CUDA_ERROR_NO_DEVICE."""
    folder, compiler = cudnn_folder(), find_compiler()
    assert folder is not None
    assert compiler is not None
    names = {name.decode() for path in folder.glob("libcudnn*.so.9") for name in _ENTRY.findall(path.read_bytes())}
    source = (Path(__file__).parent / "driver_stand_in.c").read_text()
    own = set(re.findall(r"^int (cu\w+)\(", source, re.MULTILINE))
    source += "".join(f"int {name}() {{ return {_NO_DEVICE}; }}\n" for name in sorted(names - own))
    key = sha256(source.encode()).hexdigest()
    cache = current_cache()
    found = cache.find(key)
    if found is not None:
        return found
    with cache.scratch() as scratch:
        (scratch / "driver.c").write_text(source)
        subprocess.run([*compiler.command, "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(scratch / "driver.so"),
                        str(scratch / "driver.c"), "-ldl"], check=True, capture_output=True)
        return cache.store(key, scratch / "driver.so")
