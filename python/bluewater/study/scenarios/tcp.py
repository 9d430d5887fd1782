"""The TCP variants and QUIC stacks to choose from, and modern TCP."""

from __future__ import annotations

from functools import cache
from typing import Any

from bluewater import _core
from bluewater.errors import unknown
from bluewater.own import LANGUAGE
from bluewater.study.scenarios.scenario import Scenario

TCPS = tuple(each["name"] for each in _core.catalog()["transports"] if each["tcp"])
"""The transports that are TCP."""

STACKS = tuple(each["name"] for each in _core.catalog()["transports"] if each["quic"])
"""The transports that are QUIC; one may name its controller, as ``quinn:cubic``."""

OWN = (LANGUAGE, "rust:")
"""Prefix of the names of users' controllers."""

PRESETS = ("linux", "modern")
"""The presets of TCP."""


def _is_tcp(transport: str) -> bool:
    return transport in TCPS or transport.startswith(OWN)


def check(transport: str, key: str = "transport") -> None:
    """Refuses a transport that is not TCP; a user's controller counts as TCP.

    Raises:
        InputError: There is no such TCP.
    """
    if not _is_tcp(transport):
        raise unknown("TCP", transport, TCPS, key=key)


def bulk(transport: str, key: str) -> dict[str, Any]:
    """The keys of a group for TCP, or for a QUIC stack with or without its controller.

    Raises:
        InputError: There is no such TCP and no such stack.
    """
    stack, _, control = transport.partition(":")
    if stack in STACKS:
        return {"transport": stack, **({"control": control} if control else {})}
    if not _is_tcp(transport):
        raise unknown("TCP or QUIC stack", transport, (*TCPS, *STACKS), key=key)
    return {"transport": transport}


def preset(name: str, transport: str) -> dict[str, Any]:
    """The keys of a group with a preset, if its transport has one.

    Raises:
        InputError: There is no such preset.
    """
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS, key="preset")
    return {"preset": name} if _takes(transport, name) else {}


@cache
def _takes(transport: str, name: str) -> bool:
    """Whether the core knows the preset for a transport."""
    if transport.startswith(OWN):
        return True
    group = {"transport": transport, "preset": name, "ecn": True}
    try:
        Scenario(
            duration="1s", network={"preset": "dumbbell"},
            queue=[{"aqm": "droptail", "buffer": "10p"}], traffic=[group],
        )  # fmt: skip
    except _core.ScenarioError:
        return False
    return True
