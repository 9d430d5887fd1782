from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from conftest import Cli

from bluewater import rates
from bluewater.errors import InputError


def test_mahimahi_comes_back(cli: Cli, tmp_path: Path) -> None:
    lines = "".join(f"{ms}\n" for ms in (1, 1, 2, 5, 5, 5, 9))
    (tmp_path / "x.mahi").write_text(lines)
    assert (
        cli(
            "trace", "link", str(tmp_path / "x.mahi"), str(tmp_path / "x.csv"), keep_out=False
        ).exit_code
        == 0
    )
    head, *rows = (tmp_path / "x.csv").read_text().splitlines()
    assert head == "time_s,rate_bps"
    assert rows[0] == "0.000000000,24000000"
    done = cli("trace", "link", str(tmp_path / "x.csv"), str(tmp_path / "y.mahi"), keep_out=False)
    assert "9.333 Mb/s in the mean of 0.009 s" in done.stderr
    assert (tmp_path / "y.mahi").read_text() == lines


@pytest.mark.parametrize("model", rates.MODELS)
def test_a_model_has_its_mean_and_is_the_same_again(model: str) -> None:
    one = rates.make(model, mean="8mbit", length="30s", seed=3)
    assert one.mean_bps == pytest.approx(8e6, rel=0.01)
    assert one.length_s == 30
    assert rates.make(model, mean="8mbit", length="30s", seed=3) == one
    opportunities = rates.convert(one.text, "mahimahi").text.split()
    assert len(opportunities) == pytest.approx(8e6 * 30 / 12_000, rel=0.01)
    assert opportunities[-1] == "30000"


def test_what_is_no_rate_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("time_s,rate_mbps\n0,1\n0,2\n")
    done = cli("trace", "link", str(tmp_path / "x.csv"), str(tmp_path / "y.csv"), keep_out=False)
    assert done.exit_code == 2
    assert "times must ascend" in done.stderr
    assert not (tmp_path / "y.csv").exists()
    with pytest.raises(InputError, match="unknown model"):
        rates.make("celular", mean="8mbit", length="30s", seed=3)


def test_only_the_file_that_is_meant_is_kept(cli: Cli, tmp_path: Path) -> None:
    there = tmp_path / "there" / "x.mahi"
    there.parent.mkdir()
    there.write_text("1\n2\n")
    table = tmp_path / "traces.toml"
    good = hashlib.sha256(there.read_bytes()).hexdigest()
    table.write_text(
        f'[good]\nurl = "{there.as_uri()}"\nsha256 = "{good}"\n'
        f'[bad]\nurl = "{there.as_uri()}"\nsha256 = "{"0" * 64}"\n'
        f'[gone]\nurl = "{there.as_uri()}.gone"\nsha256 = "{good}"\n'
        f'[wild]\nurl = "http://x/y"\nsha256 = "{good}"\n'
    )
    into = tmp_path / "here"
    done = cli("trace", "fetch", str(table), "bad", "--into", str(into), keep_out=False)
    assert done.exit_code == 2
    assert good in done.stderr
    assert list(into.iterdir()) == []
    assert (
        cli("trace", "fetch", str(table), "good", "--into", str(into), keep_out=False).exit_code
        == 0
    )
    assert [path.name for path in into.iterdir()] == ["x.mahi"]
    there.unlink()
    assert rates.fetch(table, "good", into) == into / "x.mahi", "it is there already"
    for name, words in (("gone", "No such file"), ("wild", "https://"), ("god", "did you mean")):
        done = cli("trace", "fetch", str(table), name, "--into", str(into), keep_out=False)
        assert done.exit_code == 2
        assert words in done.stderr
