"""``bluewater`` and ``python -m bluewater``.

The gateway's own commands are handed over before anything else is loaded.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper

from bluewater import handover

_INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ends."""


def main() -> None:
    """Runs the command line."""
    _print_anywhere()
    try:
        handover.try_to(sys.argv[1:])
        from bluewater.cli import main as whole  # noqa: PLC0415
    except KeyboardInterrupt:  # while it is loaded, which takes a second
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    whole()


def _print_anywhere() -> None:
    """Lets a terminal that is not UTF-8 show question marks for what it lacks, without an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="replace")


if __name__ == "__main__":
    main()
