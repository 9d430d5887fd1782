"""``kernel``: a Linux kernel's queue disciplines against ours, packet by packet."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bluewater.cli.console import note, out, print_json
from bluewater.cli.group import FAILED, example, tell
from bluewater.cli.options import Json
from bluewater.errors import InputError
from bluewater.kernel.build import NotBuiltError, build, check, check_tools
from bluewater.kernel.compare import AbsentError, check_only, chosen, compare

if TYPE_CHECKING:
    from bluewater.kernel.build import Kernel
    from bluewater.kernel.compare import Compared

NOT_BUILT = 125
"""The exit code that has `git bisect run` skip a commit."""
STOPS = 128
"""The exit code that ends `git bisect run`: it takes 2 for a bad commit."""


def add(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(kernel)


@example(
    "bluewater kernel ~/linux",
    "bluewater kernel ~/linux --only fq_codel",
    "bluewater kernel ~/linux --against ~/linux-before",
    "bluewater kernel /usr/src/linux-source-6.1.tar.xz",
)
def kernel(
    tree: Annotated[Path, typer.Argument(help="A kernel's source tree, or a tarball of one.")],
    *,
    against: Annotated[
        Path | None,
        typer.Option(metavar="TREE2", help="Compare with this kernel.", show_default="ours"),
    ] = None,
    only: Annotated[str, typer.Option(help="Only settings with this in their name.")] = "",
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Where TREE is built, and results are kept.", show_default="in the cache"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Compilers or kernels at a time.", show_default="processors"),
    ] = None,
    json: Json = False,
) -> None:
    """Compare the queue disciplines of a Linux kernel with ours, packet by packet.

    Builds User-Mode Linux from TREE, boots it in virtual time, and sends the same packets through
    both. For each setting it prints whether all packets have the same fate at the same time, or the
    first that differs and why ours decided so. TREE stays as it is.

    Exit codes are those of `git bisect run`: 0 all equal, 1 some differ, 125 TREE does not build
    or has none of the disciplines, 128 bad input, or TREE2 does not build or boot.
    """
    try:
        check_tools()
        check_only(only, bool(against))
        check(tree)
        if against:
            check(against)
        built = _built(tree, out_, jobs, NOT_BUILT)
        other = _built(against, None, jobs, STOPS) if against else None
        settings = chosen(built, other, only)
    except AbsentError as error:
        tell(error)
        raise typer.Exit(NOT_BUILT) from None
    except InputError as error:
        tell(error)
        raise typer.Exit(STOPS) from None
    folder = built.folder / "results"
    found = []
    for each in compare(built, settings, folder, other, jobs):
        found.append(each)
        if not json:
            _show(each, against)
    if json:
        print_json([asdict(each) for each in found])
    else:
        same = sum(each.is_equal for each in found)
        out.print(f"\nLinux {built.version}: {same} of {len(found)} settings are equal.")
        note(f"our scenarios and packets: {folder}" if not other else f"results: {folder}")
    if all(each.failed for each in found):
        is_other = all(each.whose == "TREE2" for each in found)
        note(
            f"no setting gave a result: the kernel of {against if is_other else tree} does not boot"
        )
        raise typer.Exit(STOPS if is_other else NOT_BUILT)
    if not all(each.is_equal for each in found):
        raise typer.Exit(FAILED)


def _built(tree: Path, folder: Path | None, jobs: int | None, code: int) -> Kernel:
    note(f"building {tree}")
    try:
        return build(tree, folder, jobs)
    except NotBuiltError as error:
        note(f"{tree} does not build:\n{error}")
        raise typer.Exit(code) from None


def _show(each: Compared, against: Path | None) -> None:
    counts = f"{each.packets} packets, {each.dropped} dropped, {each.marked} marked"
    if each.failed:
        of = f": the kernel of {each.whose}" if against else ""
        out.print(f"[red]failed[/red]  [cyan]{each.setting}[/cyan]{of}")
        out.print(f"        {each.failed}", markup=False, soft_wrap=True)
        return
    mark = "[green]equal[/green]  " if each.is_equal else "[red]differs[/red]"
    out.print(f"{mark} [cyan]{each.setting}[/cyan]: {counts}", soft_wrap=True)
    if each.statistics:
        out.print(f"        statistics differ: {each.statistics}", markup=False, soft_wrap=True)
    if each.first is None:
        return
    first = each.first
    lines = [
        f"packets that differ: {each.differ}; first in time: {first['packet']}, which arrives at "
        f"{first['arrives_ns'] / 1e6:.3f} ms, flow {first['flow']}, {first['bytes']} bytes",
        f"kernel: {first['kernel']}",
        f"{'TREE2' if against else 'ours'}: {first['other']}",
        *each.why.splitlines(),
    ]
    out.print("\n".join(f"        {line}" for line in lines), markup=False, soft_wrap=True)
