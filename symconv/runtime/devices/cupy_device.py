"""An NVIDIA GPU through CuPy: memory, launches, copies and CUDA graphs. CuPy is imported when a device is first asked for.

CuPy's documentation: https://docs.cupy.dev/en/stable/reference/cuda.html (`cupy.cuda.alloc`, `MemoryPointer`, `Stream`, `Graph`,
`alloc_pinned_memory`), https://docs.cupy.dev/en/stable/user_guide/interoperability.html (DLPack, `__cuda_array_interface__`).
"""
from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ...codegen.cuda.kernel import CudaKernel
from ...codegen.cuda.nvrtc import compile_kernel
from ...errors import BackendError, explain_error
from .find import ALIGNMENT
from .interface import Array, Buffer, DeviceProperties, Span

logger = logging.getLogger("symconv")
MOST_SHARED_SIZE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of the driver's interface
PLAIN_SHARED_BYTES = 48 * 1024  # a kernel that wants more dynamic shared memory must say so to the driver
_CUDA_DLPACK = 2  # kDLCUDA


class CupyBuffer:
    """Device memory from CuPy's pool. `pointer` is CuPy's; `owner` keeps a user's array alive whose memory this is."""

    __slots__ = ("nbytes", "owner", "pointer")

    def __init__(self, pointer: Any, nbytes: int, owner: Any = None) -> None:
        self.pointer, self.nbytes, self.owner = pointer, nbytes, owner


class CupyDevice:
    """The `number`-th GPU, with a stream of its own."""

    def __init__(self, number: int) -> None:
        self.name = f"cuda:{number}"
        self.cupy = import_cupy()
        count = gpu_count(self.cupy)
        if number >= count:
            raise BackendError(explain_error(f"there is no device {self.name!r}", f"{count} GPU(s), numbered from 0"))
        self._device = self.cupy.cuda.Device(number)
        with self._device:
            self.stream = self.cupy.cuda.Stream(non_blocking=True)
            self.properties = _properties(self.cupy.cuda.runtime.getDeviceProperties(number))
        self._modules: dict[str, Any] = {}
        self._staging: Any = None

    @contextmanager
    def _here(self) -> Iterator[None]:
        """CuPy's calls go to this device and stream; what the driver reports becomes a BackendError."""
        cuda = self.cupy.cuda
        try:
            with self._device, self.stream:
                yield
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            raise BackendError(explain_error(f"CUDA met an error on {self.name}", str(error))) from error

    def allocate(self, nbytes: int) -> CupyBuffer:
        """Memory from CuPy's pool; once more after the pool's unused memory was given back."""
        with self._here():
            for attempt in range(2):
                try:
                    return CupyBuffer(self.cupy.cuda.alloc(max(nbytes, 1)), nbytes)
                except self.cupy.cuda.memory.OutOfMemoryError as error:
                    free, total = self.cupy.cuda.runtime.memGetInfo()
                    if attempt:
                        raise BackendError(explain_error(
                            f"{self.name} has no {nbytes:,} bytes of memory left", f"{free:,} of {total:,} bytes are free",
                            "use smaller batches, or free() functions that are not needed")) from error
                    self.cupy.get_default_memory_pool().free_all_blocks()
        raise AssertionError  # the loop returns or raises

    def _staged(self, nbytes: int) -> Any:
        """Pinned host memory for one copy at a time: what the stream copied last has left it."""
        if self._staging is None or self._staging.mem.size < nbytes:
            self._staging = self.cupy.cuda.alloc_pinned_memory(nbytes)
        return self._staging

    def upload(self, buffer: Buffer, array: Array) -> None:
        """Through pinned memory, so that the copy waits in the stream and the caller's array is free at once."""
        if not array.nbytes:
            return
        with self._here():
            self.stream.synchronize()
            staging = self._staged(array.nbytes)
            np.frombuffer(staging, np.uint8, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
            _cupy(buffer).pointer.copy_from_host_async(staging.ptr, array.nbytes, self.stream)

    def download(self, buffer: Buffer, array: Array) -> None:
        """Waits for all work before it."""
        if not array.nbytes:
            return
        with self._here():
            staging = self._staged(array.nbytes)
            _cupy(buffer).pointer.copy_to_host_async(staging.ptr, array.nbytes, self.stream)
            self.stream.synchronize()
            array.reshape(-1).view(np.uint8)[:] = np.frombuffer(staging, np.uint8, array.nbytes)

    def copy(self, target: Span, source: Span) -> None:
        """In the stream."""
        if source.nbytes:
            with self._here():
                self._pointer(target).copy_from_device_async(self._pointer(source), source.nbytes, self.stream)

    def clear(self, span: Span) -> None:
        """In the stream."""
        if span.nbytes:
            with self._here():
                self._pointer(span).memset_async(0, span.nbytes, self.stream)

    def _pointer(self, span: Span) -> Any:
        return _cupy(span.buffer).pointer + span.pointer

    def load(self, kernel: CudaKernel) -> Callable[[Sequence[Span]], None]:
        """Compile for this GPU (or take the cubin from the cache), load, and bind all but the pointers."""
        function = self._function(kernel)
        scalars = [np.dtype(scalar.type).type(scalar.value) for scalar in kernel.scalars]

        def launch(spans: Sequence[Span]) -> None:
            pointers = [np.uint64(int(self._pointer(span).ptr)) for span in spans]
            with self._here():
                function(kernel.grid, kernel.block, (*pointers, *scalars), kernel.shared_bytes, self.stream)

        return launch

    def _function(self, kernel: CudaKernel) -> Any:
        with self._here():
            if kernel.source not in self._modules:
                module = self.cupy.cuda.function.Module()
                module.load(compile_kernel(kernel.source, self.properties.arch))
                self._modules[kernel.source] = module
            function = self._modules[kernel.source].get_function(kernel.name)
            if kernel.shared_bytes > PLAIN_SHARED_BYTES:
                self.cupy.cuda.driver.funcSetAttribute(function.ptr, MOST_SHARED_SIZE, kernel.shared_bytes)
            return function

    def as_array(self, span: Span, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Any:
        """A CuPy array over the memory."""
        with self._here():
            return self.cupy.ndarray(tuple(shape), dtype, memptr=self._pointer(span),
                                     strides=tuple(stride * dtype.itemsize for stride in strides))

    def to_array(self, array: Array) -> Any:
        """A CuPy array with these elements."""
        with self._here():
            return self.cupy.asarray(array)

    def as_buffer(self, value: Any) -> tuple[Buffer, tuple[int, ...], np.dtype[Any]] | None:
        """The memory of a CuPy array, or of any that offers `__cuda_array_interface__` or DLPack, on this GPU.

        Work that its maker has put into CuPy's current stream is waited for, in the stream.
        """
        array = self._as_cupy(value)
        if array is None or array.device != self._device:
            return None
        event = self.cupy.cuda.get_current_stream().record()
        with self._here():
            self.stream.wait_event(event)
            array = self.cupy.ascontiguousarray(array)
        return CupyBuffer(array.data, array.nbytes, array), array.shape, array.dtype

    def _as_cupy(self, value: Any) -> Any:
        if isinstance(value, self.cupy.ndarray):
            return value
        if hasattr(value, "__cuda_array_interface__"):
            return self.cupy.asarray(value)
        device = getattr(value, "__dlpack_device__", None)
        return self.cupy.from_dlpack(value) if device is not None and device()[0] == _CUDA_DLPACK else None

    def record(self, work: Callable[[], None]) -> Callable[[], None] | None:
        """A CUDA graph of the work; None where the driver cannot capture it, which is logged."""
        with self._device:
            self.stream.begin_capture(self.cupy.cuda.runtime.streamCaptureModeThreadLocal)
            try:
                work()
            except BackendError as error:  # a call that may not be made during a capture
                self._end_capture()
                logger.info("not captured as a CUDA graph, launched step by step: %s", error)
                return None
            except BaseException:
                self._end_capture()
                raise
            graph = self._end_capture()
        return None if graph is None else partial(self._replay, graph)

    def _end_capture(self) -> Any:
        """The graph; None where the capture had failed: CUDA tells so at its end too."""
        try:
            return self.stream.end_capture()
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            logger.info("not captured as a CUDA graph, launched step by step: %s", error)
            return None

    def _replay(self, graph: Any) -> None:
        with self._here():
            graph.launch(self.stream)

    def synchronize(self) -> None:
        """Wait for the stream."""
        with self._here():
            self.stream.synchronize()


def _cupy(buffer: Buffer) -> CupyBuffer:
    if not isinstance(buffer, CupyBuffer):
        raise TypeError(f"a buffer of another device: {buffer!r}")
    return buffer


def _properties(found: dict[str, Any]) -> DeviceProperties:
    name = found["name"].decode() if isinstance(found["name"], bytes) else str(found["name"])
    return DeviceProperties(name, found["major"] * 10 + found["minor"], found["multiProcessorCount"], found["totalGlobalMem"],
                            found["sharedMemPerBlockOptin"])


def import_cupy() -> Any:
    """CuPy's module.

    Raises:
        BackendError: it is not installed, or does not load.
    """
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise BackendError(explain_error(
            'device="cuda" needs CuPy', f"import cupy: {error}",
            "install symconv[cuda13] (or symconv[cuda12], for a driver of CUDA 12), or compile for the CPU")) from None


def gpu_count(cupy: Any) -> int:
    """How many GPUs CUDA offers.

    Raises:
        BackendError: none; it tells what was looked for and found: the driver, the runtime, their versions.
    """
    runtime = cupy.cuda.runtime
    try:
        count = int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        driver = runtime.driverGetVersion()
        found = f"version {driver // 1000}.{driver % 1000 // 10}" if driver else "not found (libcuda.so.1)"
        raise BackendError(explain_error(
            'device="cuda" finds no usable GPU', f"{error}; NVIDIA driver: {found}; CuPy {cupy.__version__}",
            "python -m symconv doctor tells more; compile for the CPU, or with device=\"emulator\" to test")) from None
    if not count:
        raise BackendError(explain_error('device="cuda" finds no usable GPU', "the driver offers none",
                                         "look at CUDA_VISIBLE_DEVICES, or compile for the CPU"))
    return count


if ALIGNMENT > 512:
    raise AssertionError("CuPy's pool gives memory that starts on 512 bytes")
