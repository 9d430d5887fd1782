"""Which TCP there is to choose from, and TCP as it is today."""

from __future__ import annotations

from functools import cache
from typing import Any

from bluewater import _core
from bluewater.errors import unknown
from bluewater.own import LANGUAGE
from bluewater.study.scenarios.scenario import Scenario

TCPS = tuple(each["name"] for each in _core.catalog()["transports"] if each["tcp"])
"""The transports that are TCP."""

OWN = (LANGUAGE, "rust:")
"""What the names of controllers of one's own begin with."""

PRESETS = ("linux", "modern")
"""The sets of keys of TCP."""


def check(transport: str, key: str = "transport") -> None:
    """Refuses what is no TCP; one with a controller of one's own is.

    Raises:
        InputError: There is no such TCP.
    """
    if transport not in TCPS and not transport.startswith(OWN):
        raise unknown("TCP", transport, TCPS, key=key)


def preset(name: str, transport: str) -> dict[str, Any]:
    """The keys of a group that has a preset, if there is one for its transport.

    Raises:
        InputError: There is no such preset.
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS, key="preset")
    return {"preset": name} if _takes(transport, name) else {}


@cache
def _takes(transport: str, name: str) -> bool:
    """Whether the core knows the preset for a transport."""
    group = {"transport": transport, "preset": name, "ecn": True}
    try:
        Scenario(
            duration="1s", network={"preset": "dumbbell"},
            queue=[{"aqm": "droptail", "buffer": "10p"}], traffic=[group],
        )  # fmt: skip
    except _core.ScenarioError:
        return False
    return True
