"""What users type: constructors, operators as functions, shapes, indexing; `nnet`, `signal.pool` and `random` beside.

    import symconv.tensor as T
"""
from __future__ import annotations

from ..graph import Constant as Constant
from ..graph import TensorType as TensorType
from ..graph import Variable as Variable
from ..ops.constants import as_variable as as_tensor_variable
from ..ops.constants import constant as constant
from ..ops.gradient_control import grad_clip as grad_clip
from ..ops.gradient_control import grad_scale as grad_scale
from ..ops.gradient_control import zero_grad as zero_grad
from ..ops.stop_gradient import disconnected_grad as disconnected_grad
from . import nnet as nnet
from . import random as random
from . import signal as signal
from .constructors import *
from .math import *
from .shaping import *
