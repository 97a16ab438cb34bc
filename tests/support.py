"""Helpers of the tests."""
from __future__ import annotations

from symconv.runtime.interpret import evaluate

__all__ = ["evaluate"]
