"""How long importing, compiling, planning and calling take, each in new processes.

    python benchmarks/compile_time.py [--repeats 5] [--json FILE]

Prints for each quantity the median over the repeats, the range, and its goal where it has one. Wall-clock time on a machine
that does other work too says little: the CPU time of the same runs stands beside it, and the load at the end.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

_TIMER = """
import json, resource, time

def cpu():
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
               for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

class Timer:
    def __enter__(self):
        self.wall, self.cpu = -time.perf_counter(), -cpu()
        return self
    def __exit__(self, *_):
        self.wall += time.perf_counter()
        self.cpu += cpu()
"""

_IMPORT = _TIMER + """
with Timer() as timer:
    import symconv
print(json.dumps([timer.wall, timer.cpu]))
"""

_TRAIN = _TIMER + """
from symconv.demo.network import make_network
with Timer() as timer:
    network = make_network()
    network.train.prepare((50, 1, 28, 28), (50,))
print(json.dumps([timer.wall, timer.cpu]))
"""

_NEW_BATCH = _TIMER + """
from symconv.demo.network import make_network
network = make_network()
network.train.prepare((50, 1, 28, 28), (50,))
with Timer() as timer:
    network.train.prepare((BATCH, 1, 28, 28), (BATCH,))
print(json.dumps([timer.wall, timer.cpu]))
"""

_RESNET = _TIMER + """
from networks.in_symconv import training_step
from networks.parameters import make_parameters
parameters = make_parameters("resnet18")
with Timer() as timer:
    training_step("resnet18", parameters, BATCH, 0.1, 0.9)
print(json.dumps([timer.wall, timer.cpu]))
"""

_RESNET_OTHER_BATCH = _RESNET.replace("with Timer", """training_step("resnet18", parameters, 8, 0.1, 0.9)
with Timer""")

_CALL = _TIMER + """
import numpy as np
import symconv as sc, symconv.tensor as T
a, b = T.vectors("a", "b")
f = sc.compile([a, b], a * 2 + b)
x = np.ones(4, sc.config.floatX)
for _ in range(1000):
    f(x, x)
with Timer() as timer:
    for _ in range(10000):
        f(x, x)
print(json.dumps([timer.wall / 10000, timer.cpu / 10000]))
"""


@dataclass(frozen=True)
class Quantity:
    """Something measured: a program that prints [wall, CPU] seconds; `cold` empties the kernel cache before each run."""

    name: str
    program: str
    goal: float | None = None
    cold: bool = False


QUANTITIES = (
    Quantity("import symconv", _IMPORT, 0.4),
    Quantity("compile the demo's training function, empty cache", _TRAIN, 8.0, cold=True),
    Quantity("the same, kernels in the cache", _TRAIN, 0.5),
    Quantity("plan it for another batch size (49)", _NEW_BATCH.replace("BATCH", "49")),
    Quantity("one call of a*2 + b on 4 floats", _CALL),
    Quantity("compile ResNet-18's training function, batch 8, empty cache", _RESNET.replace("BATCH", "8"), 60.0, cold=True),
    Quantity("the same, kernels in the cache", _RESNET.replace("BATCH", "8"), 2.0),
    Quantity("then compile it for batch 6, only batch 8 in the cache", _RESNET_OTHER_BATCH.replace("BATCH", "6"), cold=True),
)


def measure(quantity: Quantity, repeats: int, cache: Path) -> tuple[list[tuple[float, float]], int]:
    """Wall and CPU seconds of each repeat, and how many kernels the cache holds after a run that began with an empty one.

    The first run, which fills the disk cache, is not counted unless the run is cold.
    """
    rows, kernels = [], 0
    for number in range(repeats + (not quantity.cold)):
        with tempfile.TemporaryDirectory() as empty:
            folder = empty if quantity.cold else str(cache)
            environment = {**os.environ, "SYMCONV_CACHE_DIR": folder, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}"}
            done = subprocess.run([sys.executable, "-c", quantity.program], env=environment, capture_output=True, text=True,
                                  timeout=300, check=False)
            if quantity.cold:
                kernels = len(list(Path(folder).rglob("*.so")))
        if done.returncode:
            raise SystemExit(f"{quantity.name} failed:\n{done.stderr}")
        if number or quantity.cold:
            wall, cpu = json.loads(done.stdout.splitlines()[-1])
            rows.append((wall, cpu))
    return rows, kernels


def shown(seconds: float) -> str:
    """A time with three digits in a unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError


def main() -> None:
    """Measure all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="processes for each row (default 5)")
    parser.add_argument("--json", type=Path, help="write the single measurements here too")
    options = parser.parse_args()
    results = {}
    width = max(len(quantity.name) for quantity in QUANTITIES)
    print(f"{'':{width}} {'median':>9} {'range':>19} {'CPU':>9} {'goal':>8}")
    with tempfile.TemporaryDirectory() as cache:
        for quantity in QUANTITIES:
            rows, kernels = measure(quantity, options.repeats, Path(cache))
            walls, cpus = zip(*rows, strict=True)
            middle = statistics.median(walls)
            goal = "" if quantity.goal is None else f"≤ {quantity.goal} s" + ("" if middle <= quantity.goal else "  MISSED")
            goal += f"  {kernels} kernels in the cache" if kernels else ""
            print(f"{quantity.name:{width}} {shown(middle):>9} {shown(min(walls)) + ' … ' + shown(max(walls)):>19} "
                  f"{shown(statistics.median(cpus)):>9} {goal:>8}", flush=True)
            results[quantity.name] = {"wall": walls, "cpu": cpus, "goal": quantity.goal, "kernels": kernels}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"\n{os.cpu_count()} processors, load {load:.1f}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}, "
          f"Python {sys.version.split()[0]}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
