"""The scorecard as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bluewater.files import write_text
from bluewater.study.rfc9743.cells import Verdict
from bluewater.study.rfc9743.suite import NAME
from bluewater.text import number, other

if TYPE_CHECKING:
    from bluewater.study.rfc9743.cells import Reading
    from bluewater.study.rfc9743.suite import Row, Scorecard

_ROW = ("id", "title", "section", "demanded", "rule", "verdict", "measured", "held", "of", "hash")
_READING = (
    "run", "cell", "rule", "value", "unit", "sense", "holds", "partly", "verdict", "reason",
)  # fmt: skip


def measured(row: Row, most: int = 3) -> str:
    """The worst values of a run in words."""
    if row.verdict is Verdict.UNJUDGED:
        found = "not judged" if row.decision_hash else "not run"
        return row.why_not if row.reason else f"{found}: {row.why_not}"
    told = [f"{each.rule} {each.text}" for each in row.worst[:most]]
    worst = row.worst[0]
    where = f" ({worst.cell})" if worst.verdict is not Verdict.HOLDS else ""
    return f"{told[0]}{where}{''.join(f'; {each}' for each in told[1:])}"


def held(row: Row) -> str:
    """How many readings hold."""
    return f"{row.counts[Verdict.HOLDS]} of {len(row.judged)}" if row.judged else "–"


def bound(reading: Reading) -> str:
    """The bounds of a reading in words."""
    sense = "≤" if reading.sense == "<=" else "≥"
    partly = "" if reading.partly is None else f", partly {sense} {number(reading.partly)}"
    return f"{sense} {number(reading.holds)}{partly}"


def of_row(row: Row) -> dict[str, Any]:
    """A row of the scorecard."""
    values = (
        row.id, row.title, row.section, str(row.force), row.rule, str(row.verdict), measured(row),
        row.counts[Verdict.HOLDS], len(row.judged), row.decision_hash,
    )  # fmt: skip
    return dict(zip(_ROW, values, strict=True))


def of_reading(run: str, reading: Reading) -> dict[str, Any]:
    """A reading; a value that never came about is ``None``, as is one that was not judged."""
    values = (
        run, reading.cell, reading.rule, _finite(reading.value), reading.unit, reading.sense,
        _finite(reading.holds), _finite(reading.partly), str(reading.verdict), reading.reason,
    )  # fmt: skip
    return dict(zip(_READING, values, strict=True))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def to_json(card: Scorecard) -> dict[str, Any]:
    """Everything that the scorecard says."""
    return {
        "suite": NAME,
        "candidate": card.plan.candidate.name,
        "transport": card.plan.candidate.transport,
        "size": card.plan.size,
        "seeds": list(card.plan.seeds),
        "simulations": len(card.plan.tasks),
        "verdicts": {str(verdict): card.counts[verdict] for verdict in Verdict},
        "runs": [
            of_row(row) | {"readings": [of_reading(row.id, each) for each in row.readings]}
            for row in card.rows
        ],
    }


def folder(card: Scorecard, out: Path) -> Path:
    """Where a candidate's scorecard is kept: not in the folder of another one of this name."""
    candidate = card.plan.candidate
    place = out / f"{NAME}-{re.sub(r'[^A-Za-z0-9._-]+', '-', candidate.name)}"
    try:
        held = json.loads((place / "scorecard.json").read_text("utf-8"))["transport"]
    except (OSError, ValueError, KeyError):
        return place
    return place if held == candidate.transport else Path(f"{place}{other(candidate.transport)}")


def write(card: Scorecard, out: Path) -> Path:
    """Writes ``scorecard.json``, ``runs.csv`` and ``readings.csv`` into the candidate's folder."""
    place = folder(card, out)
    place.mkdir(parents=True, exist_ok=True)
    write_text(place / "scorecard.json", json.dumps(to_json(card), indent=1, allow_nan=False))
    write_text(place / "runs.csv", _csv(_ROW, [of_row(row) for row in card.rows]))
    readings = [of_reading(row.id, each) for row in card.rows for each in row.readings]
    write_text(place / "readings.csv", _csv(_READING, readings))
    return place


def _csv(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> str:
    made = io.StringIO()
    writer = csv.DictWriter(made, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return made.getvalue()
