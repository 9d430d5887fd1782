"""What a path did to packets: a table of when each was sent, and whether and when it arrived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from bluewater.errors import InputError
from bluewater.files import check, whole
from bluewater.results.packets import ECN_BITS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

ECN = tuple(ECN_BITS)
"""Codepoints of the ECN field by their bits."""
COLUMNS = {
    "sent_s": pl.Float64,
    "bytes": pl.Int64,
    "ecn": pl.String,
    "flow": pl.String,
    "arrived_s": pl.Float64,
    "ecn_arrived": pl.String,
}
LEAST = 500
"""Fewer packets say nothing."""
MOST = 2_000_000
_LONGEST_S = 600.0


@dataclass(frozen=True)
class Recording:
    """The packets of a recording in order of sending, a column each.

    Attributes:
        sent: Seconds since the first packet.
        size: Bytes on the wire.
        ecn: Codepoint when sent, as bits.
        flow: Number of the flow, from 0.
        arrived: Seconds on a clock that may differ from the sender's by a constant; NaN if lost.
        after: Codepoint on arrival, as bits; as sent if the packet was lost.
    """

    sent: NDArray[Any]
    size: NDArray[Any]
    ecn: NDArray[Any]
    flow: NDArray[Any]
    arrived: NDArray[Any]
    after: NDArray[Any]

    @property
    def marked(self) -> NDArray[Any]:
        """Whether a packet arrived with CE and was sent without."""
        got: NDArray[Any] = ~self.lost & (self.after == 3) & (self.ecn != 3)
        return got

    @property
    def lost(self) -> NDArray[Any]:
        """Whether a packet is lost."""
        gone: NDArray[Any] = np.isnan(self.arrived)
        return gone

    @property
    def arrivals(self) -> NDArray[Any]:
        """Numbers of the packets that arrived, in order of arrival."""
        there = np.flatnonzero(~self.lost)
        return there[np.argsort(self.arrived[there], kind="stable")]


def read(path: Path) -> Recording:
    """Reads a recording from a CSV file.

    Raises:
        InputError: The file is no recording, or too short or too long.
    """
    check(path)
    file, hint = str(path), "docs/identify.md, Recordings, lists the columns"
    try:
        table = pl.read_csv(path, infer_schema=False)
    except (PolarsError, OSError, UnicodeError) as error:
        raise InputError(
            f"not a recording: {str(error).partition(chr(10))[0]}", file=file, hint=hint
        ) from error
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise InputError(
            "not a recording: a column is missing",
            file=file, key=missing[0], allowed=f"the columns {', '.join(COLUMNS)}", hint=hint,
        )  # fmt: skip
    table = table.select(list(COLUMNS)).with_row_index("line", 2)
    for name, kind in COLUMNS.items():
        column = table[name].str.strip_chars().replace("", None)
        made = column.cast(kind, strict=False)
        bad = made.is_null() & column.is_not_null()
        if kind == pl.Float64:
            bad |= made.is_not_null() & ~made.is_finite()
        if name in ("ecn", "ecn_arrived"):
            bad |= column.is_not_null() & ~column.is_in(ECN)
        if name == "bytes":
            bad |= made.is_not_null() & ~made.is_between(20, 65535)
        if name not in ("arrived_s", "ecn_arrived"):
            bad |= column.is_null()
        if (bad_rows := table.filter(bad)).height:
            raise InputError(
                "not a recording: a value is wrong",
                file=file, line=bad_rows["line"][0], key=name, value=bad_rows[name][0],
                allowed=_ALLOWED[name], hint=hint,
            )  # fmt: skip
        table = table.with_columns(made.alias(name))
    return _checked(table, file)


_ALLOWED = {
    "sent_s": "seconds, as 1.25",
    "bytes": "a whole number, 20 … 65535",
    "ecn": ", ".join(ECN),
    "flow": "a name or number of the packet's flow",
    "arrived_s": "seconds, or nothing if the packet was lost",
    "ecn_arrived": f"{', '.join(ECN)}, or nothing if the packet was lost",
}


def _checked(table: pl.DataFrame, file: str) -> Recording:
    """The recording of a table whose values are right one by one."""
    table = table.sort("sent_s", maintain_order=True)
    sent = table["sent_s"].to_numpy()
    arrived = table["arrived_s"].fill_null(np.nan).to_numpy()
    check_length(sent, arrived, file)
    flows = table["flow"].unique(maintain_order=True).to_list()
    numbers = {name: number for number, name in enumerate(flows)}
    ecn, after = (
        np.array([ECN_BITS[each] for each in column])
        for column in (table["ecn"], table["ecn_arrived"].fill_null(table["ecn"]))
    )
    return Recording(
        sent=sent - sent[0],
        size=table["bytes"].to_numpy(),
        ecn=ecn,
        flow=np.array([numbers[each] for each in table["flow"]]),
        arrived=arrived - sent[0],
        after=after,
    )


def check_length(sent: NDArray[Any], arrived: NDArray[Any], file: str | None = None) -> None:
    """Refuses a recording that is too short or too long.

    Raises:
        InputError: It has too few or too many packets, or arrivals, or spans too long a time.
    """
    if not LEAST <= sent.size <= MOST:
        raise InputError(
            f"the recording has {sent.size} packets", file=file, allowed=f"{LEAST} … {MOST}"
        )
    span = float(sent[-1] - sent[0])
    if not 0 < span <= _LONGEST_S:
        raise InputError(
            f"the recording spans {span:.3g} s", file=file, allowed=f"up to {_LONGEST_S:g} s"
        )
    if (~np.isnan(arrived)).sum() < LEAST // 2:
        raise InputError(
            "too few packets arrived",
            file=file, key="arrived_s", allowed=f"{LEAST // 2} packets or more",
        )  # fmt: skip


def write(recording: Recording, path: Path) -> None:
    """Writes a recording as CSV.

    Raises:
        StorageError: The file cannot be written.
    """
    names = np.array(ECN)
    table = pl.DataFrame(
        {
            "sent_s": recording.sent,
            "bytes": recording.size,
            "ecn": names[recording.ecn],
            "flow": recording.flow,
            "arrived_s": pl.Series(recording.arrived, nan_to_null=True),
            "ecn_arrived": pl.Series(names[recording.after]),
        }
    ).with_columns(
        pl.when(pl.col("arrived_s").is_null()).then(None).otherwise(pl.col("ecn_arrived"))
        .alias("ecn_arrived")
    )  # fmt: skip
    with whole(path) as temporary:
        table.write_csv(temporary, float_precision=9)
