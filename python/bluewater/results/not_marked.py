"""Why an ECN-capable packet was dropped where a mark might be expected."""

from __future__ import annotations

from typing import Any

from bluewater.text import number

_NEVER = {
    "csfq": "for CSFQ never marks",
    "docsis-pie": "for DOCSIS-PIE never marks",
}
_OVERLOAD = "for in overload all lose packets, whatever their ECN field"
_BLUE = "for BLUE's probability is against flows that do not answer: it drops whatever it meets"
_FULL = "for a packet that finds a full bin is dropped"
_RULES = {
    "fred": "for FRED drops all from max_th on",
    "pi2": f"{_OVERLOAD} (p_c is not below 1/k²)",
    "dualpi2": f"{_OVERLOAD} (p_c is not below 1/k²)",
    "curvy-red": f"{_OVERLOAD} (p_cl is 1)",
}
"""Of disciplines that mark, and drop ECN-capable packets for one reason alone."""


def not_marked(row: dict[str, Any], aqm: str, params: dict[str, Any]) -> str:
    """The reason; nothing if a mark could not be expected."""
    if row["ecn"] == "not-ect":
        return ""
    if row["dropped"] == "penalty":
        return "for who is limited loses packets, whatever their ECN field"
    if row["dropped"] != "early":
        return ""
    if params.get("ecn") is False:
        return "for ecn = false: every signal is a drop"
    if aqm in _NEVER:
        return _NEVER[aqm]
    return _by_probability(row, params) or _by_rule(row, aqm, params)


def _by_probability(row: dict[str, Any], params: dict[str, Any]) -> str:
    """PIE marks below a probability: of the queue, not that of a packet of this length."""
    p, most = row.get("found_p_d"), params.get("mark_ecnth")
    if p is None or most is None or p < most:
        return ""
    return (
        f"for p = {number(p, 4)} is not below mark_ecnth = {number(most, 4)}: from there on "
        "everybody loses packets"
    )


def _by_rule(row: dict[str, Any], aqm: str, params: dict[str, Any]) -> str:
    p, hit = row["p"], row["p"] is not None and row["coin"] < row["p"]
    if aqm in {"cobalt", "cake"}:
        return _BLUE if hit else "for a later acknowledgement says all that it says"
    if aqm in {"sfb", "sfred"}:
        return "for so low a coin drops (mark_up_to)" if hit else _FULL
    if p is None and params.get("above_max") == "drop":
        return "for above_max = drop: where every packet is signalled all are dropped"
    return _RULES.get(aqm, "")
