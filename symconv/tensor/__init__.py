"""What users type: constructors, operators as functions, shapes, indexing; `nnet`, `signal.pool` and `random` beside.

    import symconv.tensor as T
"""
from __future__ import annotations

from ..graph import Constant as Constant
from ..graph import TensorType as TensorType
from ..graph import Variable as Variable
from ..graph.gradient import Lop as Lop
from ..graph.gradient import Rop as Rop
from ..graph.gradient import grad as grad
from ..ops.constants import as_variable as as_tensor_variable
from ..ops.constants import constant as constant
from ..ops.gradient_control import grad_clip as grad_clip
from ..ops.gradient_control import grad_scale as grad_scale
from ..ops.gradient_control import zero_grad as zero_grad
from ..ops.jacobian import hessian as hessian
from ..ops.jacobian import jacobian as jacobian
from ..ops.specify_shape import specify_shape as specify_shape
from ..ops.stop_gradient import disconnected_grad as disconnected_grad
from . import nnet as nnet
from . import random as random
from . import shared_randomstreams as shared_randomstreams
from . import signal as signal
from .broadcast_patterns import *
from .constructors import *
from .math import *
from .shaping import *
