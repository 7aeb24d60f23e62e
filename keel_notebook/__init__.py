"""Durable notebook cells."""
