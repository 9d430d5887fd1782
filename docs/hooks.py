"""The site's build, and what its pages take from the code: tables at markers.

``make tables`` calls this as a program, which writes the tables into the pages' files: a page is
whole wherever it is read. A test compares them with the code. A marker stands alone on its line,
``<!-- KIND -->`` or ``<!-- KIND:NAME -->``, and its table ends at ``<!-- end -->``:

- ``parameters:blue``: the parameters of a queue discipline;
- ``catalog:aqms``: what there is of a kind; queue disciplines are linked from their own folder;
- ``scenario``: the keys of scenario files but for those of traffic, from their JSON Schema;
- ``traffic:tfrc``: the keys of ``[[traffic]]`` that are for a transport or application, or, with
  ``any``, for each; ``traffic:step`` those of its ``step``;
- ``cli``: every command with its arguments and options;
- ``experiments``: the papers' experiments;
- ``claims``: all claims with these verdicts;
- ``tables``: the tables of a run, linked to their columns;
- ``columns:flows``: the columns of one of them;
- ``results``: how many of the papers' claims hold, by the verdicts that ``make verdicts`` keeps;
  README has it as well;
- ``measured:one``: a table that ``make measure`` or ``scripts/suites.py`` wrote, its disciplines
  linked;
- ``golden``: the pinned scenarios with their decision hashes;
- ``notebook:figure``: the cells of a notebook;
- ``cost``: the table that ``make cost`` wrote.

How many comparisons of validation hold is taken from ``validation-table.md``, which `make validate`
writes: into the rows of the table of ``validation.md``, and wherever README and the first page say
``N of M comparisons``.

``structure:sim``, what imports what in a crate, among the ``crates``, or in ``python``, is drawn as
the site is built.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structure

from bluewater import _core, catalog, schema
from bluewater.results.result import TABLES
from bluewater.study.experiments.experiment import known, load
from bluewater.study.experiments.together import ALL, ONCE
from bluewater.study.experiments.verdicts import kept

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = version("bluewater")
MARKER = re.compile(
    r"^<!-- (?!end)([a-z]+)(?::([a-z0-9_-]+))? -->$(?:\n(?:(?!<!-- ).*\n)*<!-- end -->$)?",
    re.MULTILINE,
)
AT_BUILD = "structure"
ROOT = Path(__file__).parent


def on_config(config: Any) -> None:
    """Adds the pages of queue disciplines and, beside other versions, a choice of them."""
    families: dict[str, list[dict[str, str]]] = {}
    for entry in catalog()["aqms"]:
        page = {entry["name"]: f"algorithms/{entry['name']}.md"}
        families.setdefault(entry["family"], []).append(page)
    (pages,) = below(config.nav, "Queue disciplines")
    pages += [{family: members} for family, members in families.items()]
    if "MIKE_DOCS_VERSION" in os.environ:  # `make version`
        config.extra["version"] = {"provider": "mike"}


def below(nav: list[Any], title: str) -> Iterator[list[Any]]:
    """The entries below each heading of that title, at any depth of the navigation."""
    for entry in nav:
        for heading, entries in entry.items() if isinstance(entry, dict) else ():
            if isinstance(entries, list):
                if heading == title:
                    yield entries
                yield from below(entries, title)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs calls this for each page."""
    return MARKER.sub(lambda m: _structure(m[2]) if m[1] == AT_BUILD else m[0], markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Says below each page which version it is of, and when it was changed last."""
    said = " · ".join(filter(None, (f"Bluewater {VERSION}", changed(page.file.abs_src_path))))
    return f'{html}<p class="revised"><small>{said}</small></p>'


def changed(path: str) -> str:
    """The day of a file's last commit, if that is known."""
    command = ["git", "log", "-1", "--format=%cs", "--", path]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return run.stdout.strip()


def filled(markdown: str) -> str:
    """The page with the table of today at every marker.

    Raises:
        KeyError: There is no such kind of tables.
    """
    return MARKER.sub(_filled, markdown)


def _filled(found: re.Match[str]) -> str:
    kind, name = found[1], found[2] or ""
    if kind == AT_BUILD:
        return found[0]
    marker = f"<!-- {kind}:{name} -->" if name else f"<!-- {kind} -->"
    return f"{marker}\n\n{_TABLES[kind](name).strip()}\n\n<!-- end -->"


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *([_cell(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split()) or "–"


def _code(text: Any) -> str:
    return f"`{text}`" if str(text) else ""


def _parameters(name: str) -> str:
    entry = next(each for each in catalog()["aqms"] if each["name"] == name)
    rows = [
        [
            _code(each["name"]),
            _code(each["default"]),
            _words(each["allowed"]),
            each["unit"],
            each["doc"],
            each["source"],
        ]
        for each in entry["parameters"]
    ]
    if not rows:
        return "It has no parameters.\n"
    parameters = table(["parameter", "default", "allowed", "units", "meaning", "source"], rows)
    if entry["live"]:
        live = ", ".join(map(_code, entry["live"]))
        change = "[change during a run](../formats.md#queuechange-parameters-that-change)"
        parameters += f"\nThese may {change}: {live}.\n"
    if not entry["presets"]:
        return parameters
    rows = [[_code(each["name"]), _code(each["settings"])] for each in entry["presets"]]
    return parameters + "\n" + table(["preset", "stands for"], rows)


def _words(allowed: str) -> str:
    """A list of words as code, anything else as it is."""
    words = allowed.split(" | ")
    return ", ".join(map(_code, words)) if len(words) > 1 else allowed


def _catalog(kind: str) -> str:
    if kind == "aqms":
        rows = [
            [_page(each["name"]), each["summary"], each["source"]] for each in catalog()["aqms"]
        ]
        return table(["name", "what it does", "source"], rows)
    return table(
        ["name", "what it is"], [[_code(each["name"]), each["summary"]] for each in catalog()[kind]]
    )


def _page(name: str) -> str:
    there = (ROOT / "algorithms" / f"{name}.md").exists()
    return f"[{name}]({name}.md)" if there else _code(name)


def _experiments(_: str) -> str:
    rows = []
    for experiment in map(load, known()):
        ours = sum(claim.origin == "ours" for claim in experiment.claims)
        theirs = len(experiment.claims) - ours
        claims = ", ".join(filter(None, (f"{theirs or ''}", f"{ours} ours" if ours else "")))
        source = " ".join(filter(None, (experiment.paper.cite, experiment.about.figure)))
        rows.append([_code(experiment.id), experiment.title, source, claims])
    return table(["name", "title", "source", "claims"], rows)


_SUBJECTS = {
    "Feng02": "BLUE and SFB",
    "HRC": "FRED, BLUE, SFB and CHOKe",
    "BLUE report": "BLUE in ns-2",
    "Mahajan01": "RED-PD",
}


def _results(_: str) -> str:
    held = kept()
    if not held.table:
        return ""
    papers = [name if name != ALL else "all" for name, _ in held.table]
    # A column for each paper, not a row: so it fits a phone.
    rows = [["subject", *(_SUBJECTS.get(name, "") for name in papers)]]
    rows += [
        [name, *map(str, counts)]
        for name, *counts in zip(ONCE, *(counts for _, counts in held.table), strict=False)
    ]
    claims, stand, another, hindsight, fitted, left, contradicted, every, single = held.table[-1][1]
    some = stand + another + hindsight + fitted
    return table(["paper", *papers], rows) + (
        f"\n**{stand} of {claims} claims ({100 * stand / claims:.0f} %) hold *as they stand*:** "
        f"in the standard reading, and not fitted. {another} hold in another reading, which a "
        f"source supports. {hindsight + fitted} hold but are fitted, so they are no evidence. "
        f"{hindsight} of these hold *only in hindsight*: only in readings that we chose with the "
        "results in view. "
        f"{left} claims are *open*: they fail or hold in part, without a proof. {contradicted} are "
        f"*contradicted*: a proof shows that they are false. Each claim counts once.\n\n"
        f"Fitted or not, {every} claims hold in the standard reading, and {some} "
        f"({100 * some / claims:.0f} %) in some reading. Where all claims of a paper's section "
        f"share one reading, {single} hold.\n"
    )


def _claims(_: str) -> str:
    """Every claim of a paper and then ours, with what the full size says of it."""
    evidence = re.findall(r"^### (\S+ \S+)$", (ROOT / "evidence.md").read_text("utf-8"), re.M)
    papers, ours = [], []
    for made in map(load, known()):
        for claim in made.claims:
            held = kept().of(made.id, claim)
            if held is None:
                continue
            name = f"{made.id} {claim.id}"
            anchor = re.sub(r"[^a-z0-9 -]", "", name).replace(" ", "-")
            found = f"[{held.verdict}](evidence.md#{anchor})" if name in evidence else held.verdict
            where = papers if claim.origin == "paper" and not made.paper.suite else ours
            where.append(
                [
                    made.paper.cite,
                    name,
                    claim.text,
                    found,
                    held.measured,
                    f"{claim.holds.told} {claim.unit}".rstrip(),
                    ", ".join(held.under) if held.under else "standard",
                    "fitted" if held.fitted else "",
                ]
            )
    columns = ["paper", "claim", "statement", "verdict", "value", "holds if", "reading", "fitted"]
    return f"{table(columns, papers)}\n## Claims of ours\n\n{table(columns, ours)}"


def _tables(_: str) -> str:
    pages = dict.fromkeys(("skew", "persistence"), "traces.md")
    rows = [
        [f"[`{name}`]({pages.get(name, 'metrics.md')}#{name.replace('_', '-')})", what]
        for name, what in TABLES.items()
    ]
    return table(["table", "what it has"], rows)


def _columns(name: str) -> str:
    found = next(each for each in _core.tables() if each["name"] == name)
    rows = [
        [", ".join(map(_code, each["names"])), each["unit"], each["doc"]]
        for each in found["columns"]
    ]
    return table(["column", "unit", "meaning"], rows)


def _cost(_: str) -> str:
    return (ROOT / "measured" / "cost.md").read_text(encoding="utf-8")


def _golden(_: str) -> str:
    tests = ROOT.parent / "crates" / "sim" / "tests"
    pins = re.findall(r'\("([\w-]+)", "([0-9a-f]{16})"\)', (tests / "golden.rs").read_text("utf-8"))
    rows = [[_code(name), _code(each)] for name, each in pins]
    return table(["scenario", "decision hash"], rows)


def _measured(name: str) -> str:
    lines = (ROOT / "measured" / f"{name}.md").read_text(encoding="utf-8").splitlines(keepends=True)
    rows = (re.sub(r"^\| ([a-z0-9-]+)", _linked, line) for line in lines[2:])
    return "".join([*lines[:2], *rows])


def _linked(found: re.Match[str]) -> str:
    page = _page(found[1])
    return "| " + (page.replace("](", "](algorithms/") if page.startswith("[") else found[1])


# --- scenario files, from their schema

_SECTIONS = [
    ("", "The top of the file"),
    ("Network", "`[network]`: a preset and what is changed of it"),
    ("LinkSpec", "`[[link]]`: a network of your own"),
    ("Course", "`rate_trace`, `delay_trace`, `loss_trace` of a link: values over time"),
    ("WifiSpec", "`wifi` of a link: an access point and its stations"),
    ("StationSpec", "`station` of `wifi`"),
    ("DocsisSpec", "`docsis` of a link: a cable modem's upstream"),
    ("QueueSpec", "`[[queue]]`: a managed queue"),
    ("SwitchSpec", "`[[switch]]`: queues that share a buffer"),
    ("ClassSpec", "`[[queue.class]]`: a class of a queue's tree"),
    ("ChangeSpec", "`[[queue.change]]`: parameters that change"),
    ("EventSpec", "`[[event]]`: what changes when a flow enters a phase"),
    ("When", "`when` of an event"),
    ("AutorateSpec", "`[[autorate]]`: what sets the rates of shapers"),
    ("ShaperSpec", "`down` and `up` of an autorate: a shaper"),
    ("Measure", "`[measure]`: what is sampled"),
]


def _scenario(_: str) -> str:
    root = json.loads(schema())
    kinds = root["$defs"]
    parts = []
    for name, title in _SECTIONS:
        parts.append(f"### {title}\n\n{_keys(kinds[name] if name else root, kinds)}")
    return "\n".join(parts)


def _traffic(name: str) -> str:
    kinds = json.loads(schema())["$defs"]
    # Each transport and application has its keys under its own name.
    return _keys(kinds[{"any": "TrafficSpec", "step": "StepSpec"}.get(name, name)], kinds)


def _keys(section: dict[str, Any], kinds: dict[str, Any]) -> str:
    required = set(section.get("required", ()))
    rows = [
        [
            _code(key),
            _kind(entry, kinds),
            "required" if key in required else _default(entry),
            entry.get("description", ""),
        ]
        for key, entry in section["properties"].items()
    ]
    return table(["key", "value", "default", "meaning"], rows)


def _kind(entry: dict[str, Any], kinds: dict[str, Any]) -> str:
    """What a key takes, in words."""
    if "$ref" in entry:
        return _reference(kinds[entry["$ref"].rpartition("/")[2]], kinds)
    if "enum" in entry:
        return ", ".join(map(_code, entry["enum"]))
    if "anyOf" in entry:
        found = [_kind(each, kinds) for each in entry["anyOf"] if each != _NULL]
        same = found[1:] == [f"a list, each {found[0]}"]
        return f"{found[0]}; or a list of these" if same else " or ".join(found)
    kind = entry.get("type")
    if isinstance(kind, list):
        kind = next(each for each in kind if each != "null")
    if "prefixItems" in entry:
        return "a list of " + " and ".join(_kind(each, kinds) for each in entry["prefixItems"])
    if kind == "array":
        item = _kind(entry["items"], kinds)
        return "a list of tables" if item == "a table" else f"a list, each {item}"
    return _TYPES.get(str(kind), "text" if "pattern" in entry else "")


def _reference(kind: dict[str, Any], kinds: dict[str, Any]) -> str:
    if "oneOf" in kind:
        return ", ".join(_code(word["const"]) for word in kind["oneOf"])
    if "pattern" in kind:
        return str(kind["description"])
    return _kind(kind, kinds)


_NULL = {"type": "null"}
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "`true` or `false`",
    "object": "a table",
}


def _default(entry: dict[str, Any]) -> str:
    value = entry.get("default")
    if value is None or isinstance(value, dict | list):
        return ""
    return _code(json.dumps(value))


# --- the command line


def _cli(_: str) -> str:
    import typer.main  # noqa: PLC0415 - with all of the command line behind it

    from bluewater.cli import app  # noqa: PLC0415

    group: Any = typer.main.get_command(app)
    return "\n".join(_command(name, command) for name, command in group.commands.items())


def _command(name: str, command: Any) -> str:
    if hasattr(command, "commands"):
        return "\n".join(
            _command(f"{name} {below}", each) for below, each in command.commands.items()
        )
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(["bluewater", name, *map(_placeholder, arguments), "[OPTIONS]"])
    rows = [[_code(_placeholder(each)), each.help or "", _shown(each)] for each in arguments]
    rows += [
        [", ".join(map(_code, [*each.opts, *each.secondary_opts])), each.help or "", _shown(each)]
        for each in options
        if "--help" not in each.opts
    ]
    help_ = re.sub(r"^ +", "", command.help, flags=re.MULTILINE)
    return (
        f"## {name}\n\n{help_}\n\n```text\n{usage}\n```\n\n"
        f"{table(['argument or option', 'meaning', 'default'], rows)}"
    )


def _placeholder(argument: Any) -> str:
    name = argument.name.strip("_").upper()
    name += "..." if argument.nargs != 1 else ""
    return name if argument.required else f"[{name}]"


def _shown(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    value = parameter.default
    if parameter.required or value is None or value is False or callable(value):
        return ""
    return _code(value) if value is not True else "on"


def _notebook(name: str) -> str:
    """The cells of a notebook, which is kept without what they print."""
    whole = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    shown = []
    for cell in whole["cells"]:
        text = "".join(cell["source"])
        # Headings are the page's, and links are from the notebook's folder.
        plain = re.sub(r"^# ", "### ", text, flags=re.MULTILINE).replace("](../", "](")
        shown.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else plain)
    return "\n\n".join(shown) + "\n"


# --- how many comparisons of validation hold

_TESTBED = "A testbed"
"""The group that pages count apart: somebody else's measurement of real hosts."""

_COMPARED = {
    "#against-closed-forms": ("M/D/1", "D/D/1", "TCP under", "DCTCP under"),
    "#against-ns-235": ("ns-2.35",),
    "#against-linux": ("Linux 6.1",),
    "#cake-of-linux": ("CAKE of",),
    "#tcp-of-linux": ("TCP of",),
    "#bbr-of-linux": ("BBR of",),
    "#dctcp-of-linux": ("DCTCP of",),
    "#prague-of-its-authors": ("Prague of",),
    "#a-testbed-of-linux-hosts": (_TESTBED,),
}
"""The groups of the table of all comparisons, by how they begin, that a row counts."""


def compared() -> dict[str, tuple[int, int]]:
    """How many comparisons of each group hold, and how many there are."""
    text = (ROOT / "validation-table.md").read_text(encoding="utf-8")
    counts = {}
    for group in text.split("\n### ")[1:]:
        found = re.findall(r"\| (holds|\*\*differs\*\*) \|$", group, re.MULTILINE)
        counts[group.partition("\n")[0]] = (found.count("holds"), len(found))
    return counts


def counted(markdown: str) -> str:
    """The page with the numbers of comparisons that the table of all has."""
    groups = compared()
    programs = [count for name, count in groups.items() if not name.startswith(_TESTBED)]
    whole = [sum(column) for column in zip(*programs, strict=True)]
    markdown = re.sub(
        r"\d+ of \d+ comparisons\b", f"{whole[0]} of {whole[1]} comparisons", markdown
    )
    for anchor, begins in _COMPARED.items():
        found = [count for name, count in groups.items() if name.startswith(begins)]
        holds, of = (sum(column) for column in zip(*found, strict=True))
        markdown = re.sub(
            rf"^(\| \[[^|]*\({anchor}\)[^|]*\| )\d+( [^|]*\| )(?:all|\d+)\b",
            rf"\g<1>{of}\g<2>{'all' if holds == of else holds}",
            markdown,
            flags=re.MULTILINE,
        )
    return markdown


_TABLES = {
    "parameters": _parameters,
    "catalog": _catalog,
    "experiments": _experiments,
    "results": _results,
    "claims": _claims,
    "tables": _tables,
    "columns": _columns,
    "cost": _cost,
    "golden": _golden,
    "measured": _measured,
    "scenario": _scenario,
    "traffic": _traffic,
    "cli": _cli,
    "notebook": _notebook,
}


def _structure(name: str) -> str:
    return structure.picture(structure.named(name))


if __name__ == "__main__":
    for each in [*sorted(ROOT.glob("**/*.md")), ROOT.parent / "README.md"]:
        before = each.read_text(encoding="utf-8")
        now = filled(before)
        if each.name in ("README.md", "index.md", "validation.md"):
            now = counted(now)
        if now != before:
            each.write_text(now, encoding="utf-8")
            print(each.relative_to(ROOT.parent))
