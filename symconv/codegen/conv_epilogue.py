"""A convolution's epilogue as C: over the sum of one element, or over whole vectors of channels."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from ..ops.convolution import Conv
from ..ops.epilogue import CHANNEL, Epilogue
from .gemm_tile import GemmTile
from .kernel import Problem
from .scalar_printer import PrintedProgram, load, print_program, storage_type
from .vector_printer import print_in_vectors


@dataclass(frozen=True, slots=True)
class EpilogueText:
    """An epilogue as C for conv_epilogue.c.j2: declarations, statements over `sum` for one element, and their value.

    `in_vectors`: all of it is over vectors of neighbouring channels instead (blocked_epilogue.c.j2 takes both).
    """

    result_type: str
    text: str
    before: tuple[str, ...]
    lines: tuple[str, ...]
    value: str
    first_buffer: int
    workspace_buffer: int
    in_vectors: bool = False


def make_epilogue(problem: Problem, tile: GemmTile) -> EpilogueText:
    """The C of the problem's epilogue; without one, sums are stored as they are."""
    op = cast(Conv, problem.op)
    before, names = _epilogue_operands(op.epilogue, load_type, lambda dtype, array, place: load(dtype, f"{array}[{place}]"))
    printed = PrintedProgram((), ("sum",)) if op.epilogue is None else print_program(op.epilogue.program, names)
    return _epilogue_text(problem, tile, before, printed, False)


def make_vector_epilogue(problem: Problem, tile: GemmTile) -> EpilogueText:
    """The same over vectors of channels where it has plain arithmetic and limits only; else as `make_epilogue` makes it."""
    op = cast(Conv, problem.op)
    before, names = _epilogue_operands(op.epilogue, lambda dtype: "vec", lambda dtype, array, place: f"LOAD({array} + {place})")
    printed = PrintedProgram((), ("sum",)) if op.epilogue is None else print_in_vectors(op.epilogue.program, names, tile.dtype)
    return make_epilogue(problem, tile) if printed is None else _epilogue_text(problem, tile, before, printed, True)


def _epilogue_operands(epilogue: Epilogue | None, type_of: Callable[[str], str],
                       read: Callable[[str, str, str], str]) -> tuple[tuple[str, ...], list[str]]:
    """Declarations for what an epilogue reads, and the C expressions of its inputs.

    `type_of` says in which C type a value of a dtype is held, `read` how one is read: dtype, array, place.
    """
    before, names = [], ["sum"]
    operands = () if epilogue is None else zip(epilogue.operands, epilogue.program.inputs[1:], strict=True)
    for number, (place, dtype) in enumerate(operands):
        c_type = storage_type(dtype)
        if place == CHANNEL:
            array = f"((const {c_type} *)operands[{number}])"
            before.append(f"const {type_of(dtype)} channel_{number} = {read(dtype, array, 'channel')};")
            names.append(f"channel_{number}")
        else:
            before.append(f"const {c_type} *restrict full_{number} = operands[{number}];")
            names.append(read(dtype, f"full_{number}", "place"))
    return tuple(before), names


def _epilogue_text(problem: Problem, tile: GemmTile, before: tuple[str, ...], printed: PrintedProgram,
                   in_vectors: bool) -> EpilogueText:
    op = cast(Conv, problem.op)
    lines = printed.lines if op.epilogue is None else printed.lines or ("(void)sum;",)
    return EpilogueText(tile.c_type, "" if op.epilogue is None else f", then {op.epilogue}", before, lines, printed.outputs[0],
                        1 + op.n_core_inputs, 1 + len(problem.inputs), in_vectors)


def load_type(dtype: str) -> str:
    """The C type of a value once it is loaded."""
    return "float" if dtype in ("float16", "bfloat16") else storage_type(dtype)


def epilogue_suffix(problem: Problem) -> str:
    """What a kernel's name says of its epilogue."""
    epilogue = cast(Conv, problem.op).epilogue
    if epilogue is None:
        return ""
    return "".join(f"_{word.replace(':', '_')}" for word in str(epilogue).split("+") if word)
