"""``bluewater`` and ``python -m bluewater``.

What is the gateway's own is handed over before anything else is loaded.
"""

from __future__ import annotations

import sys

from bluewater import handover

_INTERRUPTED = 130
"""As of a command that Ctrl-C ends later."""


def main() -> None:
    """Runs the command line."""
    try:
        handover.try_to(sys.argv[1:])
        from bluewater.cli import main as whole  # noqa: PLC0415
    except KeyboardInterrupt:  # while it is loaded, which takes a second
        print("interrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    whole()


if __name__ == "__main__":
    main()
