"""What a GPU of each architecture does at most: nominal numbers, for estimates on machines without one.

Estimates only compare kernels of one problem; what a GPU really does is measured there.  Each row is one common GPU of its
architecture; another of the same family differs by about the same factor in all columns.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...target import Ceilings, Rates

LAUNCH_SECONDS = 2.5e-6  # between the ends of two short kernels of one CUDA graph
_LANES = 8  # float32 in the vectors of a default target


@dataclass(frozen=True, slots=True)
class GpuRates:
    """A GPU: multiprocessors, shared memory of one in KiB, operations a second by dtype, bytes a second, where the numbers stand.

    `tensor` are dense products on tensor cores with float32 sums (float32: as tf32), `mma` the part of it that `mma.sync` reaches.
    """

    name: str
    multiprocessors: int
    shared_kib: int
    block_shared_kib: int
    float32: float
    float64: float
    tensor_half: float
    tensor_tf32: float
    mma: float
    memory: float
    source: str

    def core_flops(self, dtype: str) -> float:
        """Operations a second of CUDA cores whose sums are of a dtype."""
        return self.float64 if dtype == "float64" else self.float32

    def tensor_flops(self, dtype: str) -> float:
        """Operations a second of tensor cores through `mma.sync`."""
        return self.mma * (self.tensor_tf32 if dtype == "float32" else self.tensor_half)


# mma.sync on sm_90: 62.9 % of what wgmma does (arXiv:2402.13499, section on tensor cores).  On sm_100, where tcgen05 took its
# place, nothing is published: the absolute rate of sm_90 is assumed.  Elsewhere it is the full rate; 0.9 is for what loops leave.
_RATES = {
    75: GpuRates("T4", 40, 64, 64, 8.1e12, 0.25e12, 65e12, 8.1e12, 0.9, 0.30e12, "NVIDIA T4 data sheet"),
    80: GpuRates("A100 80GB SXM", 108, 164, 163, 19.5e12, 9.7e12, 312e12, 156e12, 0.9, 2.04e12, "NVIDIA A100 data sheet"),
    86: GpuRates("RTX 3090", 82, 100, 99, 35.6e12, 0.56e12, 71e12, 35.6e12, 0.9, 0.94e12, "NVIDIA GA102 white paper"),
    89: GpuRates("RTX 4090", 128, 100, 99, 82.6e12, 1.29e12, 165e12, 82.6e12, 0.9, 1.01e12, "NVIDIA Ada white paper"),
    90: GpuRates("H200 SXM", 132, 228, 227, 67e12, 34e12, 989e12, 494e12, 0.6, 4.8e12, "NVIDIA H200 data sheet"),
    100: GpuRates("B200", 148, 228, 227, 75e12, 37e12, 2250e12, 1125e12, 0.28, 7.7e12, "NVIDIA Blackwell data sheet (HGX B200)"),
    120: GpuRates("RTX 5090", 170, 100, 99, 104.8e12, 1.64e12, 209.5e12, 104.8e12, 0.9, 1.79e12,
                  "NVIDIA RTX Blackwell white paper"),
}


def gpu_rates(arch: int) -> GpuRates:
    """The rates of the newest architecture in the table that is not newer than `arch`.

    >>> gpu_rates(90).name, gpu_rates(103).name
    ('H200 SXM', 'B200')
    """
    return _RATES[max((each for each in _RATES if each <= arch), default=min(_RATES))]


def gpu_ceilings(arch: int) -> Ceilings:
    """The same as a target's ceilings: copies at the memory's rate, products at that of CUDA cores in float32.

    >>> round(gpu_ceilings(90).one.memory / 1e12, 1)
    4.8
    """
    rates = gpu_rates(arch)
    team = Rates(rates.float32 / (2 * _LANES), rates.memory, rates.memory, rates.memory)
    return Ceilings(team, team, reason=f"nominal rates of a {rates.name} for sm_{arch} ({rates.source})")
