"""Queue disciplines ranked for a link."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.arguments import NUMBER, TEXT, Kind, checked, with_fields
from bluewater.errors import InputError
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING
from bluewater.lab.sweeps import carry_out
from bluewater.results.store import Store
from bluewater.study.advise import Link, Measured, Ranked, rank
from bluewater.study.advise import scenario as scenario_for
from bluewater.study.boxes import candidates, settings
from bluewater.study.execute import HERE
from bluewater.study.experiment import About, Experiment, Size
from bluewater.study.seeds import counted
from bluewater.study.sweep import Axis, Point
from bluewater.units import bits_per_second, duration_text, seconds

if TYPE_CHECKING:
    from bluewater.results.result import Result
    from bluewater.study.task import Failure

_LINK = Kind((Link,), 'a Link; its fields go by name, as in rate="10mbit"')


@dataclass(frozen=True)
class Advice:
    """The queue disciplines that a box can run, ranked for a link.

    Attributes:
        link: The link.
        ranked: The candidates, the advice first.
        failures: Runs that could not be made; their disciplines are left out.
        results: Each run of the ranked, in their order, with its discipline.
    """

    link: Link
    ranked: tuple[Ranked, ...]
    failures: tuple[Failure, ...] = ()
    results: tuple[tuple[str, Result], ...] = field(default=(), repr=False)

    def write(self, stem: Path | str) -> Path:
        """Draws throughput against delay; gives the PNG of ``stem``, beside SVG, PDF and CSV."""
        from bluewater.plots import advise as plots  # noqa: PLC0415 - matplotlib takes long

        return plots.write(self.ranked, self.link.title, Path(stem))


@checked(link=_LINK, box=TEXT, reps=NUMBER, first_seed=NUMBER, duration=TEXT, **MAKING)
def advise(
    link: Link | None = None,
    box: str = "linux",
    *,
    reps: int = 5,
    first_seed: int = 1,
    duration: str = "30s",
    jobs: int = CORES,
    on: str = HERE,
    share: str = "",
    out: Path | str = DEFAULT_OUT,
    progress: bool = True,
    **keys: Any,
) -> Advice:
    """Ranks the queue disciplines that a box can run for a link and those who use it.

    Args:
        link: The link.
        box: One of :data:`~bluewater.study.boxes.BOXES`.
        reps: How many seeds, at least 2.
        first_seed: The first of them.
        duration: Length of a run, of which the first third is not counted.
        jobs: Runs made at the same time.
        on: Where the runs are made, as for :func:`sweep`.
        share: Where they are kept as well, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.
        keys: Fields of :class:`~bluewater.study.advise.Link` that are set: ``rate="10mbit"``.

    Raises:
        InputError: A name or quantity cannot be used.
    """
    if reps < 2:
        raise InputError(
            "no interval without two seeds", key="reps", value=reps, allowed="2 or more"
        )
    seeds = counted(first_seed, reps, ("first_seed", "reps"))
    chosen = with_fields(link or Link(), keys, "advise()")
    rate = bits_per_second(chosen.rate)
    warmup = duration_text(seconds(duration, "duration") / 3)
    names = candidates(box)
    axes = (Axis("aqm", tuple(Point(name, settings(name, box)) for name in names)),)
    base = scenario_for(chosen, duration, warmup)
    made = Experiment("advise", "advise", chosen.title, About(), base, axes, {}, (), ())
    size = Size("given", seeds, {}, {})
    try:
        found = carry_out(made, size, jobs, Store(Path(out) / "runs", share), progress, on)
    except InputError as error:
        if error.key != "queue[0].buffer":
            raise
        raise InputError(  # of a scenario that nobody has written
            "not a buffer",
            key="buffer",
            value=chosen.buffer,
            allowed=error.allowed,
            hint=error.hint,
        ) from error
    measured: dict[str, list[Measured]] = {}
    for place, result in found.results():
        measured.setdefault(str(place["aqm"]), []).append(Measured.of(result, rate))
    whole = {name: runs for name, runs in measured.items() if len(runs) == reps}
    if whole and all(run.throughput <= 1 for runs in whole.values() for run in runs):
        raise InputError(
            "nothing comes through in this time",
            key="duration",
            value=duration,
            hint="it has to be many round trips",
        )
    ranked = tuple(rank(whole)) if whole else ()
    runs = [(str(place["aqm"]), run) for place, run in found.results()]
    ordered = tuple((each.name, run) for each in ranked for name, run in runs if name == each.name)
    return Advice(chosen, ranked, found.failures, ordered)
