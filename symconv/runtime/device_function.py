"""DeviceFunction: a compiled function whose state and work are on a device with memory of its own."""
from __future__ import annotations

import gc
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..config import config
from ..errors import InputTypeError, InternalError, explain_error
from ..graph import FunctionGraph, Variable
from .arguments import In, Out, match_arguments
from .container import Container
from .device_call import DeviceCall
from .device_program import DeviceProgram
from .devices.interface import Device, DeviceMemoryError, Lent
from .function import Function
from .kept import Kept

Array = np.ndarray[Any, Any]
logger = logging.getLogger("symconv")
_SMALLER_WORKSPACES = (64 << 20, 0)


class DeviceFunction(Function):
    """A compiled function on a device.

    Arguments are NumPy arrays, or arrays that lie on a GPU already (CuPy's, or any with DLPack or `__cuda_array_interface__`):
    their elements do not pass through the host.  Shared variables stay on the device between calls; `get_value` fetches them.
    """

    def __init__(self, *given: Any, place: Device) -> None:
        super().__init__(*given)
        self.place = place
        self._on_device = [isinstance(output, Out) and output.on_device for output in _flat(self.recipe.outputs)]
        self._build_once, self._build = self._build, self._build_within_memory

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        return match_arguments(self.recipe.inputs, args, kwargs, self.name, partial(_convert, self.place))

    def _bindings(self, arrays: list[Any]) -> dict[Variable, Array]:
        return super()._bindings([self._on_host(each) for each in arrays])

    def _on_host(self, value: Any) -> Array:
        if isinstance(value, Container):
            return value.array
        if not isinstance(value, Lent):
            return np.asarray(value)
        array = np.empty(value.shape, value.dtype)
        self.place.download(value.buffer, array)
        return array

    def _run(self, arguments: list[Any]) -> list[Any]:
        leaves = self._leaf_values(arguments)
        kept = self._program(leaves)
        kept.look_at_state()
        return self._carry_out(self._made_call(kept, kept.in_order(leaves)), arguments)

    def _leaf_values(self, arguments: list[Any]) -> list[Any]:
        return [*arguments, *(leaf.container for leaf in self._shared)]

    def _made_call(self, kept: Kept, values: list[Any]) -> DeviceCall:
        """A call with all the memory that it needs; programs for other shapes make room where there is not enough."""
        try:
            return DeviceCall(kept, _on_device(kept), values, self._on_device)
        except DeviceMemoryError as error:
            logger.info("%s: %s", self.name, error)
        self._free_but(kept)
        return DeviceCall(kept, _on_device(kept), values, self._on_device)

    def _free_but(self, kept: Kept | None) -> None:
        """Drop all programs but one, and wait for their memory."""
        groups = [(key, [each for each in group if each is kept]) for key, group in self._programs.items()]
        self._drop_programs()
        self._programs.update({key: group for key, group in groups if group})
        gc.collect()

    def _build_within_memory(self, graph: FunctionGraph, arrays: dict[Variable, Array]) -> Kept:
        """A program; where memory does not suffice once more without those for other shapes, then with smaller workspaces.

        Raises:
            DeviceMemoryError: it does not suffice for those either.
        """
        text = ""
        for workspace in (None, None, *_SMALLER_WORKSPACES):
            try:
                return self._built(graph, arrays, workspace)
            except DeviceMemoryError as error:
                text = str(error)
            logger.info("%s: %s", self.name, text)
            self._free_but(None)  # the error is forgotten by now, and with it what it kept alive
        raise DeviceMemoryError(text)

    def _built(self, graph: FunctionGraph, arrays: dict[Variable, Array], workspace: int | None) -> Kept:
        if workspace is None:
            return self._build_once(graph, arrays)
        with config.change(workspace_bytes=min(workspace, config.workspace_bytes),
                           dnn__workspace_bytes=min(workspace, config.dnn.workspace_bytes)):
            return self._build_once(graph, arrays)


def _on_device(kept: Kept) -> DeviceProgram:
    if not isinstance(kept.program, DeviceProgram):
        raise InternalError("a function on a device has a program for another one")
    return kept.program


def _convert(device: Device, given: In, value: Any, position: int) -> Any:
    """The argument: what lies on a device stays there, anything else becomes a host array."""
    found = device.lent(value)
    if found is None:
        return given.convert(value, position)
    type_ = given.variable.type
    fits = (len(found.shape) == type_.ndim
            and all(want in (None, size) for want, size in zip(type_.shape, found.shape, strict=True)))
    if found.dtype != given.numpy_dtype or not fits:
        raise InputTypeError(explain_error(f"the input {given.name!r} (argument {position}) has the type {type_}",
                                           f"an array on a GPU of dtype {found.dtype} and shape {found.shape}",
                                           "convert it first"))
    return found


def _flat(outputs: Any) -> Sequence[Any]:
    """The outputs as `compile` was given them, in order."""
    if outputs is None:
        return []
    if isinstance(outputs, Mapping):
        return list(outputs.values())
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


