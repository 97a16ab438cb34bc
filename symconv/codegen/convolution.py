"""The convolution implementations of the CPU; the selector takes the one with the smallest estimate that does not refuse."""
from __future__ import annotations

from ..graph import Op
from ..ops.convolution import Conv
from ..ops.lowered.conv_chain import ConvChain
from .conv_blocked import CONV_BLOCKED
from .conv_chain import ConvChainBlocked
from .conv_common import refuse_epilogue
from .conv_depthwise import DEPTHWISE
from .conv_direct import ConvDirect
from .conv_fft import CONV_FFT
from .conv_gemm import ConvGemm
from .conv_scatter import ConvScatter
from .conv_turned import ConvTurned
from .conv_wgrad import ConvWgrad
from .conv_wgrad_direct import ConvWgradDirect
from .conv_winograd import CONV_WINOGRAD
from .conv_winograd_wgrad import CONV_WINOGRAD_WGRAD
from .implementation import Implementation

__all__ = ["CONV_IMPLEMENTATIONS", "IMPLEMENTATIONS", "refuse_epilogue"]

CONV_IMPLEMENTATIONS = (ConvDirect(), ConvGemm(), ConvScatter(), ConvTurned(), *DEPTHWISE, *CONV_WINOGRAD, *CONV_FFT,
                        *CONV_WINOGRAD_WGRAD, ConvWgradDirect(), ConvWgrad(), *CONV_BLOCKED)
IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {Conv: CONV_IMPLEMENTATIONS, ConvChain: (ConvChainBlocked(),)}
