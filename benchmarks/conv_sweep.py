"""Check every convolution setting of the sweep against plain loops, on the references or on compiled functions.

    python benchmarks/conv_sweep.py --path reference
    python benchmarks/conv_sweep.py --path compiled --rank 2 --sample 500 --seed 3
    python benchmarks/conv_sweep.py --path reference --part 1/8

There are about 91,000 settings of each rank, 5 to 10 ms each on the references.

Prints each failure and a last line with the number of settings checked; the exit status is 1 where one failed.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from convolution_sweep import check, sample, settings


def compiled(outputs, bindings):  # type: ignore[no-untyped-def]
    """Values of the outputs by one compiled function."""
    import symconv as sc

    return sc.compile(list(bindings), outputs)(*bindings.values())


def reference(outputs, bindings):  # type: ignore[no-untyped-def]
    """Values of the outputs by the NumPy references."""
    from symconv.runtime.interpret import evaluate

    return evaluate(outputs, bindings)


def main() -> int:
    """Run the sweep; 1 where a setting failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", choices=["reference", "compiled"], default="reference")
    parser.add_argument("--rank", type=int, choices=[1, 2, 3], action="append", help="repeatable; all by default")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--sample", type=int, default=0, help="settings of each rank; 0: all")
    parser.add_argument("--part", default="1/1", help="i/n: every n-th setting, from the i-th on")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    path = {"reference": reference, "compiled": compiled}[options.path]
    checked = failed = 0
    for rank in options.rank or (1, 2, 3):
        chosen = sample(rank, options.sample, options.seed) if options.sample else list(settings(rank, options.seed))
        part, parts = map(int, options.part.split("/"))
        chosen = chosen[part - 1::parts]
        for number, setting in enumerate(tqdm(chosen, desc=f"rank {rank}", mininterval=2)):
            checked += 1
            try:
                check(setting, path, options.dtype, static=bool(number % 2), seed=number)
            except AssertionError as error:
                failed += 1
                print(error, flush=True)
    print(f"{checked} settings, {failed} failed ({options.path}, {options.dtype})")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
