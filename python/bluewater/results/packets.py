"""The fate of each packet of a run, in one Parquet file; :mod:`bluewater.results.why` explains it.

A row is a packet that arrived at a managed queue; ``n`` counts arrivals at each queue from 0. The
file's metadata have its origin: the scenario, the version, the decision hash.
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
from bluewater.files import check, of_capture, whole
from bluewater.programs import is_recording
from bluewater.results import recording
from bluewater.results.writer import COLUMNS, KEY, OPTIONAL
from bluewater.units import seconds

_AS_TABLE = "`polars.read_parquet(FILE).write_csv(…)` makes a table of it"
_NOT_HERE = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".json", ".jsonl", ".log", ".xlsx"), _AS_TABLE),
    ".pcap": "pcapng has what became of each packet; Wireshark saves it as pcap",
    ".qlog": "`bluewater export FILE.parquet --to FILE.qlog` writes it",
}
"""Endings of other formats, and the command that writes each."""
_HERE = (".parquet", ".pcapng", "")
"""Endings that say what is written, or nothing."""


@dataclass(frozen=True)
class Packets:
    """A selection of packets, and the file to write them to.

    Attributes:
        path: A Parquet file, or pcapng if its name ends so.
        flows: Only packets of these flows, such as ``0-3,7``; by default all.
        time: Only packets that arrive in this span, such as ``10s..12.5s``.
        every: Only every so many-th arrival at a queue, by its number.
    """

    path: Path | str
    flows: str | None = None
    time: str | None = None
    every: int = 1

    def selection(self) -> dict[str, Any]:
        """The selection for the core; raises :class:`~bluewater.errors.InputError`."""
        ending = Path(self.path).suffix.lower()
        if ending not in _HERE or str(self.path) == "-":
            raise InputError(
                "packets are written as Parquet, or for Wireshark",
                file=str(self.path),
                allowed="a file that ends in .parquet or .pcapng",
                hint=_NOT_HERE.get(ending, "as in packets.parquet"),
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

    def check(self, scenario: str) -> None:
        """Refuses flows and times that a run of a canonical scenario cannot have.

        Raises:
            InputError: No packet of the run would be written.
        """
        run, chosen = tomllib.loads(scenario), self.selection()
        end = seconds(run["duration"], "duration")
        if chosen.get("time", (0,))[0] >= 1e9 * end:
            raise InputError(
                "the run ends before this span begins",
                key="time",
                value=self.time,
                allowed=f"0s..{run['duration']}",
            )
        traffic = run.get("traffic", ())
        count = sum(group["flows"] for group in traffic)
        # The flows of a capture and the connections of web users are not in the scenario.
        open_ = any(group["transport"] == "trace" or group.get("app") == "web" for group in traffic)
        if not open_ and count and min((low for low, _ in chosen.get("flows", [(0, 0)]))) >= count:
            raise InputError(
                "the run has no such flow", key="flows", value=self.flows, allowed=f"0-{count - 1}"
            )


def _flows(text: str) -> tuple[int, int]:
    first, _, last = text.strip().partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) > 2**32 - 1:
        raise InputError("not flows", key="flows", value=text, allowed="numbers, as 0-3,7")
    if int(last or first) < int(first):
        raise InputError("ends before it begins", key="flows", value=text, allowed="as 0-3")
    return int(first), int(last or first)


@dataclass(frozen=True)
class Facts:
    """The facts about its run in a file of packets.

    Attributes:
        version: Version of the core that made it, or of the gateway that replayed it.
        decision_hash: The run's decision hash; a recording has one per direction.
        scenario: The canonical scenario; empty for a recording.
        links: The settings of a recording's links, up and down.
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
        """The link of a queue; None if the link varies over time."""
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


_VARY = {"rate_trace", "delay_trace", "jitter", "framing", "wifi", "docsis"}


@dataclass(frozen=True)
class Link:
    """A link of constant rate and delay.

    Attributes:
        rate_bps: Rate, bit/s.
        delay_ns: Propagation delay, ns.
    """

    rate_bps: int
    delay_ns: int

    def transmission_ns(self, size: int) -> int:
        """The transmission time of ``size`` bytes, rounded up."""
        return -(-8 * size * 10**9 // self.rate_bps)


def open_(path: Path) -> tuple[pl.LazyFrame, Facts]:
    """Opens a file of packets or a recording; returns the packets and the facts of their run.

    Raises:
        InputError: The file is neither, or cannot be read.
    """
    check(path)
    try:
        if is_recording(path):
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
"""Errors of Polars and others for a file that is damaged, or is no file of packets."""


def _no_packets(path: Path, error: BaseException) -> InputError:
    known = {OSError: getattr(error, "strerror", None), KeyError: f"there is no {error}"}
    said = next((why for kind, why in known.items() if isinstance(error, kind)), None)
    reason = (said or str(error)).partition("\n")[0]
    if "PAR1" in reason or reason.startswith("parquet: "):  # Polars finds no end of a file
        reason = "it is no Parquet file"
    hint = of_capture(path) or _HINT
    return InputError(f"not a file of packets: {reason}", file=str(path), hint=hint)


def _wrong(path: Path, column: str, found: object, allowed: str) -> InputError:
    problem = "not a file of packets: a column is wrong"
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


ECN_BITS = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
"""Codepoints of the ECN field and their bits."""
_WORDS = {
    "ecn": ("not-ect", "ect0", "ect1", "ce"),
    "fate": ("sent", "dropped", "queued"),
    "marked": ("", "overflow", "early", "penalty", "policed"),
    "dropped": ("", "overflow", "early", "penalty", "policed"),
}
"""The values that columns of text may have."""


def collected(rows: pl.LazyFrame, file: Path) -> pl.DataFrame:
    """Collects a query on the packets of :func:`open_`.

    Raises:
        InputError: The file is damaged in the part now read, or has a value that no packet has.
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
        path: The file to write.
        queue: The link, as ``A->B``; by default all.

    Raises:
        InputError: No such file or queue.
        StorageError: The file cannot be written.
    """
    rows, facts = open_(file)
    about = {KEY: json.dumps(asdict(facts))}
    wanted = collected(of_queue(rows, queue, file), file)
    with whole(path) as temporary:
        wanted.write_parquet(temporary, metadata=about)


def of_queue(rows: pl.LazyFrame, queue: str | None, file: Path) -> pl.LazyFrame:
    """The packets of a queue; all packets if no queue is named.

    Raises:
        InputError: The file has no packets of this queue.
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
"""Kinds of packets that carry data from a flow's source to its sink."""
BACK = tuple(kind["name"] for kind in _KINDS if kind["role"] == "answer")
"""Kinds of packets that answer data packets."""
TCP = tuple(kind["name"] for kind in _KINDS if kind["tcp"])
"""Kinds of packets of TCP; the others are datagrams."""


def directed(rows: pl.LazyFrame, file: Path) -> pl.LazyFrame:
    """Adds the column ``forward``: whether a packet goes from its flow's source to its sink.

    The direction of the flow's data decides, because a web session's client opens the connection.
    For a flow without data in the file the kind of packet decides.
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
