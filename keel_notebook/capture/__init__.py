"""Watches the kernel: the cell, the names it reads and writes, what it shows."""
