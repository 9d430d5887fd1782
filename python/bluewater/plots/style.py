"""The one look of every picture: sizes, inks, and which line gets which colour.

People with any common colour blindness can distinguish the colours: RED's configurations are warm
and BLUE's cool, members of a family also differ in lightness and marker, and everything else
follows Okabe and Ito. Every colour has a contrast of at least 2.5 to white; a dark page shows them
lightened (:func:`on_dark`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bluewater.errors import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

INK = "#1f2933"
GRID = "#d5dbe1"
"""Colours of text, grid and background, which a report replaces by the page's own."""

_WARM = ("#b3261e", "#e0631b", "#d99a00", "#a8744f")
_COOL = ("#1b5fc1", "#0b93b8", "#16957a", "#6a6fd1")
_OTHER = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#b8860b",
    "#56b4e9",
    "#7f7f7f",
    "#8e6bbf",
    "#5f9e3a",
)
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
_NAMED = {"red": _WARM[0], "blue": _COOL[0], "droptail": "#7f7f7f", "drop-front": "#16957a",
          "random-drop": "#b8860b", "ared": _WARM[1], "ared-feng": _WARM[2], "sfb": _COOL[1],
          "sfred": _WARM[3], "fred": _WARM[2], "a-choke": "#009e73", "udp": _WARM[0],
          "tcp": _COOL[0], "total": "#7f7f7f", "measured": _COOL[0],
          "report": "#7f7f7f"}  # fmt: skip
_NUMBERED = re.compile(r"([RB])([1-9])\b.*")
_FAMILY = re.compile(r"(red|blue)\b.*", re.IGNORECASE)

_ALIKE = 45
"""Colours closer than this, in parts of 255, count as one."""

_CARD = "#1a222b"
"""Background of the dark page."""
_READABLE = 4.5
"""Contrast of a line to that background (WCAG 2.2: 3 for graphics, 4.5 for text)."""


def palette() -> list[str]:
    """Every colour that a line may have."""
    return sorted({*_WARM, *_COOL, *_OTHER, *_NAMED.values()})


def on_dark(colour: str) -> str:
    """The colour, lightened until it can be read on the dark page."""
    channels = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    for step in range(21):
        lighter = [round(each + (255 - each) * step / 20) for each in channels]
        text = "#" + "".join(f"{each:02x}" for each in lighter)
        if contrast(text, _CARD) >= _READABLE:
            return text
    return "#ffffff"


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 … 21 (WCAG 2.2)."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


RC: Any = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    # Keep text as text in an SVG: it can be searched, and takes a tenth of its outlines' size.
    "font.family": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    # The default place; naming it spares a search among all tick labels at each draw.
    "axes.titley": 1.0,
    "axes.labelsize": 9.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    # Users name variants freely: a dollar sign is no mathematics.
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.7,
    "lines.markersize": 4.5,
    "svg.hashsalt": "bluewater",
    "svg.fonttype": "none",
    # Publishers reject Type 3 fonts.
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Size:
    """The size of a picture: for a screen or a paper.

    Attributes:
        width: Width of the whole picture, in inches; by default as its panels need.
        font: Font size of its text, in points.
        line: Width of lines, in points.
    """

    width: float | None = None
    font: float = 9.5
    line: float = 1.7

    @property
    def rc(self) -> Any:
        """The look at this size."""
        if self.width is None:
            return RC
        return RC | {
            "font.size": self.font,
            "axes.titlesize": self.font,
            "axes.labelsize": self.font,
            "xtick.labelsize": self.font - 1,
            "ytick.labelsize": self.font - 1,
            "legend.fontsize": self.font - 1,
            "axes.linewidth": 0.6,
            "grid.linewidth": 0.4,
            "lines.linewidth": self.line,
            "lines.markersize": 3.4,
        }


SCREEN = Size()
SIZES = {"column": Size(3.5, 8, 1.2), "page": Size(7.16, 8, 1.2)}
"""Sizes for a two-column paper (IEEE's): one column wide, and across both."""


def sized(name: str | None) -> Size:
    """The size with this name; the screen's without a name.

    Raises:
        InputError: There is no such size.
    """
    if name is None:
        return SCREEN
    if name not in SIZES:
        raise unknown("size of a picture", name, SIZES)
    return SIZES[name]


@dataclass(frozen=True)
class Look:
    """How one line is drawn."""

    colour: str
    marker: str
    dash: Any = "-"


def shown(name: str) -> str:
    """The name as a label, with a class as the user types it for ``compare``.

    Matplotlib would omit a label that begins with an underscore.
    """
    name = name.removeprefix("python:")
    return f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name


def order(name: str) -> tuple[bool, list[str | int]]:
    """Sorts lines for legends: RED and its kin first, then by name, numbers in it by their size."""
    parts = re.split(r"([0-9]+)", name)
    natural = [int(part) if place % 2 else part for place, part in enumerate(parts)]
    return (not name.upper().startswith("R"), natural)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each line of a picture, no two alike.

    ``R1`` and ``B4`` are RED and BLUE configurations, ``BLUE B4, gentle`` belongs to BLUE: each has
    a colour of its family. Known names have their own colour, the others take the rest. When
    colours repeat, the lines are dashed.
    """
    taken: set[tuple[str, Any]] = set()
    found: dict[str, Look] = {}
    # Lines with a fixed colour first.
    for place, name in sorted(enumerate(names), key=lambda each: len(_colours(each[1]))):
        choices = [(colour, dash) for dash in _DASHES for colour in _colours(name)]
        free = [each for each in choices if each not in taken]
        apart = (each for each in free if not any(_are_alike(each, other) for other in taken))
        chosen = next(apart, (free or choices)[0])
        taken.add(chosen)
        found[name] = Look(chosen[0], MARKERS[place % len(MARKERS)], chosen[1])
    return {name: found[name] for name in names}


def _are_alike(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    """Whether two looks are nearly the same, as some members of a family of colours are."""
    if one[1] != other[1]:
        return False
    channels = [[int(each[0][at : at + 2], 16) for at in (1, 3, 5)] for each in (one, other)]
    return math.dist(*channels) < _ALIKE


def _colours(name: str) -> tuple[str, ...]:
    """The looks that a line may have; it takes the first free one."""
    if numbered := _NUMBERED.fullmatch(name):
        family, first = (_WARM if numbered[1] == "R" else _COOL), int(numbered[2]) - 1
        return (family[first % 4],)
    if own := _NAMED.get(name.lower()):
        return (own,)
    if kin := _FAMILY.fullmatch(name):
        return _WARM if kin[1].lower() == "red" else _COOL
    return _OTHER
