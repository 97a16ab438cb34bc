"""Time symconv on the CPU beside PyTorch, JAX and ONNX Runtime, those that are installed.

    python benchmarks/cpu.py
    python benchmarks/cpu.py --only layers,lenet --rounds 15 --output benchmarks/results/NAME.md

Every row's contenders are first compared with each other (the same float32 results), then timed in interleaved turns in this one
process.  The report is Markdown: medians, ratios (best peer's time / symconv's), geometric means beside the goals.
"""
from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

GROUPS = ("layers", "gradients", "lenet", "resnet", "mobilenet", "elementwise", "peak", "memory", "busy")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups with commas between: {', '.join(GROUPS)}")
    parser.add_argument("--rows", default="", help="only rows whose name contains this text")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--without", default="", help="what is left out, with commas between: packages (torch, jax, "
                                                      "onnxruntime) or contenders (torch.compile, …)")
    parser.add_argument("--output", type=Path, help="write the report here too")
    options = parser.parse_args()
    options.only = tuple(options.only.split(","))
    unknown = set(options.only) - set(GROUPS)
    if unknown or options.rounds < 1 or options.threads < 1:
        parser.error(f"unknown groups {sorted(unknown)}" if unknown else "rounds and threads are 1 or more")
    return options


def use_threads(threads: int) -> None:
    """Let every library use so many threads: said before any of them is imported.

    The process is also bound to so many cores where it has more: XLA has no setting of its own.
    """
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def main() -> int:
    """Time what was asked for; the report goes to standard output and to the file."""
    options = parse()
    use_threads(options.threads)
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    from comparison.run import run

    report = run(options)
    print(report)
    if options.output is not None:
        options.output.write_text(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
