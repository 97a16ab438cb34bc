"""`python -m symconv …`"""
from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

_OUTPUT_CLOSED = 141
"""The exit status where what reads our output has closed it (`… | head -1`): 128 and SIGPIPE's number, as shells have it."""

_OUTPUT_FAILED = 74
"""The exit status where it cannot be written to: EX_IOERR of sysexits.h."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the result is the exit status."""
    try:
        return _run(arguments)
    except BrokenPipeError:
        if not _output_is_closed():
            raise  # somebody else's pipe: a script's own
        # what is left in the buffer goes nowhere, or Python's exit would fail over it
        _write_nowhere()
        return _OUTPUT_CLOSED
    except OSError as error:
        if error.filename is not None or not _output_fails():
            raise
        _write_nowhere()
        print(f"symconv: the output cannot be written: {error.strerror}", file=sys.stderr)
        return _OUTPUT_FAILED


def _write_nowhere() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _output_fails() -> bool:
    """Whether standard output takes nothing more (a full disk behind it): what failed has left the buffer, so a line is tried."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        return True
    return False


def _run(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
    except SystemExit:  # help was printed, or what is wrong
        _flush_output()
        raise
    status: int = options.run(options)
    _flush_output()  # here and not when Python ends, which would tell of a closed pipe
    return status


def _flush_output() -> None:
    if sys.stdout is not None:  # None: there is no standard output
        sys.stdout.flush()


def _output_is_closed() -> bool:
    """Whether nobody reads standard output any more (where the system cannot be asked, it is taken to be so)."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _at_least_one(text: str) -> int:
    number = int(text) if text.strip().lstrip("+-").isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is needed, this is {text!r}")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("symconv", description="a symbolic expression compiler with convolution at its centre")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="train a small convolutional net on handwritten digits")
    demo.add_argument("--epochs", type=_at_least_one, default=15, help="times that every digit is seen (default 15)")
    demo.add_argument("--seed", type=int, default=0, help="seed of the weights and of the order (default 0)")
    demo.add_argument("--output", type=Path, default=Path("."), help="folder of the two pictures (default: here)")
    demo.add_argument("--require", type=float, default=0.0, metavar="PERCENT",
                      help="exit with status 1 if the test accuracy is below this")
    demo.set_defaults(run=_demo)
    config = commands.add_parser("config", help="show every setting, its value and its environment variable")
    config.set_defaults(run=_config)
    doctor = commands.add_parser("doctor", help="what this machine has for symconv, what is missing, and what brings it")
    doctor.set_defaults(run=_doctor)
    cache = commands.add_parser("cache", help="look at, check or clear the kernel cache")
    cache.add_argument("action", choices=("list", "stats", "clear", "verify"))
    cache.set_defaults(run=_cache)
    bisect = commands.add_parser("bisect", help="find the rewrite that makes a script fail (an assert, say)")
    bisect.add_argument("script", help="a Python script that exits with a status other than 0 when its answer is wrong")
    bisect.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given").required = False
    bisect.set_defaults(run=_bisect)
    bench = commands.add_parser("bench", help="time every implementation of one convolution")
    bench.add_argument("problem", help='as explain() prints it: "fprop n8 c64 h56 w56 k64 r3 s3 p1 f32 +bias+relu"')
    bench.add_argument("--device", default="cpu", help="cpu (default), cuda, cuda:1 or emulator")
    bench.add_argument("--training", action="store_true", help="count what is made of the weights: they change with every call")
    bench.set_defaults(run=_bench)
    show = commands.add_parser("show", help="show a graph or compiled function of a file as a page, a drawing or text")
    show.add_argument("graph", metavar="FILE.py:NAME", help="a variable, a compiled function, or a function that gives one")
    show.add_argument("--html", type=Path, metavar="OUT.html", help="write a page")
    show.add_argument("--svg", type=Path, metavar="OUT.svg", help="write a drawing")
    show.add_argument("--text", action="store_true", help="print the tree (done where nothing else is asked for)")
    show.set_defaults(run=_show)
    return parser


def _show(options: argparse.Namespace) -> int:
    from .errors import UserError
    from .printing.show import show

    try:
        print(*show(options.graph, options.html, options.svg, options.text), sep="\n")
    except UserError as error:
        print(error)
        return 2
    return 0


def _bench(options: argparse.Namespace) -> int:
    from .errors import BackendError, UserError
    from .printing.bench import bench

    try:
        print(bench(options.problem, options.device, options.training))
    except (UserError, BackendError) as error:
        print(error)
        return 2
    except MemoryError:
        print(f"there is no memory for the tensors of {options.problem}")
        return 2
    return 0


def _bisect(options: argparse.Namespace) -> int:
    from .errors import UserError
    from .runtime.bisect import bisect

    try:
        print(bisect(options.script, options.arguments))
    except UserError as error:
        print(error)
        return 2
    return 0


def _doctor(_: argparse.Namespace) -> int:
    from .runtime.doctor import main as doctor

    return doctor()


def _cache(options: argparse.Namespace) -> int:
    from .codegen.cache import current_cache
    from .codegen.cache_contents import broken_entries, cache_entries, cache_summary, clear_cache

    cache = current_cache()
    if options.action == "list":
        for entry in cache_entries(cache):
            print(f"{entry.nbytes:>10}  {entry.kind:9} {entry.path}")
    elif options.action == "stats":
        print(f"{cache.folder}: {cache_summary(cache)}")
    elif options.action == "clear":
        print(f"{cache.folder}: {clear_cache(cache)} entries removed")
    else:
        broken = broken_entries(cache)
        for entry in broken:
            print(f"broken (will be made anew when needed): {entry.path}")
        print(f"{cache.folder}: {len(broken)} broken of {sum(1 for _ in cache_entries(cache))} entries")
        return int(bool(broken))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from .demo.run import run_demo

    accuracy = run_demo(options.epochs, options.seed, options.output)
    return 0 if 100 * accuracy >= options.require else 1


def _config(_: argparse.Namespace) -> int:
    from .config import config

    print(config.describe())
    return 0
