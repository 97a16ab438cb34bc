"""An NVIDIA GPU through CuPy: what its arrays and the host's become. CuPy is imported when a device is first asked for.

CuPy's documentation: https://docs.cupy.dev/en/stable/reference/cuda.html (`cupy.cuda.alloc`, `MemoryPointer`, `Stream`, `Event`,
`Graph`, `alloc_pinned_memory`), https://docs.cupy.dev/en/stable/user_guide/interoperability.html (DLPack,
`__cuda_array_interface__`).
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...errors import InputTypeError, explain_error
from .cupy_base import CupyBuffer
from .cupy_launching import CupyLaunching
from .interface import Array, Buffer, Lent, Span

_CUDA_DLPACK = (2, 13)  # kDLCUDA, kDLCUDAManaged


class CupyDevice(CupyLaunching):
    """A GPU.  The user's arrays belong to CuPy's current stream of their GPU, in which he works; symconv works in one of its own.

    Events order the two: nothing of the user's is read before it is written, or written before it is read; the host does not wait.
    """

    def staging(self, nbytes: int) -> Array:
        """Page-locked memory."""
        with self.here():
            return np.frombuffer(self.cupy.cuda.alloc_pinned_memory(max(nbytes, 1)), np.uint8, nbytes)

    def send(self, target: Span, staged: Array) -> None:
        """cudaMemcpyAsync: of memory that is not page-locked CUDA takes a copy before it returns."""
        if staged.nbytes:
            with self.here():
                self.pointer(target).copy_from_host_async(staged.ctypes.data, staged.nbytes, self.stream)

    def fetch(self, staged: Array, source: Span) -> None:
        """cudaMemcpyAsync: into memory that is not page-locked CUDA copies before it returns."""
        if staged.nbytes:
            with self.here():
                self.pointer(source).copy_to_host_async(staged.ctypes.data, staged.nbytes, self.stream)

    def upload(self, buffer: Buffer, array: Array) -> None:
        """From memory that is not page-locked."""
        self.send(Span.whole(buffer), array)

    def download(self, buffer: Buffer, array: Array) -> None:
        """Into memory that is not page-locked, then wait."""
        self.fetch(array, Span.whole(buffer))
        self.synchronize()

    def as_array(self, span: Span, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Any:
        """A CuPy array over the memory."""
        with self.here():
            return self.cupy.ndarray(tuple(shape), dtype, memptr=self.pointer(span),
                                     strides=tuple(stride * dtype.itemsize for stride in strides))

    def to_array(self, array: Array) -> Any:
        """A CuPy array with these elements."""
        with self.here():
            return self.cupy.asarray(array)

    def lent(self, value: Any) -> Lent | None:
        """A CuPy array, or any that offers DLPack or `__cuda_array_interface__`; from another GPU its elements are copied here."""
        if isinstance(value, np.ndarray) or not self._is_on_a_gpu(value):
            return None
        with self.told():
            array, ready = self._as_cupy(value)
        with self.here():
            self.stream.wait_event(ready)
            if array.device.id == self.number:
                is_ordered = isinstance(value, self.cupy.ndarray)
                return Lent(value, CupyBuffer(array.data, array.nbytes, array), array.shape, array.dtype, is_ordered)
            own = self.cupy.cuda.alloc(max(array.nbytes, 1))
            own.copy_from_device_async(array.data, array.nbytes, self.stream)
            return Lent(value, CupyBuffer(own, array.nbytes, array), array.shape, array.dtype)

    def _is_on_a_gpu(self, value: Any) -> bool:
        if isinstance(value, self.cupy.ndarray) or hasattr(value, "__cuda_array_interface__"):
            return True
        where = getattr(value, "__dlpack_device__", None)
        return where is not None and where()[0] in _CUDA_DLPACK

    def _as_cupy(self, value: Any) -> tuple[Any, Any]:
        """As a row-major CuPy array, and the event behind all that the user has issued for it, in the current stream of its GPU."""
        array = value if isinstance(value, self.cupy.ndarray) else self._taken(value)
        with array.device:
            array = self.cupy.ascontiguousarray(array)
            return array, self.cupy.cuda.get_current_stream().record()

    def _taken(self, value: Any) -> Any:
        """Another library's array, its memory not copied; DLPack first, since it orders the streams of the two libraries."""
        try:
            if hasattr(value, "__dlpack_device__"):
                with self.cupy.cuda.Device(value.__dlpack_device__()[1]):
                    return self._from_dlpack(value)
            return self.cupy.asarray(value)
        except (BufferError, TypeError, ValueError, RuntimeError) as error:
            raise InputTypeError(explain_error(f"an array of {type(value).__module__} on a GPU cannot be taken from there",
                                               f"{type(error).__name__}: {error}", "give a CuPy or NumPy array")) from None

    def _from_dlpack(self, value: Any) -> Any:
        """CuPy does not take bfloat16 by DLPack; PyTorch's passes as integers of its size."""
        if str(value.dtype) != "torch.bfloat16":
            return self.cupy.from_dlpack(value)
        return self.cupy.from_dlpack(value.view(sys.modules["torch"].int16)).view(dtypes.numpy_dtype("bfloat16"))

    def give_back(self, lent: Sequence[Lent]) -> None:
        """The current stream of each array's GPU goes on when this one has come so far; for other libraries' arrays, whose streams
        are not known, the host waits."""
        if not lent:
            return
        with self.here():
            read = self.stream.record()
        for each in lent:
            if isinstance(each.value, self.cupy.ndarray):
                with self.told(), each.value.device:
                    self.cupy.cuda.get_current_stream().wait_event(read)
            else:
                self._wait(read)

    def shown(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], loan: Any) -> Any:
        """A CuPy array; it exports DLPack and `__cuda_array_interface__`."""
        cuda = self.cupy.cuda
        memory = cuda.UnownedMemory(buffer.address, max(buffer.nbytes, 1), loan, self.number)
        return self.cupy.ndarray(shape, dtype, memptr=cuda.MemoryPointer(memory, 0))

    def take_over(self) -> None:
        """This stream goes on when the user's current one has come so far."""
        with self.told(), self.device:
            read = self.cupy.cuda.get_current_stream().record()
        with self.here():
            self.stream.wait_event(read)

    def hand_over(self) -> None:
        """The user's current stream goes on when this one has come so far."""
        with self.here():
            written = self.stream.record()
        with self.told(), self.device:
            self.cupy.cuda.get_current_stream().wait_event(written)


