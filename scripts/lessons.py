#!/usr/bin/env python3
"""Puts the lessons into a folder that needs no network, and into a zip file: ``lessons.py OUT``."""

import html
import re
import shutil
import sys
from pathlib import Path

import markdown

DOCS = Path(__file__).parents[1] / "docs"
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="play.css">
<style>
body {{ font: 1rem/1.6 system-ui, sans-serif; color: #222; }}
body {{ max-width: 60rem; margin: 0 auto; padding: 1rem; }}
bluewater-play {{ font-size: 0.9rem; --play-top: 0; --play-chart: 15rem; }}
summary {{ cursor: pointer; font-weight: 600; }}
details {{ border-left: 3px solid #1c5fb8; padding-left: 1rem; }}
table {{ display: block; overflow-x: auto; }}
@media (prefers-color-scheme: dark) {{
body {{ background: #12181f; color: #e2e6ea; }}
a {{ color: #7fb4ff; }}
bluewater-play {{ --a: #ff9d5c; --b: #7fb4ff; --quiet: #aaa; background: #12181f; }}
bluewater-play .charts {{ background: #12181f; }}
}}
</style>
<script src="play.js"></script>
</head>
<body>
<nav><a href="index.html">All lessons</a></nav>
{body}
</body>
</html>
"""


def page(source: Path) -> str:
    """A lesson as a page of its own."""
    extensions = ["attr_list", "tables", "pymdownx.details"]
    body = markdown.markdown(source.read_text(), extensions=extensions)
    title = re.search(r"<h1>(.*?)</h1>", body)
    body = re.sub(r'href="([\w-]+)\.md"', r'href="\1.html"', body)
    return PAGE.format(title=title[1] if title else html.escape(source.stem), body=body)


def main(out: Path) -> None:
    """All of them."""
    out.mkdir(parents=True, exist_ok=True)
    for source in (DOCS / "lessons").glob("*.md"):
        (out / source.with_suffix(".html").name).write_text(page(source))
    for name in ("engine.js", "play.js", "play.css"):
        shutil.copy(DOCS / "play" / name, out)
    print(shutil.make_archive(str(out), "zip", out.parent, out.name))


main(Path(sys.argv[1]))
