"""Parts of the comparison with other libraries on the CPU; `benchmarks/cpu.py` is the program."""
