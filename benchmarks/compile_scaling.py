"""How compiling grows with the graph: a residual net with batch normalisation, gradients and momentum, 38 and 164 layers deep.

    python benchmarks/compile_scaling.py [--layers 38 164] [--batch 8]

For each depth, each in a new process: the expression built with its gradients, `compile`, and the program for one batch
made, first with an empty kernel cache and then with the full one.  Prints wall-clock and CPU seconds (own and of the C
compilers), the ratio of the deepest to the shallowest beside the ratio of their layers, and warm beside cold.
"""
from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
WIDTHS = (16, 32, 64)


class ResidualNet:
    """He et al.'s residual net for 32 × 32 images (6n + 2 layers), with its state and running statistics."""

    def __init__(self, layers: int) -> None:
        import symconv as sc
        import symconv.tensor as T
        from symconv.tensor import nnet

        self.parameters: list[Any] = []
        self.statistics: list[tuple[Any, Any]] = []
        self.images, self.labels = T.tensor4("images", shape=(None, 3, 32, 32)), T.lvector("labels")
        h, channels = nnet.relu(self._normalised(self.images, 3, WIDTHS[0], 1)), WIDTHS[0]
        for width in WIDTHS:
            for number in range((layers - 2) // 6):
                stride = 2 if number == 0 and width != WIDTHS[0] else 1
                y = nnet.relu(self._normalised(h, channels, width, stride))
                y = self._normalised(y, width, width, 1)
                h = nnet.relu(y + (h if channels == width else self._normalised(h, channels, width, stride)))
                channels = width
        scores = T.dot(h.mean(axis=(2, 3)), self._parameter(np.zeros((channels, 10))))
        self.loss = nnet.softmax_cross_entropy(scores, self.labels).mean()
        self.updates = self.statistics + self._momentum(sc.grad(self.loss, self.parameters))

    def _parameter(self, value: np.ndarray[Any, Any]) -> Any:
        import symconv as sc

        made = sc.shared(value.astype("float32"), f"p{len(self.parameters)}", shape=value.shape)
        self.parameters.append(made)
        return made

    def _normalised(self, x: Any, channels: int, width: int, stride: int) -> Any:
        import symconv as sc
        from symconv.tensor import nnet

        weights = self._parameter(np.full((width, channels, 3, 3), 0.01))
        y = nnet.conv2d(x, weights, border_mode=(1, 1), subsample=(stride, stride))
        gamma, beta = self._parameter(np.ones(width)), self._parameter(np.zeros(width))
        mean, variance = (sc.shared(np.full(width, value, "float32"), shape=(width,)) for value in (0, 1))
        out, _, _, new_mean, new_variance = nnet.batch_normalization_train(y, gamma, beta, axes="spatial", running_mean=mean,
                                                                          running_var=variance)
        self.statistics += [(mean, new_mean), (variance, new_variance)]
        return out

    def _momentum(self, gradients: list[Any]) -> list[tuple[Any, Any]]:
        import symconv as sc

        updates = []
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            velocity = sc.shared(np.zeros_like(parameter.get_value()), shape=parameter.static_shape)
            step = 0.9 * velocity - 0.01 * gradient
            updates += [(velocity, step), (parameter, parameter + step)]
        return updates


def cpu_seconds() -> tuple[float, float]:
    """CPU seconds of this process, and of its finished children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return tuple(usage.ru_utime + usage.ru_stime for usage in both)  # type: ignore[return-value]


def one_run(layers: int, batch: int) -> dict[str, float]:
    """Compile once in this process; wall-clock and CPU seconds of the parts, and counts."""
    import symconv as sc

    wall, (own, children) = time.perf_counter(), cpu_seconds()
    net = ResidualNet(layers)
    built = time.perf_counter()
    function = sc.compile([net.images, net.labels], net.loss, updates=net.updates, name="train")
    compiled = time.perf_counter()
    function.prepare((batch, 3, 32, 32), (batch,))
    end, (own_end, children_end) = time.perf_counter(), cpu_seconds()
    return {"build and grad": built - wall, "compile": compiled - built, "program": end - compiled, "wall": end - wall,
            "cpu": own_end - own, "compilers": children_end - children, "nodes": len(function.graph.nodes),
            "steps": len(function.programs[0].steps)}


def in_new_process(layers: int, batch: int, cache: str) -> dict[str, float]:
    """`one_run` in a process of its own with this kernel cache."""
    environment = {**os.environ, "SYMCONV_CACHE_DIR": cache, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "--one", str(layers), "--batch", str(batch)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure each depth cold and warm, print the table and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, nargs="+", default=[38, 164], help="depths, shallowest first (default 38 164)")
    parser.add_argument("--batch", type=int, default=8, help="images in the batch that a program is made for (default 8)")
    parser.add_argument("--one", type=int, help="one depth in this process; print it as JSON")
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(one_run(options.one, options.batch)))
        return
    names = ("build and grad", "compile", "program", "wall", "cpu", "compilers")
    print(f"{'layers':>6} {'cache':>6} {'nodes':>6} {'steps':>6}" + "".join(f"{name:>15}" for name in names))
    rows: dict[tuple[int, str], dict[str, float]] = {}
    for layers in options.layers:
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "warm"):
                row = rows[layers, state] = in_new_process(layers, options.batch, cache)
                print(f"{layers:6} {state:>6} {row['nodes']:6.0f} {row['steps']:6.0f}"
                      + "".join(f"{row[name]:13.2f} s" for name in names), flush=True)
    first, last = options.layers[0], options.layers[-1]
    for state in ("cold", "warm"):
        wall, cpu = (rows[last, state][name] / rows[first, state][name] for name in ("wall", "cpu"))
        print(f"{state}: {last} layers / {first} layers = {wall:.2f} (wall), {cpu:.2f} (own CPU), layers {last / first:.2f}")
    print(f"{last} layers: warm / cold = {rows[last, 'warm']['wall'] / rows[last, 'cold']['wall']:.2f} (wall)")


if __name__ == "__main__":
    main()
