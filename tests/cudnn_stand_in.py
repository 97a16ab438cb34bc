"""cuDNN's place on the emulator: plans that hold nothing, run by NumPy on the tensors that the real one would get."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from symconv.codegen.cuda.kernel import CudnnLaunch
from symconv.codegen.cudnn.fusion import Fusion
from symconv.codegen.cudnn.padding import padding_forms
from symconv.codegen.cudnn.plan_list import Asked
from symconv.codegen.cudnn.plans import CudnnPlan, PlanRefusedError
from symconv.codegen.cudnn.support import choose_layout
from symconv.ops import conv_reference
from symconv.ops.spec import Kind

Array = np.ndarray[Any, Any]


class NumPyCudnn:
    """`engines` are the plans of every problem in every padding form, best first, as (name, bytes of workspace).

    Those in `refused` are refused when they run; `missing` says why no plans can be made; `ran` has the engines that ran,
    `launches` their launches.
    """

    def __init__(self, *engines: tuple[str, int], refused: tuple[str, ...] = (), missing: str | None = None, forms: int = 3,
                 version: str = "") -> None:
        self.engines = engines or (("first", 0),)
        self.refused, self.missing, self.forms = set(refused), missing, forms
        self.version = version or f"stand-in {self.engines} {forms}"
        self.ran: list[str] = []
        self.launches: list[CudnnLaunch] = []

    def why_not(self, runs_here: bool) -> str | None:
        """What the test says."""
        return self.missing

    def plans(self, asked: Asked) -> Iterator[CudnnPlan]:
        """One of each engine for each form."""
        layout = choose_layout(asked.problem, asked.gpu, asked.fusion)
        found = False
        for form in padding_forms(asked.problem)[:self.forms]:
            for engine, workspace in self.engines:
                if workspace <= asked.requirements.workspace_bytes:
                    found = True
                    yield CudnnPlan(str(asked.problem), str(asked.gpu), layout.layout, layout.reason, form.name, engine, workspace,
                                    (), b"nothing")
        if not found:
            raise PlanRefusedError("every plan wants too much workspace")

    def execute(self, launch: CudnnLaunch, tensors: tuple[Array, ...]) -> None:
        """By the references of the convolution, in float64, rounded once."""
        engine = launch.plan.engine
        if engine in self.refused:
            raise PlanRefusedError(f"{engine} does not run on this machine")
        self.ran.append(engine)
        self.launches.append(launch)
        result, first, second, *operands = tensors
        problem = launch.problem
        wide = first.astype(np.float64), second.astype(np.float64)
        if problem.kind is Kind.FPROP:
            found = conv_reference.fprop(*wide, problem.spec)
        else:
            run = conv_reference.dgrad if problem.kind is Kind.DGRAD else conv_reference.wgrad
            found = run(*wide, problem.result_shape, problem.spec)
        with np.errstate(all="ignore"):
            result[...] = chained(launch.fusion, found, [each.astype(np.float64) for each in operands])


def chained(fusion: Fusion, value: Array, operands: list[Array]) -> Array:
    """The steps of a chain, as `fusion.py` describes them."""
    for step in fusion.steps:
        other = operands[step.operand] if step.operand is not None else np.zeros(())
        value = {
            "bias": lambda v, o: v + o, "residual": lambda v, o: v + o, "scale": lambda v, o: v * o, "gate": lambda v, o: v * o,
            "relu": lambda v, o: np.maximum(v, 0), "sigmoid": lambda v, o: 1 / (1 + np.exp(-v)), "tanh": lambda v, o: np.tanh(v),
            "softplus": lambda v, o: np.logaddexp(0, v), "swish": lambda v, o: v / (1 + np.exp(-v)),
            "relu_gradient": lambda v, o: np.where(o > 0, v, 0)}[step.name](value, other)
    return value
