"""Writing a picture: PNG, SVG, PDF or PGF, its points as CSV, and an SVG to put into a page."""

from __future__ import annotations

import re
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import matplotlib as mpl
import polars as pl
from matplotlib.backends import backend_pgf
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.textpath import text_to_path

from bluewater.errors import InputError
from bluewater.files import PICTURES, check_ending, whole
from bluewater.plots.style import GRID, INK, RC, on_dark, palette
from bluewater.text import tex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    from bluewater.plots.draw import Drawable

_PLAIN = {
    "png": {"Software": None},
    "svg": {"Creator": None, "Date": None, "Format": None, "Type": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
"""Metadata without a tool's name and date, so that the same numbers give the same bytes."""
_PRINTED = 300
"""Dots per inch of a PNG that is printed."""
_OTHERS = (".jpg", ".jpeg", ".eps", ".ps", ".tif", ".tiff", ".gif", ".webp", ".bmp", ".csv")
"""Endings that mean a format; a name may contain other dots."""


_UNSEEN = (
    re.compile(r"<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r" font-family: [^;]*;"),  # the page's
    re.compile(r' transform="rotate\(-?0 [^"]*"'),
    re.compile(r"(?<=>)\s+(?=<)"),
)
_REFERENCE = re.compile(r"#([A-Za-z0-9_-]+)")
_NAME = re.compile(r' id="([^"]*)"')
_PLACE = re.compile(r' (?:d|x|y)="[^"]*"')
_STYLE = re.compile(r' style="([^"]*)"')
_EVERYWHERE = re.compile(r"<defs><style[^>]*>(.*?)</style></defs>", re.DOTALL)
_TOLD = re.compile(r'<g id="told">.*?</g>', re.DOTALL)
_VIEW = re.compile(r'(viewBox="0 0 [0-9.]+ )([0-9.]+)"')
_LONG = re.compile(r"-?[0-9]+\.[0-9]{2,}")


def _shorter(found: re.Match[str]) -> str:
    """Rounds a length to a tenth of a point: finer would cost bytes that nobody sees."""
    return f"{float(found[0]):.1f}".removesuffix(".0")


def colours() -> str:
    """The style sheet of the lines' colours, for a light page and a dark one, and of legends."""
    light = "".join(f"--c{each[1:]}:{each};" for each in palette())
    dark = "".join(f"--c{each[1:]}:{on_dark(each)};" for each in palette())
    keys = "".join(f".c{each[1:]}{{background:var(--c{each[1:]})}}" for each in palette())
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{keys}"


def save(
    figure: Figure, points: Sequence[Drawable], stem: Path, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Writes a picture.

    Args:
        figure: The picture.
        points: Its panels, with a row for each point.
        stem: A file, whose ending says its format (PNG, SVG, PDF, PGF); or a name without an
            ending, for the ``formats`` and the points as CSV.
        formats: Endings without the dot. Each takes about as long as all else of a picture.
    """
    if not stem.name:
        raise InputError(
            "not a name for a picture", key="path", value=str(stem), allowed="a file's"
        )
    ending = stem.suffix.lower()
    if ending in PICTURES or ending in _OTHERS:
        check_ending(stem, PICTURES, "a picture")
        _write(figure, stem)
        return [stem]
    written = [stem.with_name(f"{stem.name}.{each}") for each in formats]
    for path in written:
        _write(figure, path)
    table = stem.with_name(f"{stem.name}.csv")
    rows = pl.concat(
        [panel.points.select(pl.lit(panel.title).alias("panel"), pl.all()) for panel in points],
        how="diagonal_relaxed",
    )
    with whole(table) as temporary:
        rows.write_csv(temporary)
    return [*written, table]


def _write(figure: Figure, path: Path) -> None:
    ending = path.suffix.lower().removeprefix(".")
    with mpl.rc_context(RC), whole(path) as temporary:
        if ending == "pgf":
            with _without_tex():
                figure.savefig(temporary, facecolor="white")
        else:
            dpi = _PRINTED if getattr(figure, "for_paper", False) else RC["savefig.dpi"]
            figure.savefig(temporary, facecolor="white", metadata=_PLAIN[ending], dpi=dpi)


@contextmanager
def _without_tex() -> Iterator[None]:
    """Lets Matplotlib write PGF without LaTeX.

    Matplotlib asks LaTeX for the size of each text, and would read texts as LaTeX commands. Here
    texts have their size in the other formats, and LaTeX's special characters are escaped.
    """

    def measured(
        renderer: RendererPgf, text: str, prop: FontProperties, _: bool
    ) -> tuple[float, ...]:
        points = text_to_path.get_text_width_height_descent(text, prop, False)
        return tuple(each * renderer.dpi / 72 for each in points)

    with (
        patch.object(RendererPgf, "get_text_width_height_descent", measured),
        patch.object(backend_pgf, "_tex_escape", tex),
        mpl.rc_context({"pgf.rcfonts": False}),
    ):
        yield


def share_styles(pictures: Sequence[dict[str, Any]]) -> str:
    """Replaces styles inside each ``svg`` by classes; returns the style sheet of the classes.

    Otherwise a third of a report would repeat the same few styles, once per mark.
    """
    classes: dict[str, str] = {}
    everywhere: dict[str, None] = {}

    def shared(found: re.Match[str]) -> str:
        return f' class="{classes.setdefault(found[1], f"s{len(classes)}")}"'

    for picture in pictures:
        everywhere |= dict.fromkeys(_EVERYWHERE.findall(picture["svg"]))
        picture["svg"] = _STYLE.sub(shared, _EVERYWHERE.sub("", picture["svg"]))
    # CSS rules for a reused part of a picture cannot select elements around the picture.
    rules = [rule.strip().replace("*", "figure svg", 1) for rule in everywhere]
    rules += [f".{name}{{{style}}}" for style, name in classes.items()]
    return "".join(rules)


def page_name(path: Path) -> str:
    """The prefix of a picture's names: names must be unique on a page."""
    return "p" + sha256(f"{path.parent.name}/{path.stem}".encode()).hexdigest()[:6]


def inline_svg(path: Path, label: str, foot: float = 0.0) -> str:
    """A saved SVG as an element that takes its ink, grid and background from the page around it.

    Args:
        path: The file.
        label: Its description, for screen readers.
        foot: Height in points of the text below it, which the page writes itself.
    """
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = _TOLD.sub("", text)
    text = _VIEW.sub(lambda at: f'{at[1]}{float(at[2]) - foot:g}"', text, count=1)
    text = text.replace(INK, "var(--ink)").replace(GRID, "var(--grid)")
    for colour in palette():
        text = text.replace(colour, f"var(--c{colour[1:]})")
    text = _PLACE.sub(lambda found: _LONG.sub(_shorter, found[0]), text)
    for left_out in _UNSEEN:
        text = left_out.sub("", text)
    # A part without references needs no name.
    own = page_name(path)
    referred = set(_REFERENCE.findall(text))
    used = [name for name in dict.fromkeys(_NAME.findall(text)) if name in referred]
    names = {name: f"{own}-{number}" for number, name in enumerate(used)}
    text = _NAME.sub(lambda at: f' id="{names[at[1]]}"' if at[1] in names else "", text)
    text = _REFERENCE.sub(lambda at: f"#{names.get(at[1], at[1])}", text)
    text = text.replace("<g>", f'<g id="{own}">', 1)
    text = text.replace("fill: #ffffff", "fill: none")
    for size in ("width", "height"):
        text = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", text, count=1)
    escaped = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg", f'<svg role="img" aria-label="{escaped}"', 1)
