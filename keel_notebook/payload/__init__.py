"""Bytes to values and back, and the digests of values."""
