"""Scalar programs and whole kernels as CUDA text.

Programs are printed by the same printer as for the CPU; only the small functions behind the names differ: the elementary ones
are CUDA's, and what `symconv.cuh` defines (conversions of half floats) is left out.
"""
from __future__ import annotations

import re
from functools import lru_cache

from ..helpers import Pieces, cut, helpers_for, prelude
from ..rendered import kept_by_context
from ..scalar_printer import print_program as print_cuda_program
from ..templates import render
from .headers import DEVICE_HEADER, header

__all__ = ["print_cuda_program", "render_cuda"]
_ELEMENTARY = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf")
_INCLUDE = f'#include "{DEVICE_HEADER}"\n'
_BOUNDS = re.compile(r"__launch_bounds__\((\d+)\)")
_HEADER_NAMES = re.compile(r"\b(sc_\w+)\(")


@lru_cache(maxsize=1)
def _pieces() -> Pieces:
    """The helpers of CUDA kernels: CUDA's elementary functions, and those of the prelude that they or the header do not replace."""
    own = render("cuda/functions.cuh.j2", names=_ELEMENTARY)
    replaced = frozenset(cut(own).defined) | frozenset(_HEADER_NAMES.findall(header(DEVICE_HEADER)))
    return cut("\n\n".join([own, *cut(prelude(), replaced).texts]))


@kept_by_context
def render_cuda(template: str, /, **context: object) -> str:
    """The source of a kernel: a template of `templates/cuda/`, with the helpers that it uses behind its include.

    Kernels that do not say how many blocks a multiprocessor should hold say two: without a number the compiler takes fewer
    registers than there are, and spills, to hold more.
    """
    text = _BOUNDS.sub(_with_two_blocks, render(f"cuda/{template}", **context))
    helpers = helpers_for(text, _pieces())
    return text.replace(_INCLUDE, f"{_INCLUDE}\n{helpers}\n", 1) if helpers else text


def _with_two_blocks(bounds: re.Match[str]) -> str:
    threads = int(bounds.group(1))
    return f"__launch_bounds__({threads}, 2)" if threads <= 512 else bounds.group()
