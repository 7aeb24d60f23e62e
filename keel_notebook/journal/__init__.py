"""Remembers: segments, objects, heads, and the DuckDB file they are ingested into."""
