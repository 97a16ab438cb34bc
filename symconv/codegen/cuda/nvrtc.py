"""From generated CUDA to cubins: each source is compiled once for an architecture and kept in the kernel cache."""
from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence

from ...config import config
from ...errors import BackendError
from ..cache import current_cache
from .headers import DEVICE_HEADER, header
from .nvrtc_library import Nvrtc, find_nvrtc, missing_nvrtc_error

log = logging.getLogger("symconv.codegen")

_SPILLS = re.compile(r"(\d+) bytes spill stores")
# Products are rounded before they are added to something, as on the CPU: what may be one instruction says sc_fma.
_OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--fmad=false")


def compile_kernel(source: str, arch: int) -> bytes:
    """The cubin of a kernel's source for an architecture (90 for sm_90), from the cache where it is there.

    BackendError where there is no NVRTC, or where it does not take the source.
    """
    nvrtc = find_nvrtc()
    if nvrtc is None:
        raise missing_nvrtc_error()
    options = (*_OPTIONS, f"--gpu-architecture=sm_{arch}")
    name = _entry_name(source, options, nvrtc)
    cache = current_cache()
    if config.debug >= 4:
        log.debug("%s", source)
    if config.keep_sources:
        cache.keep(name[:2], f"{name}.cu", source)
    found = cache.find(name, ".cubin")
    if found is not None:
        return found.read_bytes()
    try:
        cubin, _ = nvrtc.compile(source, {DEVICE_HEADER: header(DEVICE_HEADER)}, options)
    except BackendError as error:
        error.add_note(f"source: {cache.keep('failed', f'{name}.cu', source)}")
        raise
    cache.store_made(name, cubin, ".cubin")
    return cubin


def spilled_bytes(source: str, arch: int) -> int:
    """Bytes of registers that the kernels of a source store in local memory and read again, as the assembler says.

    The frame in a cubin (`read_resources`) holds these, and also arrays and what CUDA's own functions keep there.
    """
    nvrtc = find_nvrtc()
    if nvrtc is None:
        raise missing_nvrtc_error()
    options = (*_OPTIONS, f"--gpu-architecture=sm_{arch}", "--ptxas-options=-v")
    _, said = nvrtc.compile(source, {DEVICE_HEADER: header(DEVICE_HEADER)}, options)
    return sum(map(int, _SPILLS.findall(said)))


def kernel_key(source: str, arch: int) -> str:
    """What names a kernel's cubin for an architecture, whichever NVRTC makes it."""
    parts = ("cubin", *_OPTIONS, f"sm_{arch}", header(DEVICE_HEADER), source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _entry_name(source: str, options: Sequence[str], nvrtc: Nvrtc) -> str:
    parts = ("nvrtc", *map(str, nvrtc.version), *options, header(DEVICE_HEADER), source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
