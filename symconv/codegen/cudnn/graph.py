"""The frontend graph of a convolution with its fused chain: one convolution node and a pointwise node for each step."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops.conv_problem import ConvProblem
from ...ops.epilogue import CHANNEL
from ...ops.spec import Kind, Role
from .devices import DeviceProperties
from .frontend import Frontend, Graph, Tensor
from .fusion import RELU_GRADIENT, Fusion, Step

NCHW, NHWC = "nchw", "nhwc"
UID: dict[Role, int] = {"x": 1, "w": 2, "y": 3}
"""The numbers of the three tensors in a variant pack; operand i of the chain has OPERAND_UID + i."""
OPERAND_UID = 10
_NAMES = {"float16": "HALF", "bfloat16": "BFLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}


def layout_strides(shape: Sequence[int], layout: str) -> tuple[int, ...]:
    """Strides in elements of a dense tensor (N, C, *spatial) that lies in memory as the layout says.

    >>> layout_strides((2, 8, 5, 5), NHWC), layout_strides((2, 8, 5, 5), NCHW)
    ((200, 1, 40, 8), (200, 25, 5, 1))
    """
    order = [0, *range(2, len(shape)), 1] if layout == NHWC else list(range(len(shape)))
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis], step = step, step * shape[axis]
    return tuple(strides)


def data_type(frontend: Frontend, dtype: str) -> Any:
    """cuDNN's member for a dtype of symconv."""
    return getattr(frontend.data_type, _NAMES[dtype])


def empty_graph(frontend: Frontend, device: DeviceProperties, dtype: str, compute: str, handle: Any = None) -> Graph:
    """A graph for a GPU that need not be there; with a handle, for the one that the handle is on."""
    wide = data_type(frontend, compute)
    place: dict[str, Any] = {"handle": handle} if handle is not None else {
        "device_property": frontend.create_device_properties(device.text), "sm_version": device.version,
        "sm_count": device.processors}
    return frontend.pygraph(io_data_type=data_type(frontend, dtype), intermediate_data_type=wide, compute_data_type=wide, **place)


def build_graph(frontend: Frontend, device: DeviceProperties, problem: ConvProblem, fusion: Fusion, layout: str,
                handle: Any = None) -> Graph:
    """The graph of a problem of rank 2 or 3, validated and lowered; raises what cuDNN raises where it refuses that already."""
    graph = empty_graph(frontend, device, problem.dtype, problem.accumulator, handle)
    _Builder(frontend, graph, problem, fusion, layout).build()
    graph.validate()
    graph.build_operation_graph()
    return graph


class _Builder:
    """Puts the nodes of one problem into a graph."""

    def __init__(self, frontend: Frontend, graph: Graph, problem: ConvProblem, fusion: Fusion, layout: str) -> None:
        self.frontend, self.graph, self.problem, self.fusion, self.layout = frontend, graph, problem, fusion, layout

    def build(self) -> None:
        """The convolution, the chain, the output."""
        result = self._convolution()
        shape, produced = self.problem.result_shape, self.problem.kind.produces
        if self.problem.kind is not Kind.FPROP:  # what y and w, or x and y, give is not unique
            result.set_dim(shape).set_stride(layout_strides(shape, self.layout))
        for step in self.fusion.steps:
            result = self._step(step, result)
        result.set_output(True).set_data_type(data_type(self.frontend, self.problem.result_dtype)).set_uid(UID[produced])
        result.set_dim(shape).set_stride(layout_strides(shape, self.layout))

    def _convolution(self) -> Tensor:
        problem, spec = self.problem, self.problem.spec
        shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
        tensors = [self._input(role, shapes[role], UID[role], problem.dtype, self.layout) for role in problem.kind.reads]
        modes = self.frontend._pybind_module.convolution_mode
        options: dict[str, Any] = {
            "pre_padding": list(spec.pad_lo), "post_padding": list(spec.pad_hi), "stride": list(spec.stride),
            "dilation": list(spec.dilation), "convolution_mode": modes.CONVOLUTION if spec.flip else modes.CROSS_CORRELATION}
        if problem.kind is Kind.FPROP:
            return self.graph.conv_fprop(image=tensors[0], weight=tensors[1], **options)
        if problem.kind is Kind.DGRAD:
            return self.graph.conv_dgrad(loss=tensors[0], filter=tensors[1], **options)
        return self.graph.conv_wgrad(image=tensors[0], loss=tensors[1], **options)

    def _step(self, step: Step, value: Tensor) -> Tensor:
        graph = self.graph
        if step.operand is None:
            plain: Callable[[Tensor], Tensor] = getattr(graph, step.name)
            return plain(value)
        operand = self._operand(step)
        if step.name == RELU_GRADIENT:  # not relu_backward, whose answer for NaN and for inf at the masked places is another one
            zero = graph.tensor_scalar(0.0, self.frontend.scalar_type.COMPILE_TIME_CONST)
            mask = graph.cmp_gt(input=operand, comparison=zero)
            return graph.binary_select(input0=value, input1=zero, mask=mask)
        if step.name == "bias":
            return graph.bias(input=value, bias=operand)
        if step.name == "scale":
            return graph.scale(input=value, scale=operand)
        return graph.add(value, operand) if step.name == "residual" else graph.mul(value, operand)

    def _operand(self, step: Step) -> Tensor:
        assert step.operand is not None
        shape = self.problem.result_shape
        if step.place == CHANNEL:
            shape = (1, shape[1], *(1,) * self.problem.spec.ndim)
        return self._input(step.name, shape, OPERAND_UID + step.operand, self.fusion.dtypes[step.operand], self.layout)

    def _input(self, name: str, shape: Sequence[int], uid: int, dtype: str, layout: str) -> Tensor:
        return self.graph.tensor(dim=list(shape), stride=list(layout_strides(shape, layout)),
                                 data_type=data_type(self.frontend, dtype), uid=uid, name=name)
