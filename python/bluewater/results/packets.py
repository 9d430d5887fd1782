"""What became of each packet of a run, in one Parquet file; :mod:`bluewater.results.why` tells it.

A row is a packet that arrived at a managed queue; ``n`` counts them at each queue from 0. The file
says in its metadata what made it: the scenario, the version, the decision hash.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from bluewater import _core
from bluewater.errors import InputError
from bluewater.files import check, whole
from bluewater.results import recording
from bluewater.results.writer import COLUMNS, KEY, OPTIONAL
from bluewater.units import seconds

_AS_TABLE = "`polars.read_parquet(FILE).write_csv(…)` makes a table of it"
_NOT_HERE = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".json", ".jsonl", ".log", ".xlsx"), _AS_TABLE),
    ".pcap": "pcapng has what became of each packet; Wireshark saves it as pcap",
    ".qlog": "`bluewater export FILE.parquet --to FILE.qlog` writes it",
}
"""Endings of other formats, and how one gets there."""


@dataclass(frozen=True)
class Packets:
    """Where packets are written down, and which.

    Attributes:
        path: A Parquet file, or pcapng if its name ends so.
        flows: Of these flows, as ``0-3,7``; of all if not given.
        time: Those that arrive within, as ``10s..12.5s``.
        every: Of all arrivals at a queue those whose number is a multiple of this.
    """

    path: Path | str
    flows: str | None = None
    time: str | None = None
    every: int = 1

    def selection(self) -> dict[str, Any]:
        """The selection for the core; raises :class:`~bluewater.errors.InputError`."""
        ending = Path(self.path).suffix.lower()
        if ending in _NOT_HERE:
            raise InputError(
                "packets are written as Parquet, or for Wireshark",
                file=str(self.path),
                allowed="a file that ends in .parquet or .pcapng",
                hint=_NOT_HERE[ending],
            )
        if Path(self.path).is_dir():
            raise InputError(
                "a folder, where a file is needed",
                file=str(self.path),
                hint=f"{self.path}/packets.parquet",
            )
        if not 1 <= self.every < 2**64:
            raise InputError("not a count", key="every", value=self.every, allowed="1 … 2^64 - 1")
        chosen: dict[str, Any] = {"every": self.every}
        if self.flows is not None:
            chosen["flows"] = [_flows(part) for part in self.flows.split(",")]
        if self.time is not None:
            first, dots, last = self.time.partition("..")
            if not dots:
                raise InputError(
                    "not a span of time", key="time", value=self.time, allowed="as 10s..12.5s"
                )
            span = tuple(round(seconds(each, "time") * 1e9) for each in (first, last))
            if span[0] >= span[1]:
                raise InputError(
                    "ends before it begins", key="time", value=self.time, allowed="as 10s..12.5s"
                )
            chosen["time"] = span
        return chosen


def _flows(text: str) -> tuple[int, int]:
    first, _, last = text.strip().partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) > 2**32 - 1:
        raise InputError("not flows", key="flows", value=text, allowed="numbers, as 0-3,7")
    if int(last or first) < int(first):
        raise InputError("ends before it begins", key="flows", value=text, allowed="as 0-3")
    return int(first), int(last or first)


@dataclass(frozen=True)
class Facts:
    """What a file of packets says of its run.

    Attributes:
        version: Of the core that made it, or of the gateway that replayed it.
        decision_hash: The run's; of a recording one each way.
        scenario: The canonical scenario.
        links: Of a recording instead, the links' settings, up and down.
    """

    version: str
    decision_hash: str
    scenario: str = ""
    links: tuple[dict[str, Any], ...] = ()

    @cached_property
    def queues(self) -> dict[str, dict[str, Any]]:
        """The queues by their names: ``aqm``, ``buffer``, ``params`` …."""
        of_scenario = tomllib.loads(self.scenario).get("queue", ())
        return {table["link"]: table for table in of_scenario} | {
            table["queue"]: table for table in self.links
        }

    def link(self, queue: str) -> Link | None:
        """The link that a queue is of; None if it varies over time."""
        if self.links:
            found = next((each for each in self.links if each["queue"] == queue), {})
        else:
            scenario = tomllib.loads(self.scenario)
            ends = queue.split("->")
            given = (
                each for each in scenario.get("link", ())
                if [each["from"], each["to"]] in (ends, ends[::-1])
            )  # fmt: skip
            found = next(given, scenario.get("network", {}))
        if not {"rate", "delay"} <= found.keys() or found.keys() & _VARY:
            return None
        rate, delay = (_core.quantity(key, found[key])[0] for key in ("rate", "delay"))
        return Link(rate, delay)


_VARY = {"rate_trace", "delay_trace", "jitter", "framing"}


@dataclass(frozen=True)
class Link:
    """A link of one rate and delay.

    Attributes:
        rate_bps: Bit/s.
        delay_ns: From one end to the other.
    """

    rate_bps: int
    delay_ns: int

    def transmission_ns(self, size: int) -> int:
        """How long so many bytes take, rounded up."""
        return -(-8 * size * 10**9 // self.rate_bps)


def open_(path: Path) -> tuple[pl.LazyFrame, Facts]:
    """The packets of a file or of a recording, to be looked into, and what is known of their run.

    Raises:
        InputError: It is none of ours, or cannot be read.
    """
    check(path)
    try:
        if recording.is_recording(path):
            with tempfile.TemporaryDirectory() as folder:
                replayed = Path(folder) / "replayed.parquet"
                recording.replay(path, replayed)
                return pl.read_parquet(replayed).lazy(), _facts(replayed)
        rows, facts = pl.scan_parquet(path, glob=False), _facts(path)
        _check_columns(rows.collect_schema(), path)
    except InputError:
        raise
    except _UNREADABLE as error:
        raise _no_packets(path, error) from error
    for name in collected(rows.select("queue").unique(), path)["queue"]:
        if name not in facts.queues:
            raise _wrong(path, "queue", name, f"of its run: {', '.join(facts.queues)}")
    return rows, facts


_HINT = "`bluewater run my.toml --packets my.parquet` makes one"
_UNREADABLE = (
    OSError, PolarsError, PanicException, KeyError, TypeError, AttributeError, ValueError,
    RecursionError,
)  # fmt: skip
"""What Polars and others raise at a file that is damaged, or made by somebody else."""


def _no_packets(path: Path, error: BaseException) -> InputError:
    known = {OSError: getattr(error, "strerror", None), KeyError: f"there is no {error}"}
    said = next((why for kind, why in known.items() if isinstance(error, kind)), None)
    reason = (said or str(error)).partition("\n")[0]
    if "PAR1" in reason:  # what Polars looks for at the end of a file
        reason = "it is no Parquet"
    return InputError(f"not a file of packets: {reason}", file=str(path), hint=_HINT)


def _wrong(path: Path, column: str, found: object, allowed: str) -> InputError:
    problem = "not a file of packets as they are written"
    return InputError(problem, file=str(path), key=column, value=found, allowed=allowed, hint=_HINT)


def _facts(path: Path) -> Facts:
    facts = Facts(**json.loads(pl.read_parquet_metadata(path)[KEY]))
    if any(not {"aqm", "buffer"} <= queue.keys() for queue in facts.queues.values()):
        raise ValueError("its metadata name a queue without aqm or buffer")
    return facts


def _check_columns(schema: pl.Schema, path: Path) -> None:
    for name, kind in COLUMNS.items():
        found = schema.get(name)
        if found is None and name in OPTIONAL:
            continue
        right = found == kind or (found is not None and kind != pl.String and found.is_numeric())
        if not right:
            is_there = "no such column" if found is None else str(found)
            raise _wrong(path, name, is_there, f"a column of {kind}")
    for name, found in schema.items():
        if name not in COLUMNS and not (found.is_numeric() or found == pl.Null):
            raise _wrong(path, name, str(found), "a column of numbers")


_WORDS = {
    "ecn": ("not-ect", "ect0", "ect1", "ce"),
    "fate": ("sent", "dropped", "queued"),
    "marked": ("", "overflow", "early", "penalty", "policed"),
    "dropped": ("", "overflow", "early", "penalty", "policed"),
}
"""What columns of text may say."""


def collected(rows: pl.LazyFrame, file: Path) -> pl.DataFrame:
    """What was asked of :func:`open_`'s packets.

    Raises:
        InputError: The file is damaged where it is read now, or says what no packet is.
    """
    try:
        found = rows.collect()
    except _UNREADABLE as error:
        raise _no_packets(file, error) from error
    for name, words in _WORDS.items():
        if name in found.columns and (others := set(found[name].unique()) - set(words)):
            raise _wrong(file, name, next(iter(others)), ", ".join(words).removeprefix(", "))
    return found


def write(file: Path, path: Path, queue: str | None = None) -> None:
    """Writes the packets of a file or of a recording to a Parquet file.

    Args:
        file: Packets of a run.
        path: Where to.
        queue: Those at this link, as ``A->B``; all if not given.

    Raises:
        InputError: No such file or queue.
        StorageError: It cannot be written.
    """
    rows, facts = open_(file)
    about = {KEY: json.dumps(asdict(facts))}
    wanted = collected(of_queue(rows, queue, file), file)
    with whole(path) as temporary:
        wanted.write_parquet(temporary, metadata=about)


def of_queue(rows: pl.LazyFrame, queue: str | None, file: Path) -> pl.LazyFrame:
    """Those of a queue, or all if none is named.

    Raises:
        InputError: There are none of this queue.
    """
    if queue is None:
        return rows
    queues = rows.select("queue").unique(maintain_order=True)
    names = collected(queues, file)["queue"].to_list()
    if queue not in names:
        raise InputError(
            "no packets of this queue",
            file=str(file), key="queue", value=queue, allowed=", ".join(names) or "none",
        )  # fmt: skip
    return rows.filter(pl.col("queue") == queue)


_KINDS = _core.packet_kinds()
FORWARD = tuple(kind["name"] for kind in _KINDS if kind["role"] == "data")
"""Kinds of packets that go from a flow's source to its sink, whoever began."""
BACK = tuple(kind["name"] for kind in _KINDS if kind["role"] == "answer")
"""Kinds that come back for these."""
TCP = tuple(kind["name"] for kind in _KINDS if kind["tcp"])
"""Kinds that TCP has; the others are datagrams."""


def directed(rows: pl.LazyFrame, file: Path) -> pl.LazyFrame:
    """The same with ``forward``: whether a packet goes from its flow's source to its sink.

    Where its data go tells it, as a web session's client asks for them; of a flow without any in
    the file the kind of packet does.
    """
    named = rows.filter(pl.col("kind").is_in(FORWARD)).select("flow", "queue").unique()
    data = collected(named, file)
    ways = data.lazy().with_columns(forward=pl.lit(value=True))
    found = rows.join(ways, on=["flow", "queue"], how="left", maintain_order="left")
    return found.with_columns(
        forward=pl.when(pl.col("flow").is_in(data["flow"].to_list()))
        .then(pl.col("forward").is_not_null())
        .otherwise(pl.col("kind").is_in([*FORWARD, "syn"]))
    )
