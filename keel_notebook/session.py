"""Wires the parts of one kernel together."""
