"""Going on to the next plan, and choosing by measurement, on a device that refuses and times as it is told."""
from __future__ import annotations

import pytest

from symconv.codegen.cudnn.execution import PlanRefusedError, fastest, run
from symconv.codegen.cudnn.plans import CudnnPlan
from symconv.errors import BackendError


def plan(engine, workspace=0):
    return CudnnPlan("fprop n1 c1 w3 k1 s3 f32", "a GPU", "nchw", "", "as is", engine, workspace, (), b"")


class FakeDevice:
    """`seconds` of each engine; engines that are not in it are refused."""

    def __init__(self, **seconds):
        self.seconds, self.ran, self.allocated = seconds, [], []

    def allocate(self, nbytes):
        self.allocated.append(nbytes)
        return 256

    def time(self, plan, variant_pack, workspace):
        if plan.engine not in self.seconds:
            raise PlanRefusedError("not on this machine")
        return self.seconds[plan.engine]

    def execute(self, plan, variant_pack, workspace):
        self.time(plan, variant_pack, workspace)
        self.ran.append(plan.engine)


def test_a_refusal_moves_on_to_the_next_plan_once():
    device = FakeDevice(second=1.0, third=1.0)
    outcome = run([plan("first", 64), plan("second", 128), plan("third")], device, {})
    assert outcome.plan.engine == "second"
    assert outcome.refusals == ("first: not on this machine",)
    assert device.ran == ["second"]
    assert device.allocated == [64, 128]


def test_measuring_takes_the_fastest_that_runs():
    outcome = fastest([plan("slow"), plan("gone"), plan("quick")], FakeDevice(slow=2.0, quick=1.0), {})
    assert outcome.plan.engine == "quick"
    assert outcome.refusals == ("gone: not on this machine",)


@pytest.mark.parametrize("choose", [run, fastest])
def test_where_every_plan_is_refused_the_error_says_so(choose):
    with pytest.raises(BackendError, match="gone: not on this machine"):
        choose([plan("gone")], FakeDevice(), {})
