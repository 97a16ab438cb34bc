"""CUDA kernels as source text, compiled by NVRTC for a GPU and by the C compiler for the emulator (see README.md here)."""
