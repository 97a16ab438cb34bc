"""How well the estimates choose: every implementation that takes a problem, timed in turns, beside what the estimates prefer.

    python benchmarks/conv_choice.py [--threads 1] [--seconds 0.5] [--problems FILE] [--kinds fprop,dgrad] [--only NAMES]

A line for each problem and kind: how much longer the chosen one takes than the fastest (`loss`), and for each implementation
its best measured milliseconds, the estimated ones, and their ratio, from which the constants of the estimates are set.  `*` marks
the choice, `<` the fastest.  Packing and transforming of weights is left out of both, as where they do not change.  The processor's
time is taken with one thread, which other work on the machine disturbs least.
"""
from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from conv_kernels import kernel_call, kernel_problem

from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.ops.conv_problem import ConvProblem, parse_problems
from symconv.ops.spec import Kind
from symconv.runtime.targets import make_target
from symconv.target import Target

LAYERS = Path(__file__).parents[1] / "tests" / "problems" / "cpu_layers.txt"


def best_times(calls: dict[str, Callable[[], Any]], seconds: float, clock: Callable[[], float]) -> dict[str, float]:
    """The least time of each call; they take turns for `seconds` each on average, three times at least."""
    best = dict.fromkeys(calls, float("inf"))
    end, rounds = time.perf_counter() + seconds * len(calls), 0
    while time.perf_counter() < end or rounds < 3:
        rounds += 1
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best


def judge(conv: ConvProblem, target: Target, options: argparse.Namespace) -> float | None:
    """Print a problem's line; how much longer the choice takes than the fastest, None where there is no choice."""
    problem, arrays = kernel_problem(conv)
    taken = [each for each in CONV_IMPLEMENTATIONS if each.serves(problem.op) and each.refuse(problem, target) is None
             and (not options.only or each.name in options.only.split(","))]
    if len(taken) < 2:
        return None
    estimates = {each.name: each.estimate(problem, target) for each in taken}
    clock = time.process_time if options.threads == 1 else time.perf_counter
    best = best_times({each.name: kernel_call(each, problem, arrays, target, still=True) for each in taken}, options.seconds, clock)
    chosen, fastest = min(estimates, key=estimates.__getitem__), min(best, key=best.__getitem__)
    cells = [f"{'*' if name == chosen else ' '}{'<' if name == fastest else ' '}{name} {best[name] * 1e3:.3f} "
             f"est {estimates[name] * 1e3:.3f} ({estimates[name] / best[name]:.2f})" for name in best]
    loss = best[chosen] / best[fastest] - 1
    print(f"{conv!s:52} loss {loss:5.0%}", "  ".join(cells), flush=True)
    return loss


def main() -> None:
    """Read the command line, time, print."""
    parser = argparse.ArgumentParser(description="Compare the estimates' choice of convolution kernels with the fastest ones.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each implementation is repeated")
    parser.add_argument("--problems", type=Path, default=LAYERS, help="a file of problem lines")
    parser.add_argument("--kinds", default=",".join(kind.value for kind in Kind), help="which of fprop,dgrad,wgrad")
    parser.add_argument("--only", default="", help="names of implementations, instead of all")
    options = parser.parse_args()
    losses = []
    forward = dict.fromkeys(replace(conv, kind=Kind.FPROP) for conv in parse_problems(options.problems.read_text()))
    for conv in forward:
        for kind in options.kinds.split(","):
            losses.append(judge(replace(conv, kind=Kind(kind)), replace(make_target("cpu"), threads=options.threads), options))
    found = [loss for loss in losses if loss is not None]
    print(f"{len(found)} problems with a choice; {sum(loss > 0.1 for loss in found)} lose more than 10 %, "
          f"at most {max(found, default=0):.0%}")


if __name__ == "__main__":
    main()
