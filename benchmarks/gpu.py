"""Time symconv on a GPU beside PyTorch (cuDNN in benchmark mode, channels_last, torch.compile) and the ceilings of the same run.

    python benchmarks/gpu.py                                # everything; the report goes to benchmarks/results/DATE-NAME.md too
    python benchmarks/gpu.py --only layers,lenet --rounds 5
    python benchmarks/gpu.py --device emulator --tiny       # a trial of the program where there is no GPU

Every row's contenders are first compared with each other, then timed in interleaved turns in this one process; arguments and
results stay on the device.  The report is Markdown: medians, ratios (best peer's time / symconv's), geometric means beside goals.
"""
from __future__ import annotations

import argparse
import re
import sys
from datetime import date
from pathlib import Path

GROUPS = ("elementwise", "tensor", "depthwise", "lenet", "layers", "resnet")


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help='"cuda", "cuda:1", or "emulator" for a trial')
    parser.add_argument("--tiny", action="store_true", help="sizes that the emulator can run")
    parser.add_argument("--only", default=",".join(GROUPS), help=f"groups with commas between: {', '.join(GROUPS)}")
    parser.add_argument("--rows", default="", help="only rows whose name contains this text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--selection", default="measure", choices=("measure", "heuristic"), help="how symconv chooses kernels")
    parser.add_argument("--without", default="", help="contenders that are left out, with commas between (torch.compile, …)")
    parser.add_argument("--output", type=Path, help="write the report here; by default, on a GPU, into benchmarks/results")
    options = parser.parse_args()
    options.only = tuple(options.only.split(","))
    unknown = set(options.only) - set(GROUPS)
    if unknown or options.rounds < 1:
        parser.error(f"unknown groups {sorted(unknown)}" if unknown else "rounds is 1 or more")
    return options


def main() -> int:
    """Time what was asked for; the report goes to standard output and to a file."""
    options = parse()
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    from gpu_comparison.run import run

    report = run(options)
    print(report)
    path = options.output
    if path is None and options.device.startswith("cuda"):
        found = re.search(r"- device: (.*?) \(", report)
        name = re.sub(r"[^A-Za-z0-9]+", "-", found.group(1) if found else "gpu").strip("-")
        path = Path(__file__).parent / "results" / f"{date.today().isoformat()}-{name}.md"
    if path is not None:
        path.write_text(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
