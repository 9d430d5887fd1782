"""Rates of links over time: converting, generating, and fetching by checksum."""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bluewater import _core
from bluewater.errors import InputError, StorageError, unknown
from bluewater.files import parse_table, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

MODELS = ("cellular", "leo", "wifi", "fade", "shared")
FORMS = ("csv", "mahimahi")
MOST_BYTES = 1 << 30
TIMEOUT_S = 60


class Rates(NamedTuple):
    """A rate over time.

    Attributes:
        text: The rates in the requested format.
        mean_bps: Mean over a round, bit/s.
        length_s: Length of a round, s.
    """

    text: str
    mean_bps: float
    length_s: float


def convert(text: str, form: str, file: str | None = None) -> Rates:
    """Converts rates in CSV, TOML or mahimahi's lines to ``csv`` or ``mahimahi``.

    Raises:
        InputError: The text is in none of these formats, or the target format is unknown.
    """
    if form not in FORMS:
        raise unknown("form", form, FORMS)
    try:
        return Rates(*_core.convert_rates(text, form))
    except ValueError as error:
        raise InputError(str(error), file=file) from error


def make(model: str, *, mean: str, length: str, seed: int, form: str = "csv") -> Rates:
    """Generates rates by a model, identically on every machine."""
    if model not in MODELS:
        raise unknown("model", model, MODELS)
    try:
        made = _core.model_rates(model, mean, length, seed)
    except ValueError as error:
        raise InputError(str(error)) from error
    return convert(made, form)


def fetch(table: Path, name: str, folder: Path) -> Path:
    """Fetches the file whose ``url`` and ``sha256`` stand under ``[name]`` in a TOML file.

    An existing file with this checksum is not fetched again; a fetched file with another checksum
    is not kept.

    Raises:
        InputError: The table lacks the entry, the address does not answer, or the checksum differs.
        StorageError: The file cannot be written.
    """
    entry = _entry(table, name)
    url, expected = entry["url"], entry["sha256"].lower()
    path = folder / (Path(urllib.request.url2pathname(url.partition("?")[0])).name or name)
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == expected:
        return path
    digest, size = hashlib.sha256(), 0
    part = folder / f".{path.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file, urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
            while piece := answer.read(1 << 16):
                size += len(piece)
                if size > MOST_BYTES:
                    raise InputError(f"more than {MOST_BYTES} bytes", file=url)
                digest.update(piece)
                file.write(piece)
        if (found := digest.hexdigest()) != expected:
            raise InputError(
                f"{url} has another SHA-256 than the table: {found}",
                file=str(table),
                key=f"{name}.sha256",
                value=expected,
            )
        part.replace(path)
    except urllib.error.URLError as error:
        raise InputError(f"{url}: {error.reason}", file=str(table), key=f"{name}.url") from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)
    return path


def _entry(table: Path, name: str) -> Mapping[str, str]:
    entries = parse_table(read_text(table, hint=None), str(table))
    if name not in entries:
        raise unknown("trace", name, entries, file=str(table))
    entry = entries[name]
    for key, allowed in (("url", "https://…"), ("sha256", "64 hexadecimal digits")):
        value = entry.get(key) if isinstance(entry, dict) else None
        right = isinstance(value, str) and (
            value.startswith(("https://", "file://"))
            if key == "url"
            else len(value) == 64 and set(value.lower()) <= set("0123456789abcdef")
        )
        if not right:
            where = f"{name}.{key}"
            raise InputError(
                "not a value", file=str(table), key=where, value=value, allowed=allowed
            )
    return dict(entry)
