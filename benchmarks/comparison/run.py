"""Runs the groups that were asked for, one after the other, and makes the report."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from symconv.ops.conv_problem import ConvProblem

from . import machine, rows_layers
from .busy import busy_section
from .contender import SYMCONV, Row, Timing
from .memory import memory_section
from .peak import peak_section
from .peers import Peers
from .report import Goal, Section, ratio_goals, render, time_text
from .rows_networks import network_rows
from .timing import time_row

COPIED_FLOATS = 32 * 1024 * 1024  # 128 MiB: several times the last cache


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


class Run:
    """One run of the benchmark: the options, the peers, and the ceilings of the machine."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.peers = Peers(options.threads, tuple(options.without.split(",")))
        self.facts = machine.facts(options.threads, self.peers.versions)
        self.peak = machine.fma_peak(options.threads)
        self.bandwidth = machine.copy_bandwidth(options.threads, COPIED_FLOATS)
        self.facts["measured FMA peak"] = f"{self.peak / 1e9:.0f} GFLOP/s"
        self.facts["measured copy bandwidth"] = f"{self.bandwidth / 1e9:.1f} GB/s, read and written"

    def time(self, rows: list[Row]) -> list[Timing]:
        """The timings of the rows that were asked for."""
        timings = []
        for row in rows:
            if self.options.rows in row.name:
                timing = time_row(row, self.options.rounds, say)
                timings.append(timing)
                times = ", ".join(f"{name} {time_text(timing.median(name))}" for name in timing.samples)
                ratio = f"; ratio {timing.ratio:.2f}, {timing.ratio_of_fastest:.2f} of the fastest" if timing.ratio else ""
                say(f"{row.name}: {times} ms{ratio}")
        return timings

    def layers(self) -> Section:
        """Forward convolutions."""
        timings = self.time(rows_layers.layer_rows(("fprop",), self.peers))
        goals = ratio_goals("all layers", timings, 1.5, 0.95)
        goals += ratio_goals("3x3 stride 1", timings, 2.2, 1.3, _is_dense_3x3)
        return Section("Single layers, forward", timings, goals)

    def gradients(self) -> Section:
        """Both gradients of the same layers."""
        timings = self.time(rows_layers.layer_rows(("dgrad", "wgrad"), self.peers))
        goals = ratio_goals("both gradients", timings, 1.6, 0.95)
        goals += ratio_goals("depthwise", timings, 5, None, _is_depthwise)
        return Section("Single layers, DGRAD and WGRAD", timings, goals)

    def elementwise(self) -> Section:
        """Chains over 4 M floats; the first is bound by memory."""
        before = self._copies()
        timings = self.time(rows_layers.elementwise_rows(self.peers))
        goals = ratio_goals("chains", timings, 1.0, 1.0)
        if timings:
            share = timings[0].row.bytes / timings[0].fastest(SYMCONV) / max(before, self._copies())
            goals.append(Goal("the first chain's share of the copy bandwidth", 0.85, share))
        return Section("Elementwise chains over 4 M floats", timings, goals)

    def _copies(self) -> float:
        """The copy bandwidth now (the clock wanders), of arrays that no cache holds."""
        return machine.copy_bandwidth(self.options.threads, COPIED_FLOATS, 0.2)

    def lenet(self) -> Section:
        """Training steps of LeNet."""
        timings = self.time(network_rows("lenet", (), (32, 128, 500), self.peers))
        return Section("LeNet, training step", timings, ratio_goals("LeNet steps", timings, 2.0, 2.0))

    def resnet(self) -> Section:
        """ResNet-18."""
        timings = self.time(network_rows("resnet18", (1, 8), (8,), self.peers))
        return Section("ResNet-18", timings, ratio_goals("ResNet-18", timings, 1.7, 1.7))

    def mobilenet(self) -> Section:
        """MobileNetV2."""
        timings = self.time(network_rows("mobilenet_v2", (1, 8), (8,), self.peers))
        goals = ratio_goals("inference", timings, 1.3, 1.3, lambda timing: "inference" in timing.row.name)
        goals += ratio_goals("training step", timings, 1.8, None, lambda timing: "step" in timing.row.name)
        return Section("MobileNetV2", timings, goals)

    def memory(self) -> Section:
        """Peak memory, in processes of their own."""
        return memory_section(self.peers)

    def busy(self) -> Section:
        """LeNet's step of 128 images with a busy neighbour."""
        return busy_section(network_rows("lenet", (), (128,), self.peers), self.time)

    def shares(self) -> Section:
        """Shares of the FMA peak."""
        return peak_section(lambda: machine.fma_peak(self.options.threads, 0.1), self.time)


def _is_dense_3x3(timing: Timing) -> bool:
    return rows_layers.is_dense_3x3(ConvProblem.parse(timing.row.name))


def _is_depthwise(timing: Timing) -> bool:
    problem = ConvProblem.parse(timing.row.name)
    return problem.spec.groups == problem.x_shape[1] > 1


def run(options: argparse.Namespace) -> str:
    """The report of one run."""
    this = Run(options)
    parts: dict[str, Callable[[], Section]] = {"layers": this.layers, "gradients": this.gradients, "elementwise": this.elementwise,
                                               "lenet": this.lenet, "resnet": this.resnet, "mobilenet": this.mobilenet,
                                               "memory": this.memory, "busy": this.busy, "peak": this.shares}
    sections = [parts[name]() for name in options.only]
    this.facts["load average at the end"] = machine.load()
    return render(this.facts, sections)
