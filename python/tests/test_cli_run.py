from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import SWEEP, TINY, Cli

import bluewater
from bluewater import _core
from bluewater.results import why
from bluewater.results.result import SIMULATED
from bluewater.results.store import Store
from bluewater.study.execution import worker
from bluewater.study.execution.task import Task
from bluewater.study.scenarios.scenario import Scenario
from bluewater.text import milliseconds, percent, rate

if TYPE_CHECKING:
    from collections.abc import Callable


def test_run_json_has_summary_queues_flows_and_hash(cli: Cli, tiny: Path) -> None:
    found = json.loads(cli("run", str(tiny), "--json").stdout)
    assert found["summary"]["aqm"] == "red"
    assert len(found["queues"]) == 1
    assert len(found["flows"]) == 20
    assert found["decision_hash"] == bluewater.run(tiny).decision_hash
    (kept,) = (cli.out / "runs").glob("*/*")
    assert json.loads((kept / "meta.json").read_text())["summary"]["aqm"] == "red"


def test_run_shows_transfers(cli: Cli, tmp_path: Path) -> None:
    finite = 'transport = "sack"\napp = "finite"\nsize = "3kB"'
    text = TINY.replace('transport = "sack"', finite).replace("0s..1s", "1s..1500ms")
    file = tmp_path / "finite.toml"
    file.write_text(text)
    assert "flows: flows" in " ".join(cli("run", str(file)).stdout.split())
    (row,) = json.loads(cli("run", str(file), "--json").stdout)["transfers"]
    assert row["kind"] == "flow"
    assert 0 < row["completed"] <= row["began"]


def test_run_shows_delays_by_group(cli: Cli, tiny: Path) -> None:
    assert "one-way" not in cli("run", str(tiny)).stdout
    asked = ("run", str(tiny), "--set", "measure.delays=true")
    shown = cli(*asked).stdout
    rows = json.loads(cli(*asked, "--json").stdout)["delays"]
    assert [row["kind"] for row in rows] == ["queueing", "one-way", "round-trip"]
    for row in rows:
        line = next(each for each in shown.splitlines() if f"flows: {row['kind']}" in each)
        assert milliseconds(row["delay_p50_s"]) in line
    queueing, one_way, round_trip = (row["delay_mean_s"] for row in rows)
    assert queueing < one_way < round_trip


WIFI = """
duration = "2s"
link = [
    { from = "net", to = "ap", rate = "1gbit", delay = "5ms" },
    { from = "ap", to = "home", rate = "100mbit", delay = "0s", duplex = false, wifi = {
        driver = 64, station = [{ peer = "1", rate = "6mbit" }] } },
    { from = "home", to = "ap", rate = "100mbit", delay = "0s", duplex = false },
]
traffic = [
    { transport = "cubic", from = ["net"], to = ["home"], peer = 1 },
    { transport = "cubic", from = ["net"], to = ["home"], peer = 2 },
]
[[queue]]
link = "ap->home"
aqm = "fq-codel"
buffer = "1000p"
"""


def test_stations_and_what_the_driver_holds_are_shown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wifi.toml").write_text(WIFI)
    packets = tmp_path / "packets.parquet"
    shown = cli("run", str(tmp_path / "wifi.toml"), "--packets", str(packets)).stdout
    rows = {
        row["station"]: row for row in bluewater.run(tmp_path / "wifi.toml").stations.to_dicts()
    }
    assert set(rows) == {"1", "others"}
    for name, row in rows.items():
        line = next(each for each in shown.splitlines() if each.split()[:2] == ["station", name])
        assert f"airtime {percent(row['airtime_share'])}" in line
        assert f"{rate(row['throughput_bps'])} at {rate(row['rate_bps'])}" in line
    told = why.tell(*why.find(packets, at_s=1.5))
    assert re.search(r"the driver holds \d\d packets, \d+ of them for its station", told), told


def test_of_many_queues_those_with_the_longest_delay_are_shown(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "fabric.toml"
    file.write_text(
        """
        duration = "2ms"
        network = { preset = "fat-tree", rate = "1gbit" }
        queue = [{ aqm = "droptail", buffer = "100p" }]
        traffic = [{ transport = "cubic", from = ["h0", "h2"], to = ["h1"], flows = 4 }]
        """
    )
    done = cli("run", str(file))
    shown = " ".join(done.stdout.split())
    result = bluewater.run(file)
    assert result.queues.height == 80
    longest = result.queues.sort("delay_p99_s", descending=True)["queue"].to_list()
    assert "queues 3 of 80, by queueing delay (p99)" in shown
    assert sum(f"{name} (droptail)" in shown for name in longest) == 3
    assert f"{longest[0]} (droptail)" in shown
    idle = (result.queues["arrivals"] == 0).sum()
    assert f"nothing arrived at {idle} of 80 queues" in " ".join(done.stderr.split())


def test_groups_of_one_name_are_all_shown(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    file.write_text(
        """
        duration = "2s"
        measure = { delays = true }
        [network]
        preset = "dumbbell"
        bottlenecks = 3
        cross = 1
        [[queue]]
        aqm = "droptail"
        buffer = "50p"
        [[traffic]]
        name = "cross"
        transport = "cbr"
        rate = "4mbit"
        from = ["s*.0"]
        to = ["d*.0"]
        """
    )
    assert cli("run", str(file)).stdout.count("cross: one-way") == 3


def test_run_writes_its_tables_as_csv(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    cli("run", str(tiny), "--csv", str(folder))
    names = {file.name for file in folder.iterdir()}
    assert names == {f"{name}.csv" for name in ("summary", *SIMULATED)}
    assert len((folder / "flows.csv").read_text().splitlines()) == 1 + 20
    (folder / "blocked").write_text("")
    assert cli("run", str(tiny), "--csv", str(folder / "blocked")).exit_code == 2


def test_run_sets_keys(cli: Cli, tiny: Path) -> None:
    found = cli("run", str(tiny), "--json", "--set", "queue.0.aqm=blue", "--set", "duration=3s",
                "--seed", "9")  # fmt: skip
    summary = json.loads(found.stdout)["summary"]
    assert (summary["aqm"], summary["duration_s"], summary["seed"]) == ("blue", 3.0, 9)


def test_dry_run_echoes_every_default_and_runs_nothing(cli: Cli, tiny: Path) -> None:
    found = cli("run", str(tiny), "--dry-run")
    assert "w_q = " in found.stdout
    assert not cli.out.exists()
    echoed = tiny.with_name("again.toml")
    echoed.write_text(found.stdout)
    assert cli("run", str(echoed), "--dry-run").stdout == found.stdout


def test_a_buffer_too_small_for_any_packet_is_said(cli: Cli, tiny: Path) -> None:
    found = cli("run", str(tiny), "--set", "queue.0.buffer=30B")
    told = " ".join(found.stderr.split())
    assert (
        "every packet that arrived at A->B was dropped: its buffer holds 30B, and a packet" in told
    )
    found = cli("run", str(tiny), "--set", "traffic.0.start=1999ms")
    assert "nothing arrived" in found.stderr
    found = cli("run", str(tiny), "--set", "traffic.0.start=1s..9s")
    assert (found.exit_code, "a range that ends by 2s" in found.stderr) == (2, True)


def test_run_names_thresholds_that_no_queue_reaches(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "high.toml"

    def said(buffer: str, params: str) -> str:
        text = TINY.replace('buffer = "100kB"', f'buffer = "{buffer}"\nparams = {{ {params} }}')
        file.write_text(text)
        return " ".join(cli("run", str(file)).stderr.split())

    both = 'min_th = "120p", max_th = "120001B"'
    assert "red at A->B never reaches min_th = 120p, max_th = 120001B" in said("100p", both)
    assert "its buffer holds 100p" in said("100p", both)
    assert "never reaches max_th = 120001B" in said("120p", both)
    assert "never reaches" not in said("200p", both)


def test_codel_knows_the_longest_packet_of_its_link(tmp_path: Path) -> None:
    def decisions(aqm: str, packet: str, **params: int) -> str:
        return bluewater.run(
            bluewater.Scenario(
                duration="4s",
                network={"preset": "dumbbell", "rate": "5mbit", "delay": "20ms"},
                queue=[{"aqm": aqm, "buffer": "1000p", "params": params}],
                traffic=[{"flows": 2, "transport": "sack", "packet": packet, "window": "1000p"}],
            )
        ).decision_hash

    for aqm in ("codel", "fq-codel", "cobalt", "cake"):
        assert decisions(aqm, "9000B") == decisions(aqm, "9000B", mtu=9000)
        assert decisions(aqm, "9000B") != decisions(aqm, "9000B", mtu=1514)
        assert decisions(aqm, "1000B") == decisions(aqm, "1000B", mtu=1514)


def test_a_sweep_given_to_run_is_told_where_it_belongs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP)
    found = cli("run", str(path))
    assert found.exit_code == 2
    assert "bluewater sweep" in found.stderr


WRONG = """duration = "2s"
# A comment, which a text that is written anew has not.
[network]
preset = "dumbbell"

[[queue]]
aqm = "red"
{0}

[[traffic]]
transport = "sack"
"""


def test_errors_name_lines_of_the_file_also_with_set(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG.format('buffer = "50x"'))
    for settings in ([], ["--set", "network.rate=5mbit"], ["--seed", "3"]):
        done = cli("run", str(file), *settings)
        assert done.exit_code == 2
        assert f"{file}:8: queue[0].buffer" in done.stderr, done.stderr


def test_an_error_of_a_setting_has_no_line_of_the_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "right.toml"
    file.write_text(WRONG.format('buffer = "50p"'))
    done = cli("run", str(file), "--set", "queue.0.aqm=rex")
    assert done.exit_code == 2
    assert f"{file}: queue[0].aqm" in done.stderr, done.stderr
    # One that the file has, too, but with another value.
    file.write_text(WRONG.format('buffer = "50x"'))
    done = cli("run", str(file), "--set", "queue.0.buffer=50y")
    assert f"{file}: queue[0].buffer" in done.stderr, done.stderr


def test_a_scenario_object_names_lines_only_of_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(WRONG.format('buffer = "50x"'))
    with pytest.raises(bluewater.ScenarioError) as raised:
        bluewater.Scenario.load(file)
    assert (raised.value.line, raised.value.key) == (8, "queue[0].buffer")
    file.write_text(WRONG.format('buffer = "50p"'))
    with pytest.raises(bluewater.ScenarioError) as raised:
        bluewater.Scenario.load(file).with_({"queue.0.buffer": "50x"})
    assert raised.value.line is None
    assert str(raised.value).startswith(f"{file}: queue[0].buffer")


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is built in this process, by the name that messages have for it."""
    found: list[str] = []
    build = _core.Prepared

    def counted(text: str, origin: str = "<string>") -> _core.Prepared:
        found.append(origin)
        return build(text, origin)

    monkeypatch.setattr(_core, "Prepared", counted)
    return found


def serve(file: Path, out: Path) -> None:
    assert "done" in worker.serve(Task("0" * 32, file.read_text(), "task"), Store(out))


WAYS: dict[str, Callable[[Path, Path], object]] = {
    "a file": lambda file, _: bluewater.run(file),
    "text": lambda file, _: bluewater.run(file.read_text()),
    "a seed": lambda file, _: bluewater.run(file, seed=2),
    "a scenario": lambda file, _: bluewater.run(Scenario.load(file)),
    "kept": lambda file, out: bluewater.run(file, out=out),
    "a scenario, kept": lambda file, out: bluewater.run(Scenario.load(file), out=out),
    "packets": lambda file, out: bluewater.run(file, out=out, packets=out.with_suffix(".parquet")),
    "a worker": serve,
    "the command": lambda file, out: Cli(out)("run", str(file)),
    "a setting": lambda file, out: Cli(out)("run", str(file), "--set", "queue.0.aqm=blue"),
    "a dry run": lambda file, out: Cli(out)("run", str(file), "--dry-run"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_scenario_is_built_once(way: str, tiny: Path, tmp_path: Path, builds: list[str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    WAYS[way](tiny, out)
    assert len(builds) == 1


def test_the_newest_scenario_alone_holds_its_simulation(tiny: Path, builds: list[str]) -> None:
    old, new = Scenario.load(tiny), Scenario.load(tiny)
    hashes, counts = set(), []
    for each in (new, new, old):
        hashes.add(bluewater.run(each).decision_hash)
        counts.append(len(builds))
    assert (len(hashes), counts) == (1, [2, 3, 4])


def test_a_kept_run_is_found_unless_something_is_another(cli: Cli, tiny: Path) -> None:
    own = tiny.with_name("coin.py")
    coin = "from bluewater.aqm import Aqm\nclass Coin(Aqm):\n def on_arrival(self, *_): return 0.{}"
    own.write_text(coin.format(1))
    tiny.write_text(tiny.read_text().replace('"red"', '"python:coin.py:Coin"'))

    def run(*options: str) -> tuple[bool, float]:
        """Whether the command reports a kept run, and how long that took when it was made."""
        found = cli("run", str(tiny), "--json", *options)
        assert found.exit_code == 0
        took: float = json.loads(found.stdout)["summary"]["wall_s"]
        return "kept run found: " in found.stderr, took

    was_found, first = run()
    assert not was_found
    assert run() == (True, first)
    assert not run("--seed", "2")[0]
    assert not run("--set", "queue.0.buffer=90kB")[0]
    assert not run("--packets", str(tiny.with_suffix(".parquet")))[0]
    own.write_text(coin.format(2))
    assert not run()[0]
    own.write_text(coin.format(1))
    assert run() == (True, first)
    again = run("--no-resume")
    assert not again[0]
    assert again[1] != first
