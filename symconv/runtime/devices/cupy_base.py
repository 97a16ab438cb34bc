"""What everything on an NVIDIA GPU needs of CuPy: the module, the device, its stream, its memory."""
from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...codegen.cuda.nvrtc_library import find_nvrtc
from ...codegen.cudnn.library import findings
from ...errors import BackendError, InternalError, explain_error
from .cupy_cudnn import figures_of
from .interface import Buffer, DeviceMemoryError, DeviceProperties, Span

_MOST_SHARED_BYTES = 97  # cudaDevAttrMaxSharedMemoryPerBlockOptin


class CupyBuffer:
    """Device memory from CuPy's pool. `pointer` is CuPy's; `owner` keeps a user's array alive whose memory this is."""

    __slots__ = ("address", "nbytes", "owner", "pointer")

    def __init__(self, pointer: Any, nbytes: int, owner: Any = None) -> None:
        self.pointer, self.nbytes, self.owner = pointer, nbytes, owner
        self.address = int(pointer.ptr)


class CupyBase:
    """The `number`-th GPU, with a stream of its own, that no other stream waits for and that waits for none."""

    def __init__(self, number: int) -> None:
        self.name = f"cuda:{number}"
        self.number, self.lock = number, threading.RLock()
        self.cupy = import_cupy()
        count = gpu_count(self.cupy)
        if number >= count:
            raise BackendError(explain_error(f"there is no device {self.name!r}", f"{count} GPU(s), numbered from 0"))
        with self.device:
            self.stream = self.cupy.cuda.Stream(non_blocking=True)
            self.properties = _properties(self.cupy.cuda.runtime, number)

    @property
    def device(self) -> Any:
        """CuPy's device, a new object each time: one remembers what was current before it, whichever thread enters it."""
        return self.cupy.cuda.Device(self.number)

    @property
    def setting(self) -> None:
        """Launches depend on nothing else."""
        return None

    @contextmanager
    def here(self) -> Iterator[None]:
        """CuPy's calls go to this device and stream, from one thread at a time: what another put into the stream while it is
        recorded would become part of that; what the driver reports becomes a BackendError."""
        with self.lock, self.told(), self.device, self.stream:
            yield

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors of CUDA become BackendErrors."""
        cuda = self.cupy.cuda
        try:
            yield
        except cuda.memory.OutOfMemoryError as error:
            with self.device:
                free, total = cuda.runtime.memGetInfo()
            raise DeviceMemoryError(explain_error(
                f"{self.name} has not enough memory left", f"{error}; {free:,} of {total:,} bytes are free",
                "use smaller batches, or free() functions that are not needed")) from None
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            raise BackendError(explain_error(f"CUDA met an error on {self.name}", str(error))) from error

    def allocate(self, nbytes: int) -> CupyBuffer:
        """Memory from CuPy's pool, which gives back what nobody uses and tries again before it raises."""
        with self.here():
            return CupyBuffer(self.cupy.cuda.alloc(max(nbytes, 1)), nbytes)

    def memory_in_use(self) -> int:
        """Bytes of the pool's blocks that are in use."""
        with self.device:
            return int(self.cupy.get_default_memory_pool().used_bytes())

    def pointer(self, span: Span) -> Any:
        """CuPy's pointer to a span's first element."""
        return cupy_buffer(span.buffer).pointer + span.pointer


def cupy_buffer(buffer: Buffer) -> CupyBuffer:
    """A buffer, which must be one of CuPy's."""
    if not isinstance(buffer, CupyBuffer):
        raise InternalError(f"a buffer of another device: {buffer!r}")
    return buffer


def _properties(runtime: Any, number: int) -> DeviceProperties:
    found = runtime.getDeviceProperties(number)
    name = found["name"].decode() if isinstance(found["name"], bytes) else str(found["name"])
    software = f"driver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}"
    shared, memory = runtime.deviceGetAttribute(_MOST_SHARED_BYTES, number), found["totalGlobalMem"]
    return DeviceProperties(name, found["major"] * 10 + found["minor"], found["multiProcessorCount"], memory, shared, software,
                            figures_of(runtime, number, name, memory))


def import_cupy() -> Any:
    """CuPy's module.

    Raises:
        BackendError: it is not installed, or does not load.
    """
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise BackendError(explain_error(
            'device="cuda" needs CuPy', f"import cupy: {error}; {_looked()}",
            "install symconv[cuda13] (or symconv[cuda12], for a driver of CUDA 12), or compile for the CPU")) from None


def _looked() -> str:
    """What else a GPU needs, and what was found of it and where."""
    nvrtc = find_nvrtc()
    compiler = "not found" if nvrtc is None else f"{nvrtc.version[0]}.{nvrtc.version[1]}, {nvrtc.path}"
    return "; ".join((*findings(), f"NVRTC: {compiler}"))


def gpu_count(cupy: Any) -> int:
    """How many GPUs CUDA offers.

    Raises:
        BackendError: none; it tells what was looked for and found: the driver, the runtime, their versions.
    """
    runtime = cupy.cuda.runtime
    try:
        count = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        version = runtime.runtimeGetVersion()
        found = f"{error}; CuPy {cupy.__version__} with CUDA runtime {version // 1000}.{version % 1000 // 10}; {_looked()}"
        raise BackendError(explain_error(
            'device="cuda" finds no usable GPU', found,
            "python -m symconv doctor tells more; compile for the CPU, or with device=\"emulator\" to test")) from None
    if not count:
        raise BackendError(explain_error('device="cuda" finds no usable GPU', "the driver offers none",
                                         "look at CUDA_VISIBLE_DEVICES, or compile for the CPU"))
    return count
