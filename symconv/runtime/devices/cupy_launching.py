"""Launches, fills and copies in a GPU's stream, CUDA graphs of them, and their times."""
from __future__ import annotations

import operator
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...codegen.cuda.kernel import CudaKernel, CudnnLaunch, Launch
from ...codegen.cuda.nvrtc import compile_kernel
from ...errors import BackendError
from .cupy_base import CupyBase
from .cupy_cudnn import CudnnExecutor
from .interface import Action, Span

MOST_SHARED_SIZE = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of the driver's interface
PLAIN_SHARED_BYTES = 48 * 1024  # a kernel that wants more dynamic shared memory must say so to the driver


class CupyLaunching(CupyBase):
    """Actions are CuPy's own functions with their arguments: a list of them is issued by C code alone."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._modules: dict[tuple[str, bytes | None], Any] = {}
        self._cudnn: CudnnExecutor | None = None

    def copying(self, target: Span, source: Span) -> Action:
        """cudaMemcpyAsync."""
        return partial(self.pointer(target).copy_from_device_async, self.pointer(source), source.nbytes, self.stream)

    def clearing(self, span: Span) -> Action:
        """cudaMemsetAsync."""
        return partial(self.pointer(span).memset_async, 0, span.nbytes, self.stream)

    def bind(self, launch: Launch, spans: Sequence[Span]) -> Action:
        """A kernel is compiled for this GPU, or its cubin taken from the cache, and loaded; a plan of cuDNN from its bytes.
        The caller keeps the buffers alive."""
        if isinstance(launch, CudnnLaunch):
            return self._executor().bind(launch, spans, self.pointer)
        return self._bind_kernel(launch, spans)

    def _executor(self) -> CudnnExecutor:
        with self.here():
            if self._cudnn is None:
                self._cudnn = CudnnExecutor(self.properties.figures, self.stream.ptr)
            return self._cudnn

    def _bind_kernel(self, kernel: CudaKernel, spans: Sequence[Span]) -> Action:
        pointers = [np.uint64(int(self.pointer(span).ptr)) for span in spans]
        scalars = [np.dtype(scalar.type).type(scalar.value) for scalar in kernel.scalars]
        return partial(self._function(kernel), kernel.grid, kernel.block, (*pointers, *scalars), kernel.shared_bytes, self.stream)

    def _function(self, kernel: CudaKernel) -> Any:
        with self.here():
            key = kernel.source, kernel.cubin
            if key not in self._modules:
                module = self.cupy.cuda.function.Module()
                module.load(kernel.cubin or compile_kernel(kernel.source, self.properties.arch))
                self._modules[key] = module
            function = self._modules[key].get_function(kernel.name)
            if kernel.shared_bytes > PLAIN_SHARED_BYTES:
                self.cupy.cuda.driver.funcSetAttribute(function.ptr, MOST_SHARED_SIZE, kernel.shared_bytes)
            return function

    def run(self, actions: Sequence[Action]) -> None:
        """A loop in C."""
        with self.here():
            deque(map(operator.call, actions), maxlen=0)

    def record(self, actions: Sequence[Action]) -> Action | str:
        """A CUDA graph, captured from the stream. Other threads may go on: the capture is this thread's."""
        try:
            with self.here():
                self.stream.begin_capture(self.cupy.cuda.runtime.streamCaptureModeThreadLocal)
                try:
                    deque(map(operator.call, actions), maxlen=0)
                except BaseException:
                    self._end_failed_capture()
                    raise
                graph = self.stream.end_capture()
        except BackendError as error:  # a call that may not be made during a capture
            return str(error)
        return partial(graph.launch, self.stream)

    def _end_failed_capture(self) -> None:
        try:
            self.stream.end_capture()
        except self.cupy.cuda.runtime.CUDARuntimeError:
            return  # it says once more that the capture failed

    def timed(self, groups: Sequence[Sequence[Action]]) -> list[tuple[float, float]]:
        """By the host's clock: when all is issued, and when the stream is empty."""
        flat: list[Action] = [self.stream.synchronize, time.perf_counter]
        for group in groups:
            flat += [*group, time.perf_counter, self.stream.synchronize, time.perf_counter]
        with self.here():
            found = list(map(operator.call, flat))
        stamps = [value for action, value in zip(flat, found, strict=True) if action is time.perf_counter]
        return [(float(stamps[number + 2] - stamps[number]), float(stamps[number + 2] - stamps[number + 1]))
                for number in range(0, 2 * len(groups), 2)]

    def time(self, actions: Sequence[Action], times: int = 1) -> float:
        """By two events in the stream."""
        cuda = self.cupy.cuda
        with self.here():
            start, end = cuda.Event(), cuda.Event()
            start.record(self.stream)
            for _ in range(times):
                deque(map(operator.call, actions), maxlen=0)
            end.record(self.stream)
            end.synchronize()
            return float(cuda.get_elapsed_time(start, end)) * 1e-3 / times

    def mark(self) -> Callable[[], None]:
        """An event in the stream."""
        with self.here():
            event = self.cupy.cuda.Event(disable_timing=True)
            event.record(self.stream)
        return partial(self._wait, event)

    def synchronize(self) -> None:
        """For an event, not for the stream: another thread may be recording it by then."""
        self.mark()()

    def _wait(self, event: Any) -> None:
        with self.told():
            event.synchronize()
