"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bluewater.errors import InputError, unknown
from bluewater.files import PICTURES, check_ending
from bluewater.results.overview import FORMATS as TABLES
from bluewater.results.store import Store
from bluewater.study.scenarios.seeds import counted, listed
from bluewater.study.scenarios.tcp import PRESETS, TCPS

SIZES = ("column", "page")
"""Sizes of a picture for a paper."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of a table.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for results, plots and reports.")]
Jobs = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, help="Parallel runs.", show_default="cores"),
]
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="ENGINE",
        help="Where to run: here; dask (a Dask cluster on this machine); dask=ADDRESS (a "
        "scheduler's cluster); slurm (job arrays of --jobs elements).",
    ),
]
Seconds = Annotated[
    float | None, typer.Option("--seconds", min=0, help="Try no more after this time, s.")
]
SearchSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the search and its runs.")]
Fresh = Annotated[int, typer.Option("--reps", min=2, help="Fresh seeds that check the result.")]
Buffer = Annotated[str, typer.Option("--buffer", help="In bytes, packets (100p) or 1.5bdp.")]
Transport = Annotated[
    str, typer.Option("--transport", help=f"Which TCP: {', '.join(TCPS)}. `sack` is Reno's.")
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset", metavar="|".join(PRESETS), help="Modern TCP; empty for that of the papers."
    ),
]
Ecn = Annotated[bool, typer.Option("--ecn/--no-ecn", help="Connections use ECN.")]
Part = Annotated[
    str | None,
    typer.Option(
        "--shard", metavar="I/N", help="Make only part I of N of the runs, without tables."
    ),
]
Shared = Annotated[
    str,
    typer.Option(
        "--share",
        metavar="ADDRESS",
        envvar="BLUEWATER_SHARE",
        help="Shared store of finished runs, searched first: any fsspec address, such as "
        "s3://bucket/folder.",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the scenario, such as duration=60s or queue.0.aqm=red; queue.0 is its "
        "first "
        "[[queue]].",
    ),
]
SizeName = Annotated[str, typer.Option("--size", help="quick, or full: the paper's size.")]
Quick = Annotated[bool, typer.Option("--quick", help="Short for --size quick.")]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Run only this seed, or start --reps at it.")
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", help="Seeds separated by commas, such as 1,2,3 or 1-5.")
]
Reps = Annotated[
    int | None, typer.Option("--reps", min=1, help="Number of seeds, counting up from --seed or 1.")
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--table",
        metavar="FILE",
        help="Also write the table, with units and intervals: .csv, .md, or .tex for LaTeX with "
        "booktabs, by the file's ending.",
    ),
]
PictureFile = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        metavar="FILE",
        help="Where the picture goes: .png, .svg, .pdf or .pgf, by the file's ending.",
    ),
]
PictureSize = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="column|page",
        help="Draw the picture for a paper: one column (3.5 in) or the page (7.16 in) wide.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume/--no-resume", help="Reuse finished runs.")]


def seeds(seed: int | None, many: str | None, reps: int | None) -> tuple[int, ...] | None:
    """The seeds that the options name, or ``None`` for those of the file."""
    if many is None:
        if seed is None and reps is None:
            return None
        first = 1 if seed is None else seed
        return counted(first, 1 if reps is None else reps, ("--seed", "--reps"))
    if seed is not None or reps is not None:
        raise InputError(
            "--seeds cannot go with --seed or --reps", hint="list every seed in --seeds"
        )
    return listed(many, "--seeds")


def check_outputs(table: Path | None, picture: Path | None, size: str | None) -> None:
    """Refuses endings and sizes that name no format, before any run is made."""
    if table is not None:
        check_ending(table, TABLES, "a table")
    if picture is not None:
        check_ending(picture, PICTURES, "a picture")
    if size is not None and size not in SIZES:
        raise unknown("size of a picture", size, SIZES, key="--size")


def store(out: Path, share: str = "") -> Store:
    """The store of runs in a results folder; see :class:`~bluewater.results.store.Store`."""
    return Store(out / "runs", share)
