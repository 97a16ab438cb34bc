"""Rewrites: laws that make a captured graph smaller, faster or more exact and never change its answer."""
from .log import Log
from .pipeline import BOUND, FAST_COMPILE, PIPELINE, SYMBOLIC, rewrite_bound, rewrite_symbolic, rule_names

__all__ = ["BOUND", "FAST_COMPILE", "PIPELINE", "SYMBOLIC", "Log", "rewrite_bound", "rewrite_symbolic", "rule_names"]
