"""Large kernels by fast Fourier transforms of overlapping tiles (overlap-save; Mathieu et al. 2014): all three kinds."""
from __future__ import annotations

from ..target import Target
from .conv_common import FilterGradient, PixelConvolution, conv_kernel, conv_name, conv_source
from .conv_fft_plan import PRODUCT_SHARE, FftParts, fft_parts, refuse_fft, transform_cycles, work_of
from .fft_plan import half_spectrum, make_transform
from .gemm_tile import START_SECONDS, compute_seconds, cycle_seconds
from .kernel import Kernel, Operand, Preparation, Problem
from .winograd_plan import make_turn


class ConvFft(PixelConvolution):
    """FPROP and DGRAD: tiles of the image and the filters are transformed, multiplied by frequency, and transformed back."""

    name = "conv_fft"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only large kernels along one or two axes, no stride, no dilation, and groups of several channels."""
        return super().refuse(problem, target) or refuse_fft(problem, target)

    def estimate(self, problem: Problem, target: Target) -> float:
        """Transforms and products, each tile counted whole."""
        parts = fft_parts(problem, target)
        plan, tile = parts.plan, parts.tile
        weights = parts.geometry.groups * plan.weight_elements * tile.itemsize
        passes = -(-plan.tiles // plan.chunk_tiles)
        return _seconds(parts, target) + target.copy_seconds(passes * weights, parts.threads, passes * weights)

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The spectra of the filters."""
        parts = fft_parts(problem, target)
        geometry, tile = parts.geometry, parts.tile
        name = _name(parts, problem)
        kernel = Kernel(f"{name}_weights", _render("conv_fft.c.j2", name, parts, problem), _numbers(parts),
                        workspace_bytes=parts.scratch_bytes)
        filters = geometry.groups * -(-geometry.rows // tile.lanes) * -(-geometry.channels // 2)
        seconds = cycle_seconds(filters * transform_cycles(parts.plan), target, parts.threads)
        return (Preparation(1, kernel, Operand.contiguous(tile.dtype, (geometry.groups * parts.plan.weight_elements,)), seconds),)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the spectra of a chunk of tiles, their products, and each thread's scratch."""
        parts = fft_parts(problem, target)
        elements = parts.plan.data_elements + parts.plan.product_elements
        name = _name(parts, problem)
        return conv_kernel(problem, name, _render("conv_fft.c.j2", name, parts, problem), _numbers(parts),
                           elements * parts.tile.itemsize + parts.scratch_bytes)


class ConvWgradFft(FilterGradient):
    """WGRAD: tiles of the image and of the responses are transformed, multiplied, and added up before they are transformed back."""

    name = "conv_wgrad_fft"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """As for the other kinds."""
        return super().refuse(problem, target) or refuse_fft(problem, target)

    def estimate(self, problem: Problem, target: Target) -> float:
        """Transforms of tiles and of the sums, and products."""
        parts = fft_parts(problem, target)
        geometry, tile = parts.geometry, parts.tile
        pairs = geometry.groups * -(-geometry.rows // tile.lanes) * -(-geometry.channels // 2)
        return _seconds(parts, target) + cycle_seconds(pairs * transform_cycles(parts.plan), target, parts.threads)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; its workspace holds the spectra of a chunk of tiles, the sums, and each thread's scratch."""
        parts = fft_parts(problem, target)
        plan, tile, geometry = parts.plan, parts.tile, parts.geometry
        panels = -(-geometry.rows // tile.lanes) * tile.columns
        responses, sums = 2 * plan.points * plan.chunk_tiles * panels, plan.points * geometry.channels * panels
        name, numbers = _name(parts, problem), (*parts.numbers, plan.data_elements, responses, sums)
        return conv_kernel(problem, name, _render("conv_fft_wgrad.c.j2", name, parts, problem), numbers,
                           (plan.data_elements + responses + sums) * tile.itemsize + parts.scratch_bytes)


def _seconds(parts: FftParts, target: Target) -> float:
    """Expected seconds of the transforms of all tiles and of the products."""
    cycles, products = work_of(parts.geometry, parts.plan, parts.tile)
    return (3 * START_SECONDS + compute_seconds(2 * products, parts.tile.dtype, target, PRODUCT_SHARE)
            + cycle_seconds(cycles, target, parts.threads))


def _name(parts: FftParts, problem: Problem) -> str:
    return conv_name(problem, f"fft_{parts.plan.down}x{parts.plan.across}_{parts.tile.suffix}")


def _numbers(parts: FftParts) -> tuple[int, ...]:
    return (*parts.numbers, parts.plan.weight_elements, parts.plan.data_elements, parts.plan.product_elements)


def _render(template: str, name: str, parts: FftParts, problem: Problem) -> str:
    plan = parts.plan
    return conv_source(template, name, problem, parts.tile, down=plan.down, across=plan.across, pitch=plan.pitch,
                       turn=make_turn(parts.tile.lanes),
                       transforms=tuple(make_transform(size) for size in sorted({plan.down, plan.across} - {1})),
                       spectrum=half_spectrum(plan.down, plan.across, plan.pitch))


CONV_FFT = (ConvFft(), ConvWgradFft())
