"""``run``: one scenario."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w
import typer
from rich.table import Table

from bluewater import _core, kinds, text
from bluewater.cli.console import bar_of_one, note, out, print_json
from bluewater.cli.group import example
from bluewater.cli.options import DEFAULT_OUT, Json, Out, store
from bluewater.errors import InputError, StorageError
from bluewater.results.result import Result
from bluewater.results.store import run_key
from bluewater.study.scenario import parse_table, read_text
from bluewater.study.sweep import assign

if TYPE_CHECKING:
    from collections.abc import Sequence


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(run)


@example(
    "bluewater run my.toml",
    "bluewater run my.toml --set queue.0.aqm=blue --set duration=60s --json",
    "bluewater run my.toml --dry-run",
)
def run(
    file: Annotated[Path, typer.Argument(help="A scenario as TOML; - reads stdin.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a dotted key.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Replace the seed.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check, and print the scenario with every default.")
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Also write the tables as CSV into this folder."),
    ] = None,
    out_: Out = DEFAULT_OUT,
    json: Json = False,
) -> None:
    """Run one scenario and keep its result."""
    origin = "<stdin>" if str(file) == "-" else str(file)
    source = sys.stdin.read() if str(file) == "-" else read_text(file)
    changes = [*(settings or []), *([] if seed is None else [f"seed={seed}"])]
    source = changed(source, changes, origin)
    canonical = _core.check(source, origin)
    if dry_run:
        print(canonical, end="")
        return
    bar, update = bar_of_one(origin)
    with bar:
        result = kinds.run(source, origin, update)
    kept = store(out_)
    kept.prepare()
    key = run_key(canonical, result.version)
    kept.write(key, result)
    if csv is not None:
        _write_csv(result, csv)
    if json:
        print_json(to_json(result))
    else:
        out.print(_table(result))
    note(f"kept in {kept.path(key)}")


def _write_csv(result: Result, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in result.tables():
            table.write_csv(folder / f"{name}.csv")
    except OSError as error:
        raise StorageError(f"cannot write {folder}: {error.strerror}") from error
    note(f"CSV in {folder}")


def changed(source: str, settings: Sequence[str], origin: str) -> str:
    """The scenario with dotted keys set; the text stays as it is if there are none."""
    if not settings:
        return source
    table = parse_table(source, origin)
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError("not a setting", key="--set", value=setting, allowed="KEY=VALUE")
        assign(table, key.strip(), _literal(value.strip()), origin)
    return tomli_w.dumps(table)


def _literal(value: str) -> Any:
    """A TOML value, or the text itself where it is none, as in ``20ms``."""
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def to_json(result: Result) -> dict[str, Any]:
    """A run as stable JSON."""
    return {
        "decision_hash": result.decision_hash,
        "version": result.version,
        "summary": dict(result.summary),
        "queues": result.queues.to_dicts(),
        "flows": result.flows.to_dicts(),
        "transfers": result.transfers.to_dicts(),
        "scenario": result.scenario,
    }


def _transfers(result: Result) -> dict[str, str]:
    return {
        f"{row['group']}: {row['kind']}s": f"{row['completed']:,} of {row['began']:,} completed, "
        f"mean {text.number(row['time_mean_s'])}, p99 {text.number(row['time_p99_s'])} s"
        for row in result.transfers.iter_rows(named=True)
        if row["completed"]
    }


def _table(result: Result) -> Table:
    summary = result.summary
    drops = ", ".join(
        f"{summary[f'drops_{cause}']:,} {cause}"
        for cause in ("overflow", "early", "penalty")
        if summary[f"drops_{cause}"]
    )
    packets = text.number(summary["queue_mean_packets"])
    measured, duration = (text.number(summary[each]) for each in ("measured_s", "duration_s"))
    throughput = text.rate(summary["throughput_bps"])
    rows = {
        "queue": f"{summary['queue']} ({summary['aqm']})",
        "measured": f"{measured} s of {duration} s",
        "arrivals": f"{summary['arrivals']:,}",
        "loss": f"{text.percent(summary['loss'])}" + (f"  ({drops})" if drops else ""),
        "marked": text.percent(summary["mark_rate"]),
        "throughput": f"{throughput}  ({text.percent(summary['utilisation'])})",
        "queue length": f"mean {packets}, p99 {text.number(summary['queue_p99_packets'])} packets",
        "queueing delay": f"mean {text.milliseconds(summary['delay_mean_s'])}, "
        f"p99 {text.milliseconds(summary['delay_p99_s'])}",
        "fairness (Jain)": text.number(summary["jain"]),
        **_transfers(result),
        "decision hash": result.decision_hash,
        "took": f"{text.number(summary['wall_s'])} s",
    }
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, value in rows.items():
        table.add_row(name, value)
    return table
