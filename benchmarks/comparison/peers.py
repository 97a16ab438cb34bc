"""Which other libraries take part: those that are installed."""
from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import version
from types import ModuleType

from .contender import installed

_MODULES = {"torch_peer": ("torch",), "jax_peer": ("jax",), "onnx_peer": ("onnxruntime", "onnx")}


class Peers:
    """The installed libraries, as modules with `NAMES` of contenders and functions that build them.

    `without` names packages ("jax") or contenders ("torch.compile") that are left out.
    """

    def __init__(self, threads: int, without: tuple[str, ...] = ()) -> None:
        self.without = without
        self.modules: list[ModuleType] = []
        self.versions: dict[str, str] = {}
        for module, packages in _MODULES.items():
            if installed(*packages) and packages[0] not in without:
                self._take(module, packages[0], threads)

    def _take(self, module: str, package: str, threads: int) -> None:
        peer = importlib.import_module(f".{module}", __package__)
        if hasattr(peer, "prepare"):
            peer.prepare(threads)
        self.modules.append(peer)
        self.versions[package] = version(package)

    def of(self, function: str) -> Iterator[tuple[str, ModuleType]]:
        """Every contender's name with its module, where the module has this function."""
        for module in self.modules:
            if hasattr(module, function):
                yield from ((name, module) for name in module.NAMES if name not in self.without)
