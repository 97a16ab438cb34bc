"""The demonstration: a small convolutional net learns to read handwritten digits. `python -m symconv demo`."""
