"""What the pages of this package share: templates, and how prose is written in them."""

from __future__ import annotations

import re
from functools import cache

import jinja2
from markupsafe import Markup, escape

from bluewater.plots.files import colours


@cache
def environment() -> jinja2.Environment:
    """Where templates come from."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("bluewater.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["prose"] = _prose
    made.globals["colours"] = colours()
    return made


def _prose(text: str) -> Markup:
    """Text with `code` in backticks."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
