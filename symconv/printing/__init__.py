"""Looking inside: expressions, compiled functions and programs as text, mathematics, drawings and graphs."""
from .mathematics import pprint
from .tree import debugprint

__all__ = ["debugprint", "pprint"]
