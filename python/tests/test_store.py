from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from conftest import TINY

import bluewater
from bluewater.errors import DamagedWarning, InputError, StorageError
from bluewater.results.result import SIMULATED, Result
from bluewater.results.store import Store, _here, read_result, run_key


@pytest.fixture(scope="module")
def result() -> Result:
    return bluewater.run(TINY + '\n[measure]\ninterval = "100ms"')


def test_what_is_written_is_read_again(tmp_path: Path, result: Result) -> None:
    store = Store(tmp_path)
    store.prepare()
    assert "ab12" not in store
    store.write("ab12", result)
    assert "ab12" in store
    again = store.read("ab12")
    assert again.decision_hash == result.decision_hash
    assert dict(again.summary) == dict(result.summary)
    for table in SIMULATED:
        assert getattr(again, table).equals(getattr(result, table))
    meta = json.loads((store.path("ab12") / "meta.json").read_text())
    assert meta["host"]["cores"] >= 1
    assert not list(tmp_path.glob(".tmp-*"))


def test_keys_tell_scenarios_and_versions_apart() -> None:
    keys = {run_key("a", "1"), run_key("b", "1"), run_key("a", "2"), run_key("a\0", "1")}
    assert len(keys) == 4
    assert all(len(key) == 32 for key in keys)


def test_full_disk_leaves_nothing(
    tmp_path: Path, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Result, folder: Path, key: str) -> None:
        folder.mkdir()
        (folder / "tables.json").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Result, "save", full)
    store = Store(tmp_path)
    with pytest.raises(StorageError, match="No space left") as raised:
        store.write("ab12", result)
    assert "--out" in str(raised.value.hint)
    assert "ab12" not in store
    assert not list(tmp_path.glob(".tmp-*"))


def test_leavings_of_the_dead_are_removed(tmp_path: Path) -> None:
    """Those of another machine, where numbers mean other processes, only when they are old."""
    here = _here()
    ours = tmp_path / f".tmp-{here}-{os.getpid()}-1"
    dead = tmp_path / f".tmp-{here}-999999999-1"
    theirs = tmp_path / ".tmp-000000000000-999999999-1"
    forgotten = tmp_path / ".tmp-000000000000-999999999-2"
    older = tmp_path / ".tmp-key-1"
    for folder in (ours, dead, theirs, forgotten, older):
        folder.mkdir()
    for folder in (forgotten, older):
        os.utime(folder, (0, 0))
    Store(tmp_path).prepare()
    assert sorted(tmp_path.iterdir()) == sorted([ours, theirs])


def test_an_entry_goes_from_one_store_into_another(tmp_path: Path, result: Result) -> None:
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    for store in (one, two):
        store.prepare()
    one.write("ab12", result)
    two.add("ab12", one.files("ab12"))
    assert two.read("ab12").series.equals(result.series)
    two.put_aside(["ab12"])
    assert "ab12" in two, "whole"
    two.add("ab12", {})
    assert two.read("ab12").decision_hash == result.decision_hash, "the first one stays"


def test_many_writers_of_one_entry(tmp_path: Path, result: Result) -> None:
    store = Store(tmp_path)
    store.prepare()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.write("ab12", result), range(32)))
    assert store.read("ab12").decision_hash == result.decision_hash
    assert not list(tmp_path.glob(".tmp-*"))


def test_two_writers_of_one_entry(tmp_path: Path, result: Result) -> None:
    store = Store(tmp_path)
    store.write("ab12", result)
    store.write("ab12", result)
    assert store.read("ab12").decision_hash == result.decision_hash


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not the folder of a run") as raised:
        read_result(tmp_path)
    assert "`bluewater run FILE` makes one" in str(raised.value.hint)


def test_a_folder_of_runs_names_one(tmp_path: Path, result: Result) -> None:
    store = Store(tmp_path / "runs")
    store.write("ab12", result)
    with pytest.raises(InputError, match="not the folder of a run") as raised:
        read_result(tmp_path)
    assert raised.value.hint == f"it holds 1, such as {store.path('ab12')}"


def test_a_store_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        Store(tmp_path / "file" / "runs").prepare()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("meta.json", b'"utilisation": 0.', b'"utilisation": 1.'),
        ("scenario.toml", b"seed = 1", b"seed = 2"),
        ("tables.json", b'"arrivals": [', b'"arrivals": [1'),
        ("series.parquet", b"PAR1", b"PAR2"),
    ],
)
def test_what_was_changed_is_put_aside(tmp_path: Path, name: str, old: bytes, new: bytes) -> None:
    """By a byte, so that most can still be read: another figure, or a mark of Parquet."""
    store = Store(tmp_path)
    store.prepare()
    store.write("ab12", bluewater.run(TINY + '\n[measure]\ninterval = "2ms"'))
    path = store.path("ab12") / name
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    with pytest.raises(InputError, match="damaged: the file changed after it was written"):
        list(store.read("ab12").tables())
    with pytest.warns(DamagedWarning, match=name):
        store.put_aside(["ab12"])
    assert "ab12" not in store


def test_the_folder_of_another_run_is_put_aside(tmp_path: Path, result: Result) -> None:
    store = Store(tmp_path)
    store.prepare()
    store.write("ab12", result)
    store.path("ab12").rename(store.path("ab99"))
    with pytest.raises(InputError, match="it is the run ab12"):
        store.read("ab99")
    assert read_result(store.path("ab99")).summary == dict(result.summary), "as a folder it is good"
    with pytest.warns(DamagedWarning, match=r"meta\.json"):
        store.put_aside(["ab99"])
    assert "ab99" not in store


def test_runs_of_earlier_formats_are_read(tmp_path: Path, result: Result) -> None:
    result.save(tmp_path)
    for name in result.names:
        result.load(name).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "tables.json").unlink()
    meta = json.loads((tmp_path / "meta.json").read_text())
    summary = meta.pop("summary")
    assert summary == dict(result.summary)
    pl.DataFrame([summary]).write_parquet(tmp_path / "summary.parquet")
    del meta["digest"], meta["tables"]
    names = ["scenario.toml", *(f"{name}.parquet" for name in result.names)]
    meta["files"] = {name: (tmp_path / name).stat().st_size for name in names}
    for old in ({"format": 1}, {"format": 2, "summary": summary}):
        (tmp_path / "meta.json").write_text(json.dumps({**meta, **old}))
        again = read_result(tmp_path)
        assert again.summary == summary
        assert again.series.equals(result.series)
