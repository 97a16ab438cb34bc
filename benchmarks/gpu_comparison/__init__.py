"""symconv and PyTorch on one GPU, row by row; `benchmarks/gpu.py` runs it."""
