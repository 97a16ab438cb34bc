"""cuDNN's plans on an NVIDIA GPU: loaded from their bytes, executed in the device's stream.

The frontend's documentation: https://docs.nvidia.com/deeplearning/cudnn/frontend/latest/ (handles, `deserialize`, `execute` with a
variant pack of addresses by uid).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...codegen.cuda.kernel import CudnnLaunch
from ...codegen.cudnn.devices import DeviceProperties
from ...codegen.cudnn.frontend import Frontend, Graph
from ...codegen.cudnn.library import load_frontend
from ...codegen.cudnn.plans import CudnnPlan, PlanRefusedError, load_plan, short_reason
from ...errors import BackendError
from .interface import Action, Span

# The names under which cuDNN wants a GPU's attributes (`devices.json`), and cudaDeviceAttr's numbers of them.
_ATTRIBUTES = {"multiProcessorCount": 16, "maxSharedMemoryPerBlock": 8, "maxSharedMemoryPerBlockOptin": 97,
               "reservedSharedMemoryPerBlock": 111, "regsPerBlock": 12, "warpSize": 10, "maxRegistersPerSM": 82,
               "maxCtasPerSM": 106, "maxThreadsPerBlock": 1, "maxThreadsPerSM": 39, "pciDeviceId": 34, "isTccDriver": 35,
               "supportCoopLaunch": 95, "smClockRateKHz": 13, "memClockRateKHz": 36, "memoryBusWidth": 37, "l2CacheSize": 38,
               "maxSharedMemoryPerSM": 81}
_GRID, _BLOCK = (5, 6, 7), (2, 3, 4)


def figures_of(runtime: Any, number: int, name: str, total_bytes: int) -> str:
    """The figures of a GPU of this machine, as cuDNN's JSON; one by one, since `cudaDeviceProp` lost some of them in CUDA 13."""

    def attribute(which: int) -> int:
        return int(runtime.deviceGetAttribute(which, number))

    members: dict[str, Any] = {member: attribute(which) for member, which in _ATTRIBUTES.items()}
    members |= {"deviceName": name, "cudaDeviceId": number, "deviceVer": 100 * attribute(75) + 10 * attribute(76),
                "smCountOrigin": 0, "driverVer": int(runtime.driverGetVersion()), "oversizedSharedMemoryPerBlock": 0,
                "totalGlobalMem": total_bytes, "maxGridSize": [attribute(which) for which in _GRID],
                "maxBlockSize": [attribute(which) for which in _BLOCK]}
    return DeviceProperties.of(members).text


class CudnnExecutor:
    """A handle on one GPU and stream, and the graphs of the plans that were loaded."""

    def __init__(self, figures: str, stream: int) -> None:
        self._gpu = DeviceProperties.parse(figures)
        self._frontend: Frontend = load_frontend()
        self._handle = self._frontend.create_handle()
        self._frontend.set_stream(handle=self._handle, stream=stream)
        self._graphs: dict[CudnnPlan, Graph] = {}

    def bind(self, launch: CudnnLaunch, spans: Sequence[Span], pointer: Callable[[Span], Any]) -> Action:
        """An execution on the memory of these spans: the tensors in the order of the launch's uids, then the workspace.

        Raises:
            PlanRefusedError: cuDNN does not take the plan here.
        """
        addresses = [int(pointer(span).ptr) for span in spans]
        pack = dict(zip(launch.uids, addresses, strict=False))
        workspace = addresses[len(launch.uids)] if len(addresses) > len(launch.uids) else 0
        return partial(self._execute, self._graph(launch.plan), pack, workspace)

    def _graph(self, plan: CudnnPlan) -> Graph:
        if plan not in self._graphs:
            try:
                _, self._graphs[plan] = load_plan(plan.to_bytes(), self._gpu, self._handle)
            except BackendError as error:
                raise PlanRefusedError(str(error)) from None
        return self._graphs[plan]

    def _execute(self, graph: Graph, pack: dict[int, int], workspace: int) -> None:
        try:
            graph.execute(pack, workspace, handle=self._handle)
        except (RuntimeError, self._frontend.cudnnGraphNotSupportedError) as error:
            raise PlanRefusedError(short_reason(error)) from error
