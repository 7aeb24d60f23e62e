"""Remembers: segments, objects, heads, and the DuckDB file they are ingested into."""

from keel_notebook.journal.damage import troubles

__all__ = ["troubles"]
