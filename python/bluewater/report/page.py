"""Templates of the pages, and the mark-up of prose in them."""

from __future__ import annotations

import re
from functools import cache

import jinja2
from markupsafe import Markup, escape

from bluewater.plots.files import colours


@cache
def environment() -> jinja2.Environment:
    """The environment that loads the templates."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("bluewater.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["prose"] = _prose
    made.filters["halves"] = _halves
    made.globals["colours"] = colours()
    return made


def _prose(text: str) -> Markup:
    """Text with `code` in backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


_END = re.compile(r"(?<=[a-z0-9)%`”])[.!?] (?=[A-Z`])")
_SHORT = re.compile(r"(?:\b(?:[Ff]igs?|[Ss]ecs?|[Ee]qs?|al|vs|cf|[Nn]o|pp?|e\.g|i\.e))$")


def _halves(text: str) -> tuple[str, str]:
    """The first sentence of a text, and the rest."""
    text = " ".join(text.split())
    for end in _END.finditer(text):
        first = text[: end.start()]
        if not _SHORT.search(first) and first.count("`") % 2 == 0:
            return text[: end.start() + 1], text[end.end() :]
    return text, ""
