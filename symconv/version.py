"""The version of symconv: part of the names of what it keeps on disk."""
from __future__ import annotations

VERSION = "0.1.0"
