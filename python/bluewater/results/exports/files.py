"""Writing files in other programs' formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.files import whole

if TYPE_CHECKING:
    from pathlib import Path


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file atomically, and makes its folder if needed.

    Raises:
        StorageError: It cannot be written.
    """
    with whole(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
