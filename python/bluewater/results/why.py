"""Why a packet was sent, marked or dropped, in words."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from bluewater import _core
from bluewater.errors import InputError
from bluewater.results.packets import Facts, collected, of_queue, open_
from bluewater.text import milliseconds, number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_CAUSES = {
    "overflow": "the buffer had no room",
    "early": "the algorithm's signal",
    "penalty": "it limits this flow",
    "policed": "it limits all that arrives",
}

_ECN = {"not-ect": "not ECN-capable", "ect0": "ECT(0)", "ect1": "ECT(1)", "ce": "CE"}


def find(
    path: Path,
    n: int | None = None,
    *,
    queue: str | None = None,
    flow: int | None = None,
    seq: int | None = None,
    at_s: float | None = None,
    which: str | None = None,
) -> tuple[dict[str, Any], Facts]:
    """The first packet of a file that fits all arguments, as a row, and the facts of its run.

    Args:
        path: A file of packets.
        n: The packet's number at its queue.
        queue: Its queue; by default the file's first.
        flow: Its flow.
        seq: Its sequence number.
        at_s: The earliest time of its arrival, s.
        which: Its fate: ``dropped``, ``marked`` or ``sent``.

    Raises:
        InputError: No such file, queue or packet.
    """
    rows, facts = open_(path)
    if queue is None:
        queue = next(iter(collected(rows.select("queue").head(1), path)["queue"]), None)
    others = [name for name in facts.queues if name != queue]
    rows = of_queue(rows, queue, path)
    fates = {
        "marked": pl.col("marked") != "",
        "dropped": pl.col("fate") == "dropped",
        "sent": pl.col("fate") == "sent",
    }
    wanted = {
        f"N = {n}": None if n is None else pl.col("n") == n,
        f"--flow {flow}": None if flow is None else pl.col("flow") == flow,
        f"--seq {seq}": None if seq is None else pl.col("seq") == seq,
        f"--at {at_s or 0:g}s": None if at_s is None else pl.col("arrived_ns") >= round(at_s * 1e9),
        f"--which {which}": fates.get(which or ""),
    }
    fits = rows.filter(pl.lit(True), *(each for each in wanted.values() if each is not None))
    found = collected(fits.head(1), path)
    if found.is_empty():
        asked = [name for name, each in wanted.items() if each is not None]
        raise _no_packet(asked, queue, rows, path, others)
    return found.row(0, named=True), facts


def _no_packet(
    asked: Sequence[str], queue: str | None, rows: pl.LazyFrame, path: Path, others: Sequence[str]
) -> InputError:
    """The error for a packet that a file lacks; it says which packets of the queue it has."""
    if queue is None:
        return InputError(
            "the file has no packets", file=str(path), hint="was it written with a selection?"
        )
    columns = ("n", "flow", "arrived_ns")
    ends = [pl.col(each).min().alias(f"{each}_0") for each in columns]
    there = collected(rows.select(*ends, pl.col(columns).max()), path).row(0, named=True)
    return InputError(
        f"the file has no packet with {' and '.join(asked)} at {queue}",
        file=str(path),
        allowed=f"N = {there['n_0']} … {there['n']}, flows {there['flow_0']} … {there['flow']}, "
        f"arrivals at {there['arrived_ns_0'] / 1e9:.3f} … {there['arrived_ns'] / 1e9:.3f} s",
        hint="a file written with a selection of packets lacks the others"
        + (f"; another queue: --queue '{others[0]}'" if others else ""),
    )


def tell(row: dict[str, Any], facts: Facts) -> str:
    """What happened to a packet, line by line, and the discipline's rule."""
    aqm = facts.queues[row["queue"]]["aqm"]
    known = _about(aqm)
    rule = (
        f"{known['rule']}. More: `bluewater explain {aqm}`"
        if known
        else f"your class {aqm} decides"
    )
    return "\n".join([*story(row, facts), f"rule: {rule}"])


def story(row: dict[str, Any], facts: Facts) -> list[str]:
    """What happened to a packet, line by line."""
    table = facts.queues[row["queue"]]
    aqm = table["aqm"]
    lines = [
        f"packet {row['n']} at {row['queue']} ({aqm}): flow {row['flow']}, {row['kind']} "
        f"{row['seq']}, {row['bytes']} bytes, {_ECN[row['ecn']]}",
        _line(
            row["arrived_ns"],
            f"arrives; {row['found_packets']} packets ({row['found_bytes']} bytes) wait before it, "
            f"room for {table['buffer']}",
        ),
        *_signals(row, "found", "before it: "),
        *_signals(row, "then", "after it:  "),
    ]
    decided = _decided_ns(row)
    later = decided > row["arrived_ns"]
    decision, mark = [_decision(row, later=later)], []
    if row["marked"]:
        mark = [_line(row["marked_ns"], f"marked (CE): {_cause(row['marked'], table)}")]
    lines += [] if later else [*decision, *mark]
    if later and decided == row["left_ns"]:
        lines += _signals(row, "turn", "its turn:   ")
    lines += [*decision, *mark] if later else []
    if row["left_ns"] is not None and row["left_ns"] > row["arrived_ns"]:
        lines += _signals(row, "left", "as it left: ")
    lines.append(_end(row, table))
    reason = _not_marked(row, aqm, table.get("params", {}))
    lines.append(f"{_INDENT}not marked: {reason}" if reason else "")
    return [line for line in lines if line]


def _decided_ns(row: dict[str, Any]) -> int:
    """Describes the decision: at the packet's arrival, or later."""
    drawn = row.get("coin_ns")
    if drawn is not None:
        return int(drawn)
    if row["marked"]:
        return int(row["marked_ns"])
    return int(row["left_ns"] if row["fate"] == "dropped" else row["arrived_ns"])


def _end(row: dict[str, Any], table: dict[str, Any]) -> str:
    if row["fate"] == "queued":
        return f"{_INDENT}is still queued when the run ends"
    after = f" after {milliseconds(row['delay_s'])}" if row["delay_s"] else ""
    cause = f": {_cause(row['dropped'], table)}" if row["dropped"] else ""
    return _line(row["left_ns"], f"{row['fate']}{after}{cause}{_with(row)}")


def _with(row: dict[str, Any]) -> str:
    """Names the other packet involved, if the file has it."""
    other = row.get("with")
    if other is None:
        return ""
    return f", with packet {other}" if other < row["n"] else f", as packet {other} arrived"


_INDENT = " " * 18


def _line(ns: int, text: str) -> str:
    return f"{ns / 1e9:14.9f} s  {text}"


def _signals(row: dict[str, Any], when: str, head: str) -> list[str]:
    values = {
        name.removeprefix(f"{when}_"): value
        for name, value in row.items()
        if name.startswith(f"{when}_") and name not in _OWN and value is not None
    }
    if not values:
        return []
    driver = _driver(values)
    own = _queue_of_flow(values)
    of_level: dict[str, list[str]] = {"": []}
    for name, value in values.items():
        found = _LEVEL.fullmatch(name)
        kind, level = found.groups() if found else (name, "")
        of_level.setdefault(level, []).append(f"{kind} {_value(name, value)}")
    lines = [", ".join(of_level.pop("")), *driver, *own]
    lines += [f"level {level}: {', '.join(told)}" for level, told in of_level.items()]
    return [_INDENT + (" " * len(head) if i else head) + line for i, line in enumerate(lines)]


def _driver(values: dict[str, Any]) -> list[str]:
    """What an access point's driver holds, which waits although no discipline has it any more.

    Removes these signals from ``values``.
    """
    held, own = (values.pop(f"flow_driver_{name}", None) for name in ("packets", "own"))
    if not held:
        return []
    return [f"the driver holds {held:.0f} packets, {own:.0f} of them for its station"]


def _queue_of_flow(values: dict[str, Any]) -> list[str]:
    """The flow queue of the packet and its own algorithm's signals, if flows have queues.

    Removes these signals from ``values``.
    """
    if "flow_queue" not in values:
        return []
    names = [*values]
    first = names.index("flow_tin" if "flow_tin" in values else "flow_queue")
    found = {name: values.pop(name) for name in names[first:]}
    queue = found.pop("flow_queue")
    if queue < 0:
        return ["its flow has no queue"]
    waits = f"{found.pop('flow_packets'):.0f} packets ({found.pop('flow_bytes'):.0f} bytes)"
    if "flow_tin" in found:
        where = f"its queue {queue:.0f} (tin {found.pop('flow_tin'):.0f}, set {queue // _WAYS:.0f})"
        state, left, share = (
            found.pop(name) for name in ("flow_state", "flow_deficit", "flow_share")
        )
        turn = f"{_STATES[int(state)]}, deficit {left:.0f}, {share:.0f} more in each round"
    else:
        where, credit = f"its queue {queue:.0f}", found.pop("flow_credit")
        turn = _LISTS[int(found.pop("flow_list"))] + (f", credit {credit:.0f}" if credit else "")
    told = ", ".join(f"{name} {_value(name, value)}" for name, value in found.items())
    return [f"{where}: {waits}, {turn}", *([f"there: {told}"] if told else [])]


_WAYS = 8
"""Number of queues in a set."""
_STATES = ("idle", "sparse", "sparse and waiting for a packet", "bulk", "empty and not at rest")
_LISTS = ("idle", "new (sparse)", "old (bulk)", "held by its rate")


def _value(name: str, value: float) -> str:
    """A signal's value with four digits; a time with all, for comparison with other times."""
    return f"{value:.9f}" if name in _TIMES and value else number(value, 4)


_TIMES = {"first_above_s", "drop_next_s"}

_LEVEL = re.compile(r"(bin\w*)_(\d+)")
"""Signals that exist on several levels."""

_OWN = {"found_packets", "found_bytes", "left_ns"}


def _decision(row: dict[str, Any], *, later: bool) -> str:
    """The random draw and its outcome, or that the rule decided without a draw."""
    p, coin = row["p"], row["coin"]
    signalled = bool(row["marked"]) or row["dropped"] == "early"
    if p is None:
        if not signalled:
            return ""
        if row["coins"]:
            # Curvy RED compares the greatest of several draws; CHOKe draws a packet to compare.
            return f"{_INDENT}{row['coins']} random draws, none of them against one probability"
        return f"{_INDENT}no random draw: the rule alone decided"
    below, then = ("<", "signal") if coin < p else ("≥", "no signal")
    if row["dropped"] == "overflow" and row["left_ns"] == row["arrived_ns"]:
        then += ", but it does not fit"
    elif coin >= p and signalled:
        then += " by it; the rule beside it decided"
    elif coin < p and not signalled and not row["dropped"]:
        # COBALT never drops the last packet; BLUE may signal at the head.
        then += ", but the last in the queue stays" if later else ", which another packet gets"
    return f"{_INDENT}the random draw is {number(coin, 4)} {below} p = {number(p, 4)}: {then}"


def _not_marked(row: dict[str, Any], aqm: str, params: dict[str, Any]) -> str:
    """Why an ECN-capable packet was dropped instead of marked; empty if no mark was due."""
    if row["ecn"] == "not-ect":
        return ""
    if row["dropped"] == "penalty":
        return "a limited flow loses packets whether or not they are ECN-capable"
    if row["dropped"] == "policed":
        return "a policer drops packets whether or not they are ECN-capable"
    if row["dropped"] != "early":
        return ""
    if params.get("ecn") is False:
        return "with ecn = false every signal is a drop"
    hit = row["p"] is not None and row["coin"] < row["p"]
    return str(_about(aqm).get("unmarked", {}).get("coin" if hit else "rule", ""))


def _cause(cause: str, table: dict[str, Any]) -> str:
    """The meaning of a cause of drops or marks at a queue."""
    filter_ = {"penalty": table.get("prefilter"), "policed": "policer"}.get(cause)
    by = filter_ or table["aqm"]
    return str(_about(by).get("causes", {}).get(cause, _CAUSES[cause]))


def _about(aqm: str) -> dict[str, Any]:
    """The catalogue entry of an algorithm; empty for a user's class."""
    return _catalog().get(aqm, {})


@cache  # cached, because it is needed for each packet
def _catalog() -> dict[str, dict[str, Any]]:
    catalog = _core.catalog()
    return {each["name"]: each for each in (*catalog["filters"], *catalog["aqms"])}
