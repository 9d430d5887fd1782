"""Files that are none, and files that are damaged or made by somebody else: a line says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from conftest import SWEEP, TINY

import bluewater
from bluewater import files, trace
from bluewater.errors import DamagedWarning, InputError, StorageError
from bluewater.plots.log import read_log
from bluewater.results import exports, packets
from bluewater.results.writer import KEY

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Cli
    from typer.testing import Result

COMMANDS = {
    "run": ["run", "{}"],
    "sweep": ["sweep", "{}", "--jobs", "1"],
    "why": ["why", "{}", "1"],
    "plot": ["plot", "{}"],
    "pcapng": ["export", "{}", "--to", "{out}/x.pcapng"],
    "ns-2": ["export", "{}", "--to", "{out}/x.tr"],
    "parquet": ["export", "{}", "--to", "{out}/x.parquet"],
    "trace": ["trace", "{}"],
    "link": ["trace", "link", "{}", "{out}/x.csv"],
    "fetch": ["trace", "fetch", "{}", "name"],
    "replay": ["replay", "{}", "--aqm", "codel"],
    "compare": ["compare", "python:{}:Blue", "--duration", "1s", "--jobs", "1"],
    "explain": ["explain", "python:{}:Blue"],
}
OF_PACKETS = ("why", "pcapng", "ns-2", "parquet", "replay")


def refused(cli: Cli, command: str, file: Path | str) -> str:
    """The message of a command that refuses a file."""
    given = [each.replace("{out}", str(cli.out)).replace("{}", str(file)) for each in
             COMMANDS[command]]  # fmt: skip
    found: Result = cli(*given, keep_out=command in ("run", "sweep", "trace", "compare"))
    assert found.exit_code == 2, (found.output, found.exception)
    assert isinstance(found.exception, SystemExit)
    assert found.stderr.startswith(("error: ", "compare")), found.stderr
    return found.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_nobody_waits_for_a_fifo(command: str, cli: Cli, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    said = refused(cli, command, fifo)
    assert "a FIFO, where a file is needed" in said
    assert str(fifo) in said


@pytest.mark.parametrize("name", ["packets", "packets.parquet", "packets.pcapng"])
def test_what_is_no_file_is_not_replaced_by_packets(cli: Cli, tmp_path: Path, name: str) -> None:
    fifo, link, file = tmp_path / name, tmp_path / f"link-{name}", tmp_path / f"file-{name}"
    os.mkfifo(fifo)
    (tmp_path / "my.toml").write_text(TINY)
    found: Result = cli("run", str(tmp_path / "my.toml"), "--packets", str(fifo))
    assert found.exit_code == 2, found.output
    assert "a FIFO, where a file is needed" in found.stderr
    assert fifo.is_fifo()
    file.write_text("")
    link.symlink_to(file)
    bluewater.run(TINY, packets=link)
    assert link.is_symlink()
    assert file.stat().st_size > 0


def test_what_is_no_file_is_not_replaced_by_what_is_made(tmp_path: Path) -> None:
    fifo = tmp_path / "made.pcap"
    os.mkfifo(fifo)
    with pytest.raises(InputError, match="a FIFO"):
        trace.generate(fifo, {})
    with pytest.raises(InputError, match="a FIFO"):
        files.write_text(fifo, "")
    there, here = os.pipe()
    with pytest.raises(InputError, match="a pipe"):
        files.write_text(Path(f"/dev/fd/{here}"), "")
    os.close(there)
    os.close(here)
    assert fifo.is_fifo()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("ending", [*exports.OF_RUNS, *exports.OF_PACKETS])
def test_what_is_no_file_is_not_replaced_by_an_export(tmp_path: Path, ending: str) -> None:
    fifo, loop, there = (tmp_path / f"{name}{ending}" for name in ("fifo", "loop", "there"))
    os.mkfifo(fifo)
    loop.symlink_to(loop)
    there.write_text("before")
    if ending in exports.OF_RUNS:
        table = tomllib.loads(TINY)
        measured = {"interval": "100ms", "flows": True, "groups": True}
        of: Any = bluewater.run({**table, "measure": measured})
        write = exports.OF_RUNS[ending]
    else:
        of = tmp_path / "packets"
        bluewater.run(TINY, packets=of)
        write = exports.OF_PACKETS[ending]  # type: ignore[assignment]
    with pytest.raises(InputError, match="a FIFO"):
        write(of, fifo, None)
    with pytest.raises(InputError, match=r"a link that leads to itself|Too many levels"):
        write(of, loop, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
        with pytest.raises(StorageError):
            write(of, there, None)
    assert there.read_text() == "before"
    assert {each.name for each in tmp_path.iterdir()} - {"packets"} == {
        fifo.name, loop.name, there.name,
    }  # fmt: skip


def test_text_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="not UTF-8 text"):
        bluewater.Scenario({**tomllib.loads(TINY), "duration": "\ud800"})


def test_nothing_is_written_over_what_is_read(cli: Cli, tmp_path: Path) -> None:
    scenario, there, link = (tmp_path / name for name in ("my.pcapng", "my.parquet", "link.tr"))
    scenario.write_text(TINY)
    bluewater.run(TINY, packets=there)
    link.symlink_to(there)
    course = tmp_path / "rate.csv"
    course.write_text("0,10mbit\n1,5mbit\n")
    before = [each.read_bytes() for each in (scenario, there, course)]
    for line in (
        ["run", scenario, "--packets", scenario, "--out", tmp_path / "out"],
        ["export", there, "--to", there],
        ["export", there, "--to", link],
        ["replay", there, "--aqm", "codel", "--to", there],
        ["trace", "link", course, course],
    ):
        found: Result = cli(*map(str, line), keep_out=False)
        assert found.exit_code == 2, (line, found.output)
        assert "it would overwrite" in found.stderr, found.stderr
    with pytest.raises(InputError, match="it would overwrite"):
        bluewater.run(scenario, packets=scenario)
    assert [each.read_bytes() for each in (scenario, there, course)] == before


def test_nobody_reads_a_device(cli: Cli) -> None:
    assert "a device or a socket" in refused(cli, "run", "/dev/zero")


def test_a_pipe_of_the_shell_is_read() -> None:
    there, here = os.pipe()
    os.write(here, TINY.encode())
    os.close(here)
    assert bluewater.Scenario.load(f"/dev/fd/{there}") == bluewater.Scenario.parse(TINY)
    os.close(there)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("traffic", [{"transport": "trace", "file": "{}"}]),
        ("queue", [{"aqm": "python:{}:Blue", "buffer": "10p"}]),
        (
            "link",
            [{"from": "A", "to": "B", "rate_trace": "{}", "delay": "1ms"}],
        ),
    ],
)
def test_nobody_waits_for_a_fifo_that_a_scenario_names(
    key: str, value: Any, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    value = json.loads(json.dumps(value).replace("{}", str(tmp_path / "fifo")))
    table = tomllib.loads(TINY)
    with pytest.raises(InputError, match="a FIFO") as raised:
        bluewater.Scenario({**table, key: value})
    assert str(raised.value.key).startswith(f"{key}.0.")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["meta.json", "scenario.toml", "tables.json"])
def test_nobody_waits_for_a_fifo_in_a_stored_run(cli: Cli, tmp_path: Path, name: str) -> None:
    """It is damaged: told where it is read, put aside and made again where it is wanted."""
    out = tmp_path / "out"
    made = bluewater.run(TINY, out=out)
    folder = bluewater.newest(out)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    if name != "tables.json":
        assert "a FIFO, where a file is needed" in refused(cli, "plot", folder)
    with pytest.warns(DamagedWarning, match=name):
        again = bluewater.run(TINY, out=out)
    assert again.decision_hash == made.decision_hash


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    found = bluewater.sweep(SWEEP, jobs=1, out=tmp_path, progress=False)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "x", "/proc/x"):
        with pytest.raises(StorageError, match="cannot write"):
            found.plot("loss", path=path)
        with pytest.raises(StorageError, match="cannot write"):
            found.write(path)
    for path in ("", "."):
        with pytest.raises(InputError, match="not a name for a picture"):
            found.plot("loss", path=path)
    for out in ("a\0b", "x" * 300):
        with pytest.raises(InputError, match="too long for a file system"):
            bluewater.run(TINY, out=out)


def test_a_sweep_s_tables_do_not_go_among_the_runs(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "runs.toml").write_text(SWEEP)
    assert "would be the folder of the runs" in refused(cli, "sweep", tmp_path / "runs.toml")


def test_what_names_no_class_says_what_does() -> None:
    with pytest.raises(InputError, match="not the name of a class") as raised:
        bluewater.check("red")
    assert raised.value.allowed == "python:FILE:CLASS"


def test_who_reads_no_further_is_no_failure() -> None:
    """As of what is printed without Rich."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bluewater", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.close()
    assert process.wait(60) == 0
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("command", ["run", "sweep", "compare", "explain"])
def test_a_name_that_is_no_text(command: str, cli: Cli, tmp_path: Path) -> None:
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe.toml"))
    file.write_text(TINY)
    assert "the file's name is not UTF-8" in refused(cli, command, file)


@pytest.mark.parametrize("depth", [63, 90, 300, 480, 100_000])
def test_what_is_nested_too_deeply(depth: int, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(TINY + "[deep]\na = " + "[" * depth + "]" * depth)
    for command in ("run", "sweep", "fetch"):
        assert len(refused(cli, command, file).splitlines()) < 10
    file.write_text("[" * depth + "]" * depth + "\n")
    with pytest.raises(InputError, match=r"not a log|not JSON"):
        read_log(file)


@pytest.mark.parametrize("header", ["[{}]", "[[{}]]", "{} = 1"])
def test_a_key_of_very_many_parts(header: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(header.format(".".join("a" * 3000)) + "\n" + TINY)
    for command in ("run", "sweep", "fetch"):
        assert len(refused(cli, command, file)) < 3000
    with pytest.raises(InputError, match="nested lists or tables"):
        bluewater.run(file)


def test_what_is_no_text_on_stdin_or_in_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    for arguments, given in (["-"], b"\xff\xfe"), ([file, "--set", b"queue.0.aqm=\xff"], b""):
        found = subprocess.run(
            [sys.executable, "-m", "bluewater", "run", *arguments],
            input=given, capture_output=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert found.returncode == 2
        assert b"not UTF-8 text" in found.stderr
        assert b"Traceback" not in found.stderr


@pytest.mark.parametrize("digits", [20, 5000])
def test_numbers_beyond_any_counter(digits: int, cli: Cli, tmp_path: Path) -> None:
    file, many = tmp_path / "tiny.toml", "9" * digits
    file.write_text(TINY)
    for command in (
        ["run", str(file), "--packets", str(tmp_path / "x.parquet"), "--packets-every", many],
        ["run", str(file), "--seed", many],
        ["run", str(file), "--set", f"seed={many}"],
        ["sweep", str(file), "--reps", many],
        ["sweep", str(file), "--seed", many],
        ["compare", "red", "--reps", many],
        ["compare", "red", "--seed", many],
        ["advise", "--reps", many],
        ["reproduce", "feng/fig5", "--reps", many],
    ):
        found = cli(*command)
        assert found.exit_code == 2, (command, found.exception)
        assert isinstance(found.exception, SystemExit)
    file.write_text(f"seed = {many}\n{TINY}")
    for name in ("run", "sweep"):
        refused(cli, name, file)
    for wrong in (
        {"reps": int("9" * 20)},
        {"reps": 2, "first_seed": 2**64 - 1},
        {"first_seed": -1},
    ):
        with pytest.raises(InputError, match="seed"):
            bluewater.advise(out=tmp_path, progress=False, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["raise SystemExit(7)", "exit(7)", "import sys; sys.exit()"])
def test_a_class_s_file_does_not_end_the_command(what: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "blue.py"
    file.write_text(f"{what}\n")
    assert "blue.py:1: SystemExit" in refused(cli, "explain", file)
    file.write_text(
        "from bluewater.aqm import *\n\n\nclass Blue(Aqm):\n"
        f"    def on_arrival(self, *given):\n        {what}\n"
    )
    with pytest.raises(Exception, match="SystemExit"):
        bluewater.run(TINY.replace('"red"', f'"python:{file}:Blue"'))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("packets") / "good.parquet"
    bluewater.run(TINY, packets=file)
    return file


def again(good: Path, file: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    about = {KEY: pl.read_parquet_metadata(good)[KEY]}
    change(pl.read_parquet(good)).write_parquet(file, metadata=about)


@pytest.mark.parametrize("command", OF_PACKETS)
@pytest.mark.parametrize(
    "how", ["head", "half", "empty", "text", "missing", "toml", "list", "bare"]
)
def test_packets_that_are_damaged(
    how: str, command: str, good: Path, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "bad.parquet"
    content = good.read_bytes()
    about = json.loads(pl.read_parquet_metadata(good)[KEY])
    if how == "head":
        file.write_bytes(content[len(content) // 2 :])
    elif how in ("half", "empty", "text"):
        cut = {"half": content[: len(content) // 2], "empty": b"", "text": TINY.encode()}
        file.write_bytes(cut[how])
    elif how != "missing":
        changed: dict[str, Any] = {
            "toml": about | {"scenario": "x = ["}, "list": [1, 2],
            "bare": about | {"scenario": '[[queue]]\nlink = "A->B"'},
        }  # fmt: skip
        told = {KEY: json.dumps(changed[how])}
        pl.read_parquet(good).head(50).write_parquet(file, metadata=told)
    said = refused(cli, command, file)
    assert "not a file of packets: " in said
    assert str(file) in said
    makes = (
        "gateway … --record run.arr" if command == "replay" else "run my.toml --packets my.parquet"
    )
    assert f"hint: `bluewater {makes}` makes one" in said
    assert len(said.splitlines()) < 5


@pytest.mark.parametrize("command", ["why", "pcapng", "ns-2", "parquet"])
@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("p", pl.DataFrame.drop, "p = 'no such column'"),
        ("n", lambda rows, name: rows.with_columns(pl.col(name).cast(pl.String)), "Int64"),
        ("found_avg", lambda rows, name: rows.with_columns(pl.lit("x").alias(name)), "numbers"),
        ("queue", lambda rows, name: rows.with_columns(pl.lit("X->Y").alias(name)), "A->B"),
    ],
)
def test_packets_of_other_columns(
    column: str, change: Any, said: str, command: str, good: Path, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "other.parquet"
    again(good, file, lambda rows: change(rows, column))
    told = refused(cli, command, file)
    assert str(file) in told
    assert f"at {column} = " in told
    assert said in told


@pytest.mark.parametrize("column", ["ecn", "fate", "marked", "dropped"])
def test_packets_that_say_what_no_packet_is(
    column: str, good: Path, cli: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "other.parquet"
    again(good, file, lambda rows: rows.with_columns(pl.lit("zzz").alias(column)))
    for command in ("why", "pcapng", "parquet"):
        assert f"at {column} = 'zzz'" in refused(cli, command, file)


def test_a_name_is_no_pattern(good: Path, tmp_path: Path) -> None:
    file = tmp_path / "of [1].parquet"
    file.write_bytes(good.read_bytes())
    rows, _ = packets.open_(file)
    assert packets.collected(rows, file).height > 1000


def test_a_gateway_that_says_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLUEWATER_GATEWAY", "/bin/false")
    bluewater.programs.find.cache_clear()
    file = tmp_path / "run.arr"
    file.write_bytes(b"bwarr\0\0\1")
    with pytest.raises(InputError, match=r"/bin/false could not replay it .* \(code 1\)"):
        packets.open_(file)
    bluewater.programs.find.cache_clear()
