from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path

import pytest
from conftest import SWEEP, TINY, Cli
from fsspec.implementations.local import LocalFileSystem

import bluewater
from bluewater.errors import DamagedWarning, InputError, StorageError
from bluewater.lab import Sweep
from bluewater.results.share import Share

SWEPT = TINY + '\n[sweep]\n"queue.0.aqm" = ["droptail", "blue"]'


def swept(out: Path, share: str = "", on: str = "here") -> Sweep:
    return bluewater.sweep(SWEPT, jobs=1, on=on, share=share, out=out, progress=False)


def finished(found: Sweep) -> list[tuple[str, float]]:
    """Which making of each run this is."""
    return [(run.decision_hash, run.summary["wall_s"]) for _, run in found.results()]


def objects(share: Path) -> list[Path]:
    return sorted(share.glob("??/*.zip"))


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "bucket" / "runs"


def test_a_run_is_made_once_for_all_who_share_it(tmp_path: Path, there: Path) -> None:
    first = swept(tmp_path / "a", there.as_uri())
    assert len(objects(there)) == 2
    assert finished(swept(tmp_path / "b", there.as_uri())) == finished(first)
    assert finished(swept(tmp_path / "c")) != finished(first)


def test_what_was_made_before_is_shared(tmp_path: Path, there: Path) -> None:
    first = swept(tmp_path / "a")
    assert not there.exists()
    swept(tmp_path / "a", there.as_uri())
    assert finished(swept(tmp_path / "b", there.as_uri())) == finished(first)


def test_a_single_run_is_shared_as_those_of_a_sweep(tmp_path: Path, there: Path) -> None:
    first = bluewater.run(TINY, out=tmp_path / "a", share=there.as_uri())
    assert len(objects(there)) == 1
    again = bluewater.run(TINY, out=tmp_path / "b", share=there.as_uri())
    assert again.summary["wall_s"] == first.summary["wall_s"], "it was not made again"
    with pytest.raises(InputError, match="also kept in a folder"):
        bluewater.run(TINY, share=there.as_uri())


@pytest.mark.slow
def test_workers_of_a_cluster_share_what_they_make(tmp_path: Path, there: Path) -> None:
    first = swept(tmp_path / "a", there.as_uri(), on="dask")
    assert not first.failures
    assert finished(swept(tmp_path / "b", there.as_uri())) == finished(first)


@pytest.mark.parametrize("how", ["cut", "flipped", "elsewhere"])
def test_what_is_damaged_there_is_made_again_and_replaced(
    tmp_path: Path, there: Path, how: str
) -> None:
    swept(tmp_path / "a", there.as_uri())
    whole = {path: path.read_bytes() for path in objects(there)}
    for path, content in whole.items():
        if how == "cut":
            path.write_bytes(content[: len(content) // 2])
        elif how == "flipped":
            path.write_bytes(content[:200] + bytes([content[200] ^ 1]) + content[201:])
        else:
            evil = io.BytesIO()
            with zipfile.ZipFile(evil, "w") as archive:
                archive.writestr("../../../evil", "x")
            path.write_bytes(evil.getvalue())
    again = swept(tmp_path / "b", there.as_uri())
    assert not again.failures
    assert not list(tmp_path.rglob("evil"))
    for path in whole:
        files = Share(there.as_uri()).read(path.stem)
        assert files is not None
        assert json.loads(files["meta.json"])["key"] == path.stem


@pytest.mark.parametrize(
    ("place", "written"),
    [
        (4, b"\xff"),  # for a later zip
        (8, b"\x63"),  # packed in a way that nobody knows
        (8, b"\x08"),  # packed, which it is not
        (6, b"\x01"),  # encrypted
    ],
)
def test_what_no_zip_should_say_counts_as_not_there(
    tmp_path: Path, there: Path, place: int, written: bytes
) -> None:
    swept(tmp_path / "a", there.as_uri())
    path = objects(there)[0]
    content = bytearray(path.read_bytes())
    for head in (0, content.index(b"PK\1\2") + 2):
        content[head + place : head + place + 1] = written
    path.write_bytes(content)
    assert Share(there.as_uri()).read(path.stem) is None
    assert not swept(tmp_path / "b", there.as_uri()).failures
    assert Share(there.as_uri()).read(path.stem) is not None


def test_another_run_under_this_name_is_made_again(tmp_path: Path, there: Path) -> None:
    first = swept(tmp_path / "a", there.as_uri())
    one, other = objects(there)
    one.write_bytes(other.read_bytes())
    with pytest.warns(DamagedWarning, match="meta.json"):
        again = swept(tmp_path / "b", there.as_uri())
    hashes = [[run.decision_hash for _, run in sweep.results()] for sweep in (first, again)]
    assert hashes[0] == hashes[1]
    files = Share(there.as_uri()).read(one.stem)
    assert files is not None
    assert json.loads(files["meta.json"])["key"] == one.stem


def test_a_single_run_takes_no_other_from_there(tmp_path: Path, there: Path) -> None:
    first = bluewater.run(TINY, out=tmp_path / "a", share=there.as_uri())
    bluewater.run(TINY, seed=7, out=tmp_path / "a", share=there.as_uri())
    key = next(path.stem for path in objects(there) if _hash(path) == first.decision_hash)
    (other,) = (path for path in objects(there) if path.stem != key)
    (there / key[:2] / f"{key}.zip").write_bytes(other.read_bytes())
    with pytest.warns(DamagedWarning, match="meta.json"):
        again = bluewater.run(TINY, out=tmp_path / "b", share=there.as_uri())
    assert again.decision_hash == first.decision_hash


def _hash(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return str(json.loads(archive.read("meta.json"))["decision_hash"])


def test_an_answer_that_does_not_end_is_an_error(
    tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(tmp_path / "a", there.as_uri())
    monkeypatch.setattr("bluewater.results.share._ANSWER_S", 0.5)
    monkeypatch.setattr(LocalFileSystem, "cat_file", lambda *_: time.sleep(20))
    began = time.monotonic()
    with pytest.raises(StorageError, match="no complete answer") as raised:
        swept(tmp_path / "b", there.as_uri())
    assert time.monotonic() - began < 15
    assert raised.value.file == there.as_uri()


def test_what_is_there_is_told(tmp_path: Path, there: Path) -> None:
    swept(tmp_path / "a", there.as_uri())
    keys = [path.stem for path in objects(there)]
    share = Share(there.as_uri())
    assert sorted(share.held([*keys, "ab" * 16])) == keys
    assert share.read("ab" * 16) is None


def test_a_place_of_no_known_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a place for runs"):
        swept(tmp_path, "nowhere://x")


@pytest.mark.parametrize("address", ["s3:/bucket", "memory:", "s3:"])
def test_an_address_with_a_slash_short_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="neither an address nor a folder") as raised:
        swept(tmp_path / "out", address)
    assert raised.value.key == "share"
    assert not list(tmp_path.iterdir())
    swept(tmp_path / "out", f"file:{tmp_path / 'there'}")
    assert len(objects(tmp_path / "there")) == 2


def test_a_place_that_is_opened_first_and_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot reach the shared runs"):
        swept(tmp_path / "out", f"zip::{(tmp_path / 'none.zip').as_uri()}")


def test_a_place_that_cannot_be_reached(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot reach the shared runs"):
        swept(tmp_path, (tmp_path / "file").as_uri())


def test_an_address_is_no_folder(
    cli: Cli, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(SWEEP)
    for command in (["run", str(tiny)], ["sweep", str(sweep)], ["compare", "red"]):
        found = cli(*command, "--out", "s3://bucket/out", keep_out=False)
        assert found.exit_code == 2
        assert "--share" in found.stderr
    with pytest.raises(InputError, match="address"):
        bluewater.run(tiny, out="s3://bucket/out")
    with pytest.raises(InputError, match="address"):
        bluewater.load("s3://bucket/out/runs/00/00")
    assert not list(tmp_path.glob("s3*"))
