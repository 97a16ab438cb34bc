"""Devices other than the CPU: memory, launches and recordings, behind one small interface."""
