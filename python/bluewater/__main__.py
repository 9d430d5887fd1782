"""``bluewater`` and ``python -m bluewater``.

What is the gateway's own is handed over before anything else is loaded.
"""

from __future__ import annotations

import sys

from bluewater import handover


def main() -> None:
    """Runs the command line."""
    handover.try_to(sys.argv[1:])
    from bluewater.cli import main as whole  # noqa: PLC0415

    whole()


if __name__ == "__main__":
    main()
