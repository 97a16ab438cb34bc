"""The part of the package `cudnn` (nvidia-cudnn-frontend) that symconv uses, as types; no stubs of it are needed.

Names and meanings are the package's own: https://docs.nvidia.com/deeplearning/cudnn/frontend/latest/
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Tensor(Protocol):
    """A tensor of a graph; setters give the tensor back."""

    def set_output(self, value: bool) -> Tensor:
        """Whether the tensor is written to memory."""

    def set_dim(self, dims: Sequence[int]) -> Tensor:
        """Its sizes, in cuDNN's order (N, C, *spatial)."""

    def set_stride(self, strides: Sequence[int]) -> Tensor:
        """Its strides in elements."""

    def set_data_type(self, data_type: Any) -> Tensor:
        """Its dtype."""

    def set_uid(self, uid: int) -> Tensor:
        """The number that names it in a variant pack."""


class Graph(Protocol):
    """`cudnn.pygraph`: nodes first, then plans, then execution. Every method may raise `RuntimeError` or the package's own
    `cudnnGraphNotSupportedError`; both are refusals."""

    def tensor(self, *, dim: Sequence[int], stride: Sequence[int], data_type: Any, uid: int, name: str) -> Tensor:
        """An input."""

    def conv_fprop(self, *, image: Tensor, weight: Tensor, pre_padding: Sequence[int], post_padding: Sequence[int],
                   stride: Sequence[int], dilation: Sequence[int], convolution_mode: Any) -> Tensor:
        """The response."""

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, pre_padding: Sequence[int], post_padding: Sequence[int],
                   stride: Sequence[int], dilation: Sequence[int], convolution_mode: Any) -> Tensor:
        """The image's gradient."""

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, pre_padding: Sequence[int], post_padding: Sequence[int],
                   stride: Sequence[int], dilation: Sequence[int], convolution_mode: Any) -> Tensor:
        """The filters' gradient."""

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        """a + b."""

    def bias(self, *, input: Tensor, bias: Tensor) -> Tensor:
        """input + bias."""

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        """a · b."""

    def scale(self, *, input: Tensor, scale: Tensor) -> Tensor:
        """input · scale."""

    def relu(self, input: Tensor) -> Tensor:
        """max(input, 0); keeps NaN."""

    def sigmoid(self, input: Tensor) -> Tensor:
        """1 / (1 + exp(-input))."""

    def tanh(self, input: Tensor) -> Tensor:
        """tanh(input)."""

    def softplus(self, input: Tensor) -> Tensor:
        """log(1 + exp(input))."""

    def swish(self, input: Tensor) -> Tensor:
        """input · sigmoid(input)."""

    def tensor_scalar(self, value: float, scalar_type: Any) -> Tensor:
        """A number that is part of the graph."""

    def cmp_gt(self, *, input: Tensor, comparison: Tensor) -> Tensor:
        """1 where input > comparison, else 0."""

    def binary_select(self, *, input0: Tensor, input1: Tensor, mask: Tensor) -> Tensor:
        """input0 where the mask holds, else input1."""

    def validate(self) -> None:
        """Check the nodes."""

    def build_operation_graph(self) -> None:
        """Lower the graph to cuDNN's backend."""

    def create_execution_plans(self, modes: Sequence[Any]) -> None:
        """Ask the heuristics for plans, best first."""

    def get_execution_plan_count(self) -> int:
        """How many plans the heuristics gave, those deselected included."""

    def get_plan_name_at_index(self, index: int) -> str:
        """The engine and its knobs."""

    def deselect_numeric_notes(self, notes: Sequence[Any]) -> Graph:
        """Leave out plans with any of these notes."""

    def deselect_workspace_greater_than(self, limit: int) -> Graph:
        """Leave out plans that need more workspace."""

    def check_support(self) -> None:
        """Raises where no plan that is left can run."""

    def build_plan_at_index(self, index: int) -> Graph:
        """Build one plan and select it."""

    def get_workspace_size(self) -> int:
        """Bytes of workspace of the selected plan."""

    def serialize(self, *, as_bytes: bool) -> bytes:
        """The selected plan as bytes."""

    def deserialize(self, *arguments: Any) -> None:
        """Take a plan from bytes: (data) or (handle, data)."""

    def execute(self, variant_pack: Mapping[int, int], workspace: int, handle: Any = None) -> None:
        """Run the selected plan on device pointers by uid."""


class Enumeration(Protocol):
    """An enumeration of the package: members by name."""

    def __getattr__(self, name: str) -> Any: ...


class Frontend(Protocol):
    """The package `cudnn` itself."""

    __version__: str
    data_type: Enumeration
    heur_mode: Enumeration
    numerical_note: Enumeration
    scalar_type: Enumeration
    _pybind_module: Any  # convolution_mode is exported nowhere else
    cudnnGraphNotSupportedError: type[Exception]  # noqa: N815

    def backend_version(self) -> int:
        """cuDNN's version: 92800 for 9.28.0."""

    def create_device_properties(self, text: str) -> Any:
        """A GPU that need not be there, from its JSON."""

    def create_handle(self) -> Any:
        """A handle on the current device."""

    def set_stream(self, handle: Any, stream: int) -> None:
        """The stream that executions with the handle run on."""

    def pygraph(self, **options: Any) -> Graph:
        """An empty graph."""
