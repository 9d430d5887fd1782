"""How files of other programs' formats are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bluewater.files import writing

if TYPE_CHECKING:
    from pathlib import Path


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file, and its folder if it is not there.

    Raises:
        StorageError: It cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
