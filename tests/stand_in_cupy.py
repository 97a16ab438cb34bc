"""A stand-in for the parts of CuPy that `CupyDevice` uses: several GPUs in host memory, whose streams do nothing before they must.

What is put into a stream runs when somebody waits for it, and then only what stands before: whoever forgets to order two streams
reads what nobody has written yet.  Kernels run on the emulator.  Like CUDA it refuses allocations and waits while a stream is
captured, and like CuPy a stream of a device that is not the current one.  `test_cupy_device.py` compares signatures with CuPy.
"""
from __future__ import annotations

import ctypes
import weakref
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from symconv.codegen.cuda import emulator
from symconv.codegen.cuda.kernel import CudaKernel, Scalar


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class StandIn:
    """The module `cupy`, and the machine below it."""

    __version__ = "stand-in"

    def __init__(self, devices=2, memory=1 << 30):
        self.n_devices, self.limit, self.in_use = devices, memory, 0
        self.current, self.streams, self.log = [0], {}, []
        self.allocations: Any = weakref.WeakValueDictionary()
        self.capturing = None
        world = self
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError, streamCaptureModeThreadLocal=1, getDeviceCount=lambda: devices,
            deviceGetAttribute=lambda attrib, device: {97: 227 * 1024}.get(attrib, 1),
            driverGetVersion=lambda: 13000, runtimeGetVersion=lambda: 13000,
            memGetInfo=lambda: (self.limit - self.in_use, memory),
            getDeviceProperties=lambda number: {"name": b"stand-in", "major": 9, "minor": 0, "multiProcessorCount": 4,
                                                "totalGlobalMem": memory})

        class Device(_Device):
            def __init__(self, number=None):
                self.world, self.id = world, world.current[-1] if number is None else number

        class Stream(_Stream):
            def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
                super().__init__(world, world.current[-1])

        class Event(_Event):
            def __init__(self, block=False, disable_timing=False, interprocess=False):
                super().__init__(world)

        class Module(_Module):
            def __init__(self):
                self.world = world

        self.cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=CUDADriverError, funcSetAttribute=lambda f, attribute, value: None),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError), Device=Device, Stream=Stream, Event=Event, alloc=self.alloc,
            alloc_pinned_memory=lambda size: bytearray(size), function=SimpleNamespace(Module=Module),
            get_current_stream=self.get_current_stream, get_elapsed_time=lambda start_event, end_event: 1.0)
        self.cuda.UnownedMemory, self.cuda.MemoryPointer = partial(_UnownedMemory, self), MemoryPointer

        class Ndarray(NdArray):
            def __init__(self, shape, dtype=float, memptr=None, strides=None):
                super().__init__(world, shape, dtype, memptr, strides)

        self.ndarray = Ndarray
        self.device_type = Device

    def get_default_memory_pool(self):
        return SimpleNamespace(used_bytes=lambda: self.in_use, free_all_blocks=lambda: None)

    def get_current_stream(self, device_id=-1):
        number = self.current[-1] if device_id == -1 else device_id
        if number not in self.streams:
            self.streams[number] = [_Stream(self, number)]
        return self.streams[number][-1]

    def alloc(self, size):
        if self.capturing is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        if self.in_use + size > self.limit:
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")
        return MemoryPointer(_Memory(self, size, self.current[-1]), 0)

    def empty(self, shape, dtype):
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        return self.ndarray(shape, dtype, self.alloc(max(size, 1)))

    def asarray(self, array):
        """Of an array on the host, or of one that offers `__cuda_array_interface__`."""
        if not isinstance(array, np.ndarray):
            return array.as_cupy(self)
        result = self.empty(array.shape, array.dtype)
        result.data.copy_from_host_async(array.ctypes.data, array.nbytes)
        self.get_current_stream().synchronize()
        return result

    def from_dlpack(self, array):
        return array.as_cupy(self)

    def ascontiguousarray(self, array):
        if array.is_row_major:
            return array
        result = self.empty(array.shape, array.dtype)
        self.get_current_stream().put(lambda: np.copyto(result.now(), array.now()))
        return result

    def fill(self, array, values):
        """What a user does to an array in the current stream."""
        values = np.array(values, array.dtype)
        with array.device:
            self.get_current_stream().put(lambda: np.copyto(array.now(), values))


class _Device:
    def __enter__(self):
        self.world.current.append(self.id)
        return self

    def __exit__(self, *_):
        self.world.current.pop()

    def __eq__(self, other):
        return self.id == other.id

    __hash__ = None


class _Memory:
    def __init__(self, world, size, device_id):
        self.bytes = np.full(size + 512, 0xCD, np.uint8)
        self.ptr = -(-self.bytes.ctypes.data // 512) * 512
        self.world, self.size, self.device_id = world, size, device_id
        world.in_use += size
        world.allocations[self.ptr] = self

    def __del__(self):
        self.world.in_use -= self.size


class _UnownedMemory:
    def __init__(self, world, ptr, size, owner, device_id=-1):
        self.world, self.ptr, self.size, self.owner, self.device_id = world, ptr, size, owner, device_id
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(ptr))


class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)

    def _put(self, stream, work):
        world = self.mem.world
        (stream if stream is not None else world.get_current_stream()).put(work)

    def copy_from_device_async(self, src, size, stream=None):
        self._put(stream, lambda: ctypes.memmove(self.ptr, src.ptr, size))

    def copy_from_host_async(self, mem, size, stream=None):
        assert isinstance(mem, int)
        self._put(stream, lambda: ctypes.memmove(self.ptr, mem, size))

    def copy_to_host_async(self, mem, size, stream=None):
        assert isinstance(mem, int)
        self._put(stream, lambda: ctypes.memmove(mem, self.ptr, size))

    def memset_async(self, value, size, stream=None):
        self._put(stream, lambda: ctypes.memset(self.ptr, value, size))


class NdArray:
    """`cupy.ndarray`, as far as it goes."""

    def __init__(self, world, shape, dtype, memptr, strides=None):
        self.world, self.shape, self.dtype, self.data = world, tuple(shape), np.dtype(dtype), memptr
        self.strides = np.empty(self.shape, self.dtype).strides if strides is None else strides
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def device(self):
        return self.world.device_type(self.data.device_id)

    @property
    def is_row_major(self):
        return self.strides == np.empty(self.shape, self.dtype).strides

    @property
    def T(self):
        return self.world.ndarray(self.shape[::-1], self.dtype, self.data, self.strides[::-1])

    def now(self):
        """The elements as they are, whatever streams have still to do."""
        memory = self.data.mem
        start = self.data.ptr - memory.bytes.ctypes.data
        return np.lib.stride_tricks.as_strided(memory.bytes[start:].view()[:max(memory.size, 1)].view(self.dtype) if self.nbytes
                                               else np.empty(1, self.dtype), self.shape, self.strides)

    def get(self):
        with self.device:
            self.world.get_current_stream().synchronize()
        return self.now().copy()


class _Event:
    def __init__(self, world):
        self.world, self.stream, self.position = world, None, 0

    def record(self, stream=None):
        self.stream = self.world.get_current_stream() if stream is None else stream
        self.position = self.stream.issued

    def synchronize(self):
        if self.world.capturing is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        if self.stream is not None:
            self.stream.run_to(self.position)


class _Stream:
    def __init__(self, world, device_id):
        self.world, self.device_id, self.ptr = world, device_id, id(self)
        self.waiting, self.issued, self.done = [], 0, 0

    def put(self, work):
        if self.world.capturing is not None and self.world.capturing[0] is self:
            self.world.capturing[1].append(work)
            return
        self.waiting.append(work)
        self.issued += 1

    def run_to(self, position):
        while self.done < position:
            self.done += 1
            self.waiting.pop(0)()

    def synchronize(self):
        if self.world.capturing is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        self.run_to(self.issued)

    def record(self, event=None):
        event = _Event(self.world) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        self.put(event.synchronize)

    def begin_capture(self, mode=None):
        assert mode == 1
        self.world.capturing = (self, [])

    def end_capture(self):
        (_, works), self.world.capturing = self.world.capturing, None
        self.world.log.append(f"captured {len(works)}")
        return _Graph(works)

    def __enter__(self):
        assert self.device_id == self.world.current[-1], "the device of the stream is not the current one"
        self.world.get_current_stream()
        self.world.streams[self.device_id].append(self)
        return self

    def __exit__(self, *_):
        self.world.streams[self.device_id].pop()


class _Graph:
    def __init__(self, works):
        self.works = works

    def launch(self, stream=None):
        stream.world.log.append("replayed")
        for work in self.works:
            stream.put(work)


class _Module:
    def load(self, cubin):
        assert isinstance(cubin, bytes)
        self.source = cubin.decode()

    def get_function(self, name):
        return _Function(self, name)


class _Function:
    ptr = 0

    def __init__(self, module, funcname):
        self.module, self.name = module, funcname

    def __call__(self, grid, block, args, shared_mem=0, stream=None):
        world = self.module.world
        buffers, scalars = [], []
        for number, arg in enumerate(args):
            if type(arg) is np.uint64 and (memory := _memory_at(world, int(arg))) is not None:
                buffers.append(emulator.Buffer(f"argument {number}", memory.ptr, memory.size, int(arg) - memory.ptr))
            else:
                scalars.append(Scalar(arg.dtype.name, arg.item()))
        kernel = CudaKernel(self.name, self.module.source, grid, block, tuple(range(len(buffers))), tuple(scalars), shared_mem)
        stream.put(lambda: emulator.launch(kernel, buffers, checked=False, threads=1))


def _memory_at(world, address):
    return next((memory for memory in world.allocations.values() if memory.ptr <= address < memory.ptr + max(memory.size, 1)), None)
