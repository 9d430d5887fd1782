"""Runs shared by S3, of which a server is put up here."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
import s3fs
from moto.s3.models import S3Backend
from moto.server import ThreadedMotoServer
from test_share import finished, swept

from bluewater.errors import StorageError
from bluewater.results import share

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address; who asks here, and workers who are started here, ask it."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    yield settings["AWS_ENDPOINT_URL"]
    s3fs.S3FileSystem.clear_instance_cache()
    moto.stop()


@pytest.mark.usefixtures("server")
def test_who_asks_second_makes_nothing(tmp_path: Path) -> None:
    first = swept(tmp_path / "a", "s3://bucket/runs")
    assert not first.failures
    there = s3fs.S3FileSystem(skip_instance_cache=True).find("bucket/runs")
    keys = {entry.key for entry in first.tables.entries}
    assert {path.rpartition("/")[2] for path in there} == {f"{key}.zip" for key in keys}
    assert finished(swept(tmp_path / "b", "s3://bucket/runs")) == finished(first)
    assert finished(swept(tmp_path / "c")) != finished(first)


@pytest.mark.usefixtures("server")
def test_a_wrong_key_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swept(tmp_path / "a", "s3://bucket/runs")
    monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0.0)  # keys are looked at
    with pytest.raises(StorageError, match="cannot reach the shared runs") as raised:
        swept(tmp_path / "b", "s3://bucket/runs")
    assert raised.value.file == "s3://bucket/runs"
    assert "Access" in str(raised.value)


@pytest.mark.slow
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("listens", [False, True])
def test_who_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    """Nobody at the address, or somebody who takes a question and says nothing."""
    monkeypatch.setitem(share._PATIENCE["s3"]["config_kwargs"], "read_timeout", 1)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        if listens:
            mute.listen()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{mute.getsockname()[1]}")
        began = time.monotonic()
        with pytest.raises(StorageError, match="cannot reach the shared runs") as raised:
            swept(tmp_path / "a", "s3://bucket/runs")
    assert raised.value.file == "s3://bucket/runs"
    assert time.monotonic() - began < 45


@pytest.mark.usefixtures("server")
def test_who_lists_and_sends_no_object_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by as many tries as s3fs and botocore have together, each with its own patience."""
    swept(tmp_path / "a", "s3://bucket/runs")
    over = threading.Event()
    monkeypatch.setattr(S3Backend, "get_object", lambda *_, **__: over.wait(60))
    monkeypatch.setattr(share, "_ANSWER_S", 1.0)
    began = time.monotonic()
    with pytest.raises(StorageError, match="no complete answer within 1 s") as raised:
        swept(tmp_path / "b", "s3://bucket/runs")
    over.set()
    assert raised.value.file == "s3://bucket/runs"
    assert time.monotonic() - began < 30, "one try after another takes more than a minute"
