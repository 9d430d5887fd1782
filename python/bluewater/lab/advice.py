"""Queue disciplines ranked for a link."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.arguments import NUMBER, TEXT, Argument, checked, with_fields
from bluewater.errors import InputError
from bluewater.lab.making import CORES, DEFAULT_OUT, MAKING
from bluewater.lab.sweeps import carry_out
from bluewater.results.store import Store
from bluewater.study.advice.advise import Link, Measured, Ranked, rank
from bluewater.study.advice.advise import scenario as scenario_for
from bluewater.study.advice.boxes import candidates, fitted, refused, simulated
from bluewater.study.execution.execute import HERE
from bluewater.study.experiments.experiment import About, Experiment, Size
from bluewater.study.scenarios.seeds import counted
from bluewater.study.scenarios.sweep import Axis, Point
from bluewater.units import bits_per_second, duration_text, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bluewater.lab.sweeps import Sweep
    from bluewater.results.result import Result
    from bluewater.study.execution.task import Failure

_LINK = Argument((Link,), 'a Link; its fields go by name, as in rate="10mbit"')


@dataclass(frozen=True)
class Advice:
    """The queue disciplines that a box can run, ranked for a link.

    Attributes:
        link: The link.
        ways: The candidates by direction of the link (``down``, ``up``, or one direction without a
            name). All directions have the same order, best first.
        failures: Runs that could not be made; their disciplines are left out.
        results: Every run of the ranked disciplines, best first, with its discipline, or discipline
            and direction.
    """

    link: Link
    ways: Mapping[str, tuple[Ranked, ...]]
    failures: tuple[Failure, ...] = ()
    results: tuple[tuple[str, Result], ...] = field(default=(), repr=False)

    @property
    def ranked(self) -> tuple[Ranked, ...]:
        """The candidates of the first direction, best first."""
        return next(iter(self.ways.values()))

    def write(self, stem: Path | str) -> list[Path]:
        """Draws throughput against delay for each direction; returns the paths of the PNGs.

        SVG, PDF and CSV go beside them. With two directions, their names are appended to ``stem``.
        """
        from bluewater.plots import advise as plots  # noqa: PLC0415 - matplotlib takes long

        stem = Path(stem)
        names = {way: f"{stem.name}-{way}" if way else stem.name for way in self.ways}
        return [
            plots.write(ranked, f"{self.link.title}{f' ({way})' if way else ''}",
                        stem.with_name(names[way]))
            for way, ranked in self.ways.items()
        ]  # fmt: skip


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
    """Ranks the queue disciplines that a box can run, for a link and its users.

    Args:
        link: The link.
        box: One of :data:`~bluewater.study.advice.boxes.BOXES`.
        reps: How many seeds, at least 2.
        first_seed: The first of them.
        duration: Length of a run; its first third is not counted.
        jobs: Parallel runs.
        on: Where the runs are made, as for :func:`sweep`.
        share: A shared store of finished runs, as for :func:`sweep`.
        out: The folder of results.
        progress: Whether a bar is shown.
        keys: Fields of :class:`~bluewater.Link` to set: ``rate="10mbit"``.

    Raises:
        InputError: A name or quantity cannot be used.
    """
    if reps < 2:
        raise InputError("an interval needs two seeds", key="reps", value=reps, allowed="2 or more")
    seeds = counted(first_seed, reps, ("first_seed", "reps"))
    chosen = fitted(with_fields(link or Link(), keys, "advise()"), box)
    names = [name for name in candidates(box) if not refused(name, chosen, box)]
    if not seconds(duration, "duration"):
        raise InputError("not allowed", key="duration", value=duration, allowed="more than 0s")
    warmup = duration_text(seconds(duration, "duration") / 3)
    size = Size("given", seeds, {}, {})
    store = Store(Path(out) / "runs", share)

    def made(way: str) -> Sweep:
        points = tuple(Point(name, simulated(name, chosen, way, box)) for name in names)
        axes = (Axis("aqm", points),)
        base = scenario_for(chosen, duration, warmup, chosen.shaped(way))
        plan = Experiment("advise", "advise", chosen.title, About(), base, axes, {}, (), ())
        return carry_out(plan, size, jobs, store, progress, on)

    try:
        found = {way: made(way) for way in chosen.ways}
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
    measured = {way: _measured(sweep, chosen.shaped(way)) for way, sweep in found.items()}
    whole = [
        name for name in names if all(len(each.get(name, ())) == reps for each in measured.values())
    ]
    ways = {way: {name: each[name] for name in whole} for way, each in measured.items()}
    if whole and all(
        run.throughput <= 1 for each in ways.values() for runs in each.values() for run in runs
    ):
        raise InputError(
            "no packet of the bulk flows gets through in this time",
            key="duration",
            value=duration,
            hint="a run takes many round trips",
        )
    placed = rank(*ways.values()) if whole else [[] for _ in ways]
    ranked = {way: tuple(each) for way, each in zip(ways, placed, strict=True)}
    results = tuple(
        (f"{each.name} {way}".rstrip(), run)
        for way, sweep in found.items()
        for each in ranked[way]
        for place, run in sweep.results()
        if place["aqm"] == each.name
    )
    failures = tuple(failure for sweep in found.values() for failure in sweep.failures)
    return Advice(chosen, ranked, failures, results)


def _measured(sweep: Sweep, rate: str) -> dict[str, list[Measured]]:
    """Each discipline's runs in the order of their seeds."""
    measured: dict[str, list[Measured]] = {}
    for place, result in sweep.results():
        measured.setdefault(str(place["aqm"]), []).append(
            Measured.of(result, bits_per_second(rate))
        )
    return measured
