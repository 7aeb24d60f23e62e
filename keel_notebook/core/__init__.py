"""Decides. Pure, standard library only: no clock, no I/O, no IPython."""
