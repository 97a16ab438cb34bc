"""Peak memory of a training step: each library in a process of its own, the high-water mark of its resident memory."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .peers import Peers
from .report import Goal, Section, markdown_table

NETWORK, BATCH, STEPS = "resnet18", 8, 3


def memory_section(peers: Peers) -> Section:
    """The table: growth over what importing and the data take, and the process in all."""
    section = Section(f"Peak memory of {NETWORK}'s training step, batch {BATCH}")
    if not Path("/proc/self/status").exists():
        section.lines = ["Not measured: this system has no /proc/self/status."]
        return section
    names = ["symconv", *(name for name, _ in peers.of("network_step"))]
    found = {name: _measured(name) for name in names}
    own = found["symconv"]["growth"]
    table = [["library", "growth MB", "process in all MB", "growth over symconv's"]]
    table += [[name, f"{numbers['growth'] / 1e6:.0f}", f"{numbers['all'] / 1e6:.0f}", f"{numbers['growth'] / own:.2f}"]
              for name, numbers in found.items()]
    section.lines = [*markdown_table(table), ""]
    torch = [found[name]["growth"] for name in found if name.startswith("torch")]
    if torch:
        section.goals = [Goal("symconv's growth over PyTorch's least", 0.8, own / min(torch), at_most=True)]
    return section


def _measured(name: str) -> dict[str, int]:
    program = "import sys; sys.path[:0] = sys.argv[2:]; from comparison.memory import measure; measure(sys.argv[1])"
    paths = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    done = subprocess.run([sys.executable, "-c", program, name, *paths], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the memory of {name} could not be measured:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(name: str) -> None:
    """In the process of one library: build, run some steps, print the marks in bytes as JSON."""
    from .rows_networks import network_rows

    threads = int(os.environ.get("OMP_NUM_THREADS", "2"))
    wanted = {"symconv": ("torch", "jax", "onnxruntime"), "jax": ("torch", "onnxruntime")}.get(name, ("jax", "onnxruntime"))
    (row,) = network_rows(NETWORK, (), (BATCH,), Peers(threads, wanted))
    before = _status("VmRSS")
    contender = row.builders[name]()
    for _ in range(STEPS):
        contender.call()
    print(json.dumps({"growth": _status("VmHWM") - before, "all": _status("VmHWM")}))


def _status(key: str) -> int:
    """Bytes of one line of the process's status. (`ru_maxrss` would count the parent's memory from before exec.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")
