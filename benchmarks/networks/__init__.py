"""The networks that the benchmarks run, written once in words that symconv and each peer speak."""
