"""What users type: constructors, operators as functions, shapes, indexing; `nnet`, `signal.pool` and `random` beside.

    import symconv.tensor as T
"""
from __future__ import annotations

from ..graph import Constant, TensorType, Variable
from ..ops.constants import as_variable as as_tensor_variable
from ..ops.constants import constant
from ..ops.gradient_control import grad_clip, grad_scale, zero_grad
from ..ops.stop_gradient import disconnected_grad
from . import nnet, random, signal
from .constructors import (
    TYPED,
    col,
    matrices,
    matrix,
    row,
    scalar,
    scalars,
    tensor,
    tensor3,
    tensor3s,
    tensor4,
    tensor4s,
    tensor5,
    tensor6,
    tensor7,
    vector,
    vectors,
)
from .math import *
from .shaping import *

globals().update(TYPED)
