"""A store of finished runs for machines that share no folder, at any address that fsspec knows.

A run is one object, ``KEY[:2]/KEY.zip``. Where objects are written atomically, as in S3, it is
whole or missing. A partly written run has a wrong checksum and counts as missing.
"""

from __future__ import annotations

import io
import threading
import zipfile
from collections import defaultdict
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from bluewater.errors import InputError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from fsspec import AbstractFileSystem

T = TypeVar("T")

_PATIENCE: dict[str, dict[str, Any]] = {
    # s3fs tries five times, and botocore would try again within each.
    "s3": {
        "config_kwargs": {
            "connect_timeout": 5, "read_timeout": 10, "retries": {"total_max_attempts": 1},
        },
    },
}  # fmt: skip
"""Options that shorten the waiting of storage systems, which would otherwise last minutes."""

_LOCAL = ("file:", "local:")
"""Schemes that fsspec takes with a single slash; others would become a folder's name."""
_ANSWER_S = 60.0
"""Seconds without an answer after which a place is given up."""
_SLOWEST = 50_000
"""Bytes per second; a slower transfer is given up too."""


@dataclass(frozen=True)
class Share:
    """A shared store of runs at an address such as ``s3://bucket/folder``."""

    address: str

    def check(self) -> None:
        """Raises an :class:`InputError` if the address is unknown, or needs a missing package."""
        _ = self._place

    def held(self, keys: Iterable[str]) -> list[str]:
        """The keys of those of these runs that the place has."""
        files, root = self._place
        by_folder = defaultdict(list)
        for key in keys:
            by_folder[key[:2]].append(key)
        found = []
        with _told(self.address):
            files.invalidate_cache()
            for folder, own in by_folder.items():
                try:
                    there = _within(0, files.ls, f"{root}/{folder}", detail=False)
                except FileNotFoundError:
                    continue
                names = {path.rpartition("/")[2] for path in there}
                found += [key for key in own if f"{key}.zip" in names]
        return found

    def read(self, key: str) -> dict[str, bytes] | None:
        """The files of a run by name, or ``None`` if it is missing or damaged."""
        place, path = self._place[0], self._path(key)
        with _told(self.address):
            try:
                length = _within(0, place.size, path) or 0
                content = _within(length, place.cat_file, path)
            except FileNotFoundError:
                return None
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                files = {name: archive.read(name) for name in archive.namelist()}
        except Exception:
            return None  # zipfile and zlib have half a dozen exceptions for a damaged archive
        # Another writer of the archive must not choose paths on this machine.
        return None if any("/" in name or name.startswith(".") for name in files) else files

    def write(self, key: str, files: Mapping[str, bytes]) -> None:
        """Writes a run, replacing whatever the place has of it."""
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name, each in files.items():
                archive.writestr(name, each)
        place, path = self._place[0], self._path(key)
        whole = content.getvalue()
        with _told(self.address):
            _within(0, place.makedirs, path.rpartition("/")[0], exist_ok=True)
            _within(len(whole), place.pipe_file, path, whole)

    def _path(self, key: str) -> str:
        return f"{self._place[1]}/{key[:2]}/{key}.zip"

    @cached_property
    def _place(self) -> tuple[AbstractFileSystem, str]:
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - not always there
            from fsspec.utils import get_protocol as protocol  # noqa: PLC0415
        except ImportError as error:
            raise InputError(
                "fsspec is not installed", key="share", hint="pip install 'bluewater[share]'"
            ) from error
        first = self.address.partition("/")[0]
        if first.endswith(":") and "://" not in self.address and first not in _LOCAL:
            raise InputError(
                "neither an address nor a folder on this machine",
                key="share",
                value=self.address,
                allowed="an address that fsspec knows, such as s3://bucket/folder",
                hint=f"'{first}' is followed by two slashes",
            )
        try:
            files, root = url_to_fs(self.address, **_PATIENCE.get(protocol(self.address), {}))
        except (ImportError, ValueError) as error:
            raise InputError(
                f"not a place for runs: {error}",
                key="share",
                value=self.address,
                allowed="an address that fsspec knows, such as s3://bucket/folder",
            ) from error
        except Exception as error:  # some storage systems connect here
            raise _unreachable(self.address, error) from error
        return files, root.rstrip("/")


def _within(length: int, ask: Callable[..., T], *arguments: Any, **more: Any) -> T:
    """Calls a storage system with a time limit that grows with the bytes to transfer.

    Storage systems retry failures, some at two levels that multiply. None bounds the whole: an
    answer of a few bytes at a time would never end.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask(*arguments, **more))
        except BaseException as error:
            answer.set_exception(error)

    # No executor: at exit the program would wait for its threads.
    threading.Thread(target=run, daemon=True).start()
    seconds = _ANSWER_S + length / _SLOWEST
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():
            raise
        raise TimeoutError(f"no complete answer within {seconds:.0f} s") from None


@contextmanager
def _told(address: str) -> Iterator[Any]:
    """Turns every storage system's own errors into one kind."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> StorageError:
    return StorageError(
        f"cannot reach the shared runs: {type(error).__name__}: {error}",
        file=address,
        hint="finished runs are kept on this machine; the same command continues",
    )
