"""Implementations of ops: generated C, how it is built, cached and run."""
