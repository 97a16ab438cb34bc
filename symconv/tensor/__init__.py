"""What users type: constructors, operators as functions, shapes, indexing; `nnet`, `signal.pool` and `random` beside.

    import symconv.tensor as T
"""
from __future__ import annotations

from typing import Any as _Any

from ..errors import explain_error as _explain_error
from ..graph import Constant as Constant
from ..graph import Constant as TensorConstant
from ..graph import TensorType as TensorType
from ..graph import Variable as TensorVariable
from ..graph import Variable as Variable
from ..graph.gradient import Lop as Lop
from ..graph.gradient import Rop as Rop
from ..graph.gradient import grad as grad
from ..ops.constants import as_variable as as_tensor
from ..ops.constants import as_variable as as_tensor_variable
from ..ops.constants import constant as constant
from ..ops.gradient_control import grad_clip as grad_clip
from ..ops.gradient_control import grad_scale as grad_scale
from ..ops.gradient_control import zero_grad as consider_constant
from ..ops.gradient_control import zero_grad as zero_grad
from ..ops.jacobian import hessian as hessian
from ..ops.jacobian import jacobian as jacobian
from ..ops.specify_shape import specify_shape as specify_shape
from ..ops.stop_gradient import disconnected_grad as disconnected_grad
from . import extra_ops as extra_ops
from . import nnet as nnet
from . import random as random
from . import shared_randomstreams as shared_randomstreams
from . import signal as signal
from .broadcast_patterns import *
from .constructors import *
from .extra_ops import *
from .grids import *
from .math import *
from .shaping import *

_BY_VALUES = "sizes are known before a program runs; T.where(mask, x, 0) keeps the shape, T.argsort and T.topk have a fixed size"
_NO_COMPLEX = "there are no complex numbers; keep real and imaginary parts apart"
_NO_ALGEBRA = "there is no linear algebra beyond products and norms (T.dot, T.batched_dot, T.norm, T.diag, T.trace, T.outer)"
_NO_GAMMA = "there is no such function; T.erf, T.exp and T.log are what comes near it"

# Names of Theano's that are not here, and what to write instead.
_ABSENT = {
    **dict.fromkeys(("nonzero", "nonzero_values", "flatnonzero", "unique", "compress", "Unique"), _BY_VALUES),
    **dict.fromkeys(("complex", "real", "imag", "conj", "angle", "cscalar", "zscalar", "cmatrix", "zmatrix", "cvector", "zvector"),
                    _NO_COMPLEX),
    **dict.fromkeys(("nlinalg", "slinalg", "blas", "svd", "det", "matrix_inverse"), _NO_ALGEBRA),
    **dict.fromkeys(("gamma", "gammaln", "psi", "erfcinv", "erfinv", "j0", "j1", "chi2sf"), _NO_GAMMA),
    "erfc": "1 - T.erf(x)",
    "arcsinh": "T.log(x + T.sqrt(x ** 2 + 1))",
    "arccosh": "T.log(x + T.sqrt(x ** 2 - 1))",
    "arctanh": "(T.log1p(x) - T.log1p(-x)) / 2",
    "choose": "T.stack(choices)[which, …] with an index for each axis, or T.switch",
    "largest": "T.maximum", "smallest": "T.minimum", "intdiv": "T.int_div",
    "bitwise_and": "T.and_", "bitwise_or": "T.or_", "bitwise_xor": "T.xor", "invert_": "T.invert",
    "tensor_copy": "leave it out: expressions are never changed",
    "transfer": "leave it out: a function's device is that of compile(…, device=…)",
    "scalar_from_tensor": "leave it out: a scalar is a tensor of rank 0",
    "tensor_from_scalar": "leave it out: a scalar is a tensor of rank 0",
    "TensorSharedVariable": "symconv.SharedVariable",
    "get_scalar_constant_value": "constant.data of a T.Constant",
    "verify_grad": "symconv.verify_grad", "Print": "symconv.Print", "config": "symconv.config",
    "raw_random": "T.random.RandomStream", "load": "numpy.load, and give the array to the function",
    "fft": "convolutions with large kernels run by Fourier transforms by themselves; there are no complex numbers",
    "searchsorted": "(edges.dimshuffle(0, 'x') < x).sum(axis=0) counts the edges below each element of a vector",
    "logspace": "10 ** T.linspace(start, stop, num)", "iround": 'T.round(x).astype("int64")',
    "lrow": 'T.row(dtype="int64")', "frow": 'T.row(dtype="float32")', "drow": 'T.row(dtype="float64")',
    "lcol": 'T.col(dtype="int64")', "fcol": 'T.col(dtype="float32")', "dcol": 'T.col(dtype="float64")'}


def __getattr__(name: str) -> _Any:
    raise AttributeError(_explain_error(f"module {__name__!r} has no attribute {name!r}", do=_ABSENT.get(name, "")))
