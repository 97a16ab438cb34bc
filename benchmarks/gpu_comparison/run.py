"""Runs the groups that were asked for, one after the other, and makes the report."""
from __future__ import annotations

import argparse
import datetime
import importlib
import platform
import sys
from collections.abc import Callable
from typing import Any

from comparison.contender import SYMCONV, Row, Timing, installed
from comparison.report import Goal, Section, ratio_goals, render, time_text

import symconv as sc
from symconv.config import config
from symconv.runtime.devices.find import find_device

from .rows import FULL, TINY, Rows
from .timing import time_row

LEAST = 0.97


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


class Run:
    """One run of the benchmark: the device, PyTorch if it is there, and the ceilings that it measures."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.device = options, find_device(options.device)
        self.sizes = TINY if options.tiny else FULL
        self.torch: Any = importlib.import_module("gpu_comparison.torch_side") if installed("torch") else None
        self.torch_device = "cuda" if options.device.startswith("cuda") else "cpu"
        if self.torch is not None:
            self.torch.prepare()
        self.rows = Rows(options.device, self.sizes, self.torch, self.torch_device, tuple(options.without.split(",")))
        self.facts = self._facts()
        self.ceilings = self._ceilings()

    def _facts(self) -> dict[str, str]:
        properties = self.device.properties
        torch = "not installed" if self.torch is None else self.torch.torch.__version__
        return {"date": datetime.date.today().isoformat(), "device": f"{properties.name} (sm_{properties.arch})",
                "memory": f"{properties.memory_bytes / 1e9:.0f} GB", "software": properties.software or "none",
                "selection": config.selection,
                "versions": f"symconv {sc.__version__}, torch {torch}, Python {platform.python_version()}"}

    def _ceilings(self) -> dict[str, float]:
        """FLOP/s of matrix products and bytes a second of copies, by PyTorch; nothing without it."""
        if self.torch is None:
            return {}
        found = {f"{dtype} matrix product": self.torch.matmul_rate(self.torch_device, dtype, self.sizes.matmul)
                 for dtype in ("bfloat16", "float32")}
        found["copy"] = self.torch.copy_bandwidth(self.torch_device, self.sizes.copied_bytes)
        self.facts.update({f"measured {name}": f"{rate / 1e12:.3g} T{'B' if name == 'copy' else 'FLOP'}/s"
                           for name, rate in found.items()})
        return found

    def wait(self) -> None:
        """For symconv's stream and PyTorch's."""
        self.device.synchronize()
        if self.torch is not None:
            self.torch.synchronize(self.torch_device)

    def time(self, rows: list[Row]) -> list[Timing]:
        """The timings of the rows that were asked for."""
        timings = []
        for row in rows:
            if self.options.rows in row.name:
                timing = time_row(row, self.options.rounds, self.wait, say)
                times = ", ".join(f"{name} {time_text(timing.median(name))}" for name in timing.samples)
                say(f"{row.name}: {times} ms" + (f"; ratio {timing.ratio:.2f}" if timing.ratio else ""))
                timings.append(timing)
        return timings

    def layers(self) -> Section:
        """FPROP, DGRAD and WGRAD of 24 layers in bfloat16 and float32."""
        timings = self.time(self.rows.layers())
        groups = dict.fromkeys(timing.row.group for timing in timings)
        goals = [goal for group in groups for goal in ratio_goals(group, timings, 1.05, LEAST, _in_group(group))]
        return Section("Single layers", timings, [*goals, *ratio_goals("all layers", timings, 1.05, LEAST)])

    def depthwise(self) -> Section:
        """Generated depthwise kernels against cuDNN's."""
        timings = self.time(self.rows.depthwise())
        return Section("Generated depthwise kernels", timings, ratio_goals("generated over cuDNN", timings, 1.5))

    def tensor(self) -> Section:
        """The implicit GEMM on tensor cores, as a share of the matrix product's rate."""
        timings = self.time(self.rows.tensor_cores())
        peak = self.ceilings.get("bfloat16 matrix product")
        goals = [Goal(f"{each.row.name}: share of the bfloat16 matrix product", 0.6, each.row.flops / each.median(SYMCONV) / peak)
                 for each in timings if peak and SYMCONV in each.samples]
        return Section("Implicit GEMM on tensor cores", timings, goals)

    def elementwise(self) -> Section:
        """Chains, as a share of the copy bandwidth."""
        timings = self.time(self.rows.elementwise())
        copy = self.ceilings.get("copy")
        goals = [Goal(f"{each.row.name}: share of the copy bandwidth", 0.9, each.row.bytes / each.median(SYMCONV) / copy)
                 for each in timings if copy and SYMCONV in each.samples]
        return Section("Elementwise chains", timings, goals)

    def lenet(self) -> Section:
        """LeNet's training step."""
        timings = self.time(self.rows.lenet())
        goals = [*_against(timings, "torch", 3.0), *_against(timings, "torch.compile", 1.2)]
        return Section("LeNet, training step", timings, goals)

    def resnet(self) -> Section:
        """ResNet-50 in bfloat16."""
        timings = self.time(self.rows.resnet())
        return Section("ResNet-50, bfloat16", timings, _against(timings, "torch.compile", 1.0))


def _in_group(group: str) -> Callable[[Timing], bool]:
    return lambda timing: timing.row.group == group


def _against(timings: list[Timing], peer: str, wanted: float) -> list[Goal]:
    """Each row against one peer; of torch.compile's modes the best."""
    goals = []
    for timing in timings:
        names = [name for name in timing.samples if name == peer or (peer == "torch.compile" and name.startswith(peer))]
        if names and SYMCONV in timing.samples:
            ratio = min(timing.median(name) for name in names) / timing.median(SYMCONV)
            goals.append(Goal(f"{timing.row.name} against {peer}", wanted, ratio))
    return goals


def run(options: argparse.Namespace) -> str:
    """The report of one run."""
    with config.change(selection=options.selection, emulator__checked=False):
        this = Run(options)
        sections = []
        for name in options.only:
            say(f"== {name}")
            sections.append(getattr(this, name)())
    where = "a GPU" if options.device.startswith("cuda") else "the emulator, a trial of the program: its times mean nothing"
    return render(this.facts, sections, where, "gpu.py")
