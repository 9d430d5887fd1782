#!/usr/bin/env python3
"""Write the tables of docs/suites.md from the results of `bluewater suite`, all in one folder.

The table of a suite without results there stays as it is, as does its row among all suites.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

MEASURED = Path(__file__).resolve().parent.parent / "docs" / "measured"
SUITES = ("l4s", "bufferbloat", "media", "rfc7928", "rfcs", "bbr", "autorate")
VERDICTS = {
    "reproduced": "hold",
    "reproduced under a stated reading": "under a stated reading",
    "contradicted": "contradicted",
    "partly": "in part",
    "not reproduced": "do not",
}
CASES = (
    "STARTUP ends on a plateau",
    "STARTUP ends on loss, application-limited",
    "DRAIN ends on inflight",
    "DRAIN ends on time",
    "PROBE_UP ends on a plateau",
    "PROBE_UP ends on loss, application-limited",
    "never ends, application-limited without loss",
    "PROBE_DOWN ends on inflight",
    "PROBE_DOWN ends on time",
    "PROBE_RTT in and out",
    "PROBE_RTT skipped after idleness",
    "STARTUP with aggregation",
    "PROBE_CRUISE with aggregation",
    "BDP below a packet",
    "ten times the rate",
    "a tenth of the rate",
    "token bucket",
    "spurious fast recovery",
    "spurious timeout",
    "PROBE_RTT in STARTUP",
    "loss in PROBE_UP, inflight_longterm set",
    "application-limited in PROBE_REFILL",
)
CONTROLLERS = ("cubic", "bbr", "bbr1", "prague")
SIGNS = {"holds": "✓", "partly": "◐", "does not": "✗"}
SHOWN = ("T1", "T4", "T6", "T10", "T12", "T15", "T17", "T18", "T19", "T20", "T22", "T23", "T24")


def main() -> None:
    """Reads the results, writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="the folder that --out of the suites named")
    results = parser.parse_args().results
    for name, rows_of in (
        ("suites", verdicts),
        ("bufferbloat", bufferbloat),
        ("media", media),
        ("rfc7928", scorecard),
        ("bbr", cases),
        ("rfc9743", controllers),
    ):
        if name != "suites" and not any(results.glob(f"{name}-*")):
            continue
        rows = rows_of(results)
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(rows[0]))
        (MEASURED / f"{name}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def verdicts(results: Path) -> list[list[str]]:
    """What became of each suite's claims."""
    rows = [["suite", "claims", "of them ours", *VERDICTS.values()]]
    there = table(MEASURED / "suites.md")
    for suite in SUITES:
        named = f"[{suite}](#{suite})"
        claims = [
            claim
            for file in sorted(results.glob(f"{suite}-*/claims.json"))
            for claim in json.loads(file.read_text(encoding="utf-8"))["claims"]
        ]
        if not claims:
            rows.append(list(there[named].values()))
            continue
        found = Counter(claim["verdict"] for claim in claims)
        if unknown := set(found) - set(VERDICTS):
            raise SystemExit(f"{suite}: verdicts without a column: {unknown}")
        ours = sum(claim["origin"] == "ours" for claim in claims)
        counts = (str(found[verdict] or "–") for verdict in VERDICTS)
        rows.append([named, str(len(claims)), str(ours), *counts])
    return rows


def bufferbloat(results: Path) -> list[list[str]]:
    """Pings, calls and exchanges beside flows, in the order of the grades."""
    load = {
        way: table(results / "bufferbloat-load" / f"{way}.md") for way in ("up", "down", "both")
    }
    answers = table(results / "bufferbloat-bounceback" / "answers.md")
    rpm = table(results / "bufferbloat-rpm" / "responsiveness.md")
    ways = ("8 up", "8 down", "4 + 4")
    rows = [
        [
            "discipline",
            *(f"ping, ms more, mean (median): {way}" for way in ways),
            "grade",
            "call's MOS: 8 up",
            "answers a second, 1 + 1",
            "RPM up",
            "RPM down",
        ]
    ]
    for name, grade in table(results / "bufferbloat-load" / "grades.md").items():
        pings = (
            f"{of[name]['ping, mean (ms more)']} ({of[name]['ping, median (ms more)']})"
            for of in load.values()
        )
        call = load["up"][name]["call, MOS"]
        exchange = [answers[name]["both"], rpm[name]["up"], rpm[name]["down"]]
        rows.append([name, *pings, grade["grade"], call, *exchange])
    return rows


def media(results: Path) -> list[list[str]]:
    """Rates and delays of the calls, in the order of the delays."""
    videos, late, mos = (
        table(results / "media-cases" / f"{n}.md") for n in ("videos", "late", "mos")
    )
    columns = (
        [(videos, case, "video, Mb/s: ") for case in ("5.1", "5.6", "5.6 deep", "5.7", "5.8")]
        + [(late, case, "audio, p95 ms: ") for case in ("5.1", "5.4", "5.6", "5.6 deep", "5.8")]
        + [(mos, case, "MOS: ") for case in ("5.1", "5.6")]
    )
    rows = [["discipline", *(title + case for _, case, title in columns)]]
    return rows + [[name, *(of[name][case] for of, case, _ in columns)] for name in late]


def scorecard(results: Path) -> list[list[str]]:
    """Some tests of the scorecard."""
    cards = table(results / "rfc7928-scorecard.md")
    columns = ("better, of 21", *SHOWN)
    rows = [["discipline", *columns]]
    return rows + [[name, *(card[column] for column in columns)] for name, card in cards.items()]


def cases(results: Path) -> list[list[str]]:
    """What became of the claims of each test case of BBR's draft, by their names."""
    found: dict[str, list[dict[str, str]]] = {}
    for file in sorted(results.glob("bbr-*/claims.json")):
        for claim in json.loads(file.read_text())["claims"]:
            found.setdefault(claim["id"].partition("-")[0], []).append(claim)
    rows = [["case", "what", "claims", "hold", "in part", "do not"]]
    titled = {f"c{number}": title for number, title in enumerate(CASES, 1)}
    named = {f"g{number}": f"case {number} over 17 paths" for number in (1, 3, 8, 10)}
    ours = {f"f{number}": f"finding F{number}" for number in range(1, 10)}
    for key, title in (titled | named | ours).items():
        own = found.get(key, [])
        if not own:
            continue
        by: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS.values()}
        for claim in own:
            by[VERDICTS[claim["verdict"]]].append(f"`{claim['id']}`")
        number = key[1:] if key in titled else "–"
        missed = (", ".join(by[verdict]) or "–" for verdict in ("in part", "do not"))
        rows.append([number, title, str(len(own)), str(len(by["hold"])), *missed])
    return rows


def controllers(results: Path) -> list[list[str]]:
    """The scorecards by RFC 9743, side by side."""
    cards = [
        json.loads((results / f"rfc9743-{name}" / "scorecard.json").read_text(encoding="utf-8"))
        for name in CONTROLLERS
    ]
    rows = [["run", "what", "asked", *CONTROLLERS]]
    for runs in zip(*(card["runs"] for card in cards), strict=True):
        one = runs[0]
        cells = [
            f"{SIGNS[run['verdict']]} {run['held']} of {run['of']}" if run["of"] else "not judged"
            for run in runs
        ]
        rows.append([one["id"], one["title"], one["demanded"], *cells])
    counts = [
        " · ".join(f"{card['verdicts'][verdict]} {sign}" for verdict, sign in SIGNS.items())
        for card in cards
    ]
    return [*rows, ["", "together", "", *counts]]


def table(file: Path) -> dict[str, dict[str, str]]:
    """The rows of a table, by discipline."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in file.read_text(encoding="utf-8").splitlines()
    )
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


if __name__ == "__main__":
    main()
