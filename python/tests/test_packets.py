"""A file of packets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import tomli_w

import bluewater
from bluewater import InputError, Packets
from bluewater.results import packets, writer

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli


def scenario(aqm: str, **params: Any) -> dict[str, Any]:
    return {
        "duration": "8s",
        "network": {"preset": "dumbbell", "rate": "10mbit", "delay": "10ms"},
        "queue": [{"aqm": aqm, "buffer": "40p", "params": params}],
        "traffic": [
            {"transport": "sack", "flows": 10, "start": "0s..1s", "ecn": True},
            {"transport": "cbr", "rate": "2mbit"},
        ],
    }


@pytest.mark.parametrize("aqm", ["red", "blue", "codel", "fq-codel"])
def test_a_file_holds_every_packet_and_the_run_is_the_same(tmp_path: Path, aqm: str) -> None:
    plain = bluewater.run(scenario(aqm))
    file = tmp_path / "deep" / "all.parquet"
    made = bluewater.run(scenario(aqm), packets=file)
    assert made.decision_hash == plain.decision_hash
    rows, facts = packets.open_(file)
    found = rows.collect()
    assert facts.decision_hash == plain.decision_hash
    assert found["n"].to_list() == list(range(plain.summary["arrivals"]))
    fates = dict(found["fate"].value_counts().iter_rows())
    assert fates.get("dropped", 0) == plain.summary["drops"]
    assert fates["sent"] == plain.summary["departures"]
    marked = found.filter(pl.col("marked") != "")
    assert marked.height == plain.summary["marks"]
    sent = found.filter(pl.col("fate") == "sent")
    assert sent["delay_s"].mean() == pytest.approx(plain.summary["delay_mean_s"], rel=1e-9)
    assert [path.name for path in file.parent.iterdir()] == ["all.parquet"]


def test_parts_make_one_file_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    bluewater.run(scenario("red"), packets=whole)
    monkeypatch.setattr(writer, "_PART", 500)
    bluewater.run(scenario("red"), packets=parts)
    assert pl.read_parquet(parts).equals(pl.read_parquet(whole))


def test_a_selection_and_none_at_all(tmp_path: Path) -> None:
    file = tmp_path / "some.parquet"
    bluewater.run(scenario("red"), packets=Packets(file, flows="0-2,10", time="2s..3s", every=5))
    found = pl.read_parquet(file)
    assert found.height > 20
    assert set(found["flow"]) <= {0, 1, 2, 10}
    assert (found["n"] % 5 == 0).all()
    assert found["arrived_ns"].is_between(2 * 10**9, 3 * 10**9).all()
    with pytest.raises(InputError, match="no such flow"):
        bluewater.run(scenario("red"), packets=Packets(file, flows="4000000000"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"flows": "a-b"}, "not flows"),
        ({"flows": "5000000000"}, "not flows"),
        ({"time": "3s"}, "not a span"),
        ({"time": "3s..1s"}, "ends before"),
        ({"time": "1s..1s"}, "ends before"),
        ({"flows": "7-3"}, "ends before"),
        ({"time": "x..1s"}, "not a duration"),
        ({"every": 0}, "not a count"),
    ],
)
def test_a_silly_selection_is_refused_before_the_run(
    tmp_path: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        bluewater.run(scenario("red"), packets=Packets(tmp_path / "x.parquet", **options))
    assert not list(tmp_path.iterdir())


def test_the_command_line(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "my.toml"
    file.write_text(tomli_w.dumps(scenario("red")))
    target = tmp_path / "my.parquet"
    made = cli("run", str(file), "--packets", str(target), "--packets-time", "1s..4s")
    assert made.exit_code == 0, made.stderr
    told = cli("why", str(target), "--which", "marked", keep_out=False)
    assert told.exit_code == 0, told.stderr
    assert "the random draw is" in told.stdout
    row = json.loads(cli("why", str(target), "--which", "marked", "--json", keep_out=False).stdout)
    assert row["marked"] == "early"
    assert f"packet {row['n']} " in told.stdout
    again = cli("why", str(target), str(row["n"]), keep_out=False)
    assert again.stdout == told.stdout
    for arguments, problem in [
        (["why", str(file), "1"], "not a file of packets"),
        (["why", str(target), "1", "--queue", "B->A"], "no packets of this queue"),
        (["run", str(file), "--packets-every", "3"], "no file is named"),
    ]:
        refused = cli(*arguments, keep_out=arguments[0] == "run")
        assert refused.exit_code != 0
        assert problem in refused.stderr
        assert "Traceback" not in refused.stderr
