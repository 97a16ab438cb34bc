"""Looking inside: expressions, compiled functions and programs as text, mathematics, drawings and graphs."""
from .dot import to_dot
from .draw import draw
from .mathematics import pprint
from .networkx_graph import to_networkx
from .tree import debugprint

__all__ = ["debugprint", "draw", "pprint", "to_dot", "to_networkx"]
