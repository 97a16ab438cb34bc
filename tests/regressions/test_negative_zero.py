"""0.0 and -0.0 are two constants, also where programs and kernels are kept and found again."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.ops.scalar import Instruction


def test_instructions_differ_in_the_sign_of_zero():
    positive, negative = (Instruction("constant", (), "float32", value) for value in (0.0, -0.0))
    assert positive != negative
    assert len({positive, negative, Instruction("constant", (), "float32", -0.0)}) == 2


@pytest.mark.parametrize("order", [(0.0, -0.0), (-0.0, 0.0)])
def test_two_functions_keep_their_own_zero(order):
    x = T.dvector("x")
    for zero in order:
        f = sc.compile([x], T.where(x > 1, x * 3, zero))
        assert np.signbit(f([0.0])).tolist() == [np.signbit(zero)]
