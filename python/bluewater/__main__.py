"""``python -m bluewater``."""

from bluewater.cli import main

main()
