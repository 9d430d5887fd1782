"""Which queue discipline a path has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bluewater.arguments import FLAG, NUMBER, PATH, TEXT, checked
from bluewater.errors import InputError
from bluewater.files import check_writable
from bluewater.lab.making import CORES, at_least
from bluewater.progress import notes, of_one
from bluewater.study.identify import captures, infer, recording, sender, virtual, wire
from bluewater.study.scenarios.scenario import Scenario
from bluewater.text import number
from bluewater.units import bits_per_second, seconds

if TYPE_CHECKING:
    from bluewater.study.identify.infer import Answer
    from bluewater.study.identify.recording import Recording


@checked(path=PATH, arrived=PATH, seed=NUMBER, jobs=NUMBER, progress=FLAG)
def identify(
    path: Path | str,
    *,
    arrived: Path | str | None = None,
    seed: int = 1,
    jobs: int = CORES,
    progress: bool = True,
) -> Answer:
    """Finds the queue discipline that explains what a path did to packets.

    Args:
        path: A recording as CSV, or a scenario (``.toml``) whose first queue is probed, or a packet
            capture from the sending end.
        arrived: The capture from the other end.
        seed: Seed of the search and its simulations; the same seed gives the same answer.
        jobs: Simulations at once; the answer does not depend on it.
        progress: Whether a terminal shows a progress bar.

    Raises:
        InputError: The file cannot be used.
        ScenarioError: The scenario is not valid.
    """
    at_least(jobs=(jobs, 1), seed=(seed, 0))
    seen = recorded(Path(path), None if arrived is None else Path(arrived))
    bar, told = of_one("comparing candidates", progress)
    with bar:
        return infer.identify(seen, seed, jobs, told)


def recorded(path: Path, arrived: Path | None = None) -> Recording:
    """The recording that a file, a scenario or two captures give."""
    if arrived is not None:
        return captures.read(path, arrived)
    return virtual.probed(Scenario.load(path)) if path.suffix == ".toml" else recording.read(path)


@checked(host=TEXT, to=PATH, port=NUMBER, rate=TEXT, duration=TEXT, progress=FLAG)
def probe(
    host: str,
    to: Path | str = "probe.csv",
    *,
    port: int = wire.PORT,
    rate: str | None = None,
    duration: str | None = None,
    progress: bool = True,
) -> Path:
    """Probes the path to a host where ``bluewater probe --listen`` runs.

    It overloads the path for seconds.

    Args:
        host: Name or address of the host.
        to: Where the recording goes, for :func:`identify`.
        port: Where the host listens, for TCP and UDP.
        rate: The bottleneck's, such as ``10mbit``; found if it is not given.
        duration: About how long to probe; if not given 33 s, and less above 10 Mb/s.
        progress: Whether remarks go to stderr.

    Returns:
        The file.

    Raises:
        InputError: The path cannot be probed.
        StorageError: The file cannot be written.
    """
    at_least(port=(port, 1))
    given = None if rate is None else bits_per_second(rate)
    _within("rate", rate, given, (sender.LEAST, sender.MOST), 1e6, "Mb/s")
    length = None if duration is None else seconds(duration, "duration")
    _within("duration", duration, length, (sender.SHORTEST_S, sender.LONGEST_S), 1, "s")

    def told(text: str) -> None:
        if progress:
            notes.print(text, soft_wrap=True, markup=False)

    file = Path(to)
    check_writable(file)
    with sender.Far(host, port) as far:
        recording.write(sender.probed(far, given, length, told), file)
    return file


def _within(
    key: str,
    given: str | None,
    value: float | None,
    bounds: tuple[float, float],
    unit: float,
    name: str,
) -> None:
    """Refuses a quantity beyond its bounds."""
    low, high = bounds
    if value is not None and not low <= value <= high:
        allowed = f"{number(low / unit)} … {number(high / unit)} {name}"
        raise InputError("not allowed", key=key, value=given, allowed=allowed)
