"""``python -m keel_notebook``: the command line where the script ``keel`` is not on the path."""

from keel_notebook.front.cli import main

main()
