"""The documentation keeps step: tables are filled in, columns described, the tutorial runs.

The tutorial's output blocks hold what its commands print. ``BLUEWATER_UPDATE_DOCS=1`` writes what
they print now into the page, to be read before it is committed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import unicodedata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import pytest
from conftest import of_docs
from nbclient import NotebookClient

import bluewater
from bluewater import _core, trace
from bluewater.results.result import SIMULATED
from bluewater.study.experiments.experiment import parse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("**/*.md"))

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here"),
]

BLOCK = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<code>.*?)^```$', re.M | re.S
)


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    return of_docs("hooks")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_table_is_that_of_the_code(page: Path, hooks: ModuleType) -> None:
    text = page.read_text("utf-8")
    filled = hooks.filled(text)
    assert filled == text, f"a table in {page.relative_to(ROOT)} is old: run `make tables`"
    assert ("<svg" in hooks.on_page_markdown(text)) == ("<!-- structure:" in text)
    width = 0
    for line in filled.splitlines():
        if re.match(r"\| ?---", line):
            width = line.count("|")
        elif line.startswith("| `"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert cells == width, line


def test_a_table_takes_the_place_of_the_old_one(hooks: ModuleType) -> None:
    page = "Before.\n\n<!-- parameters:blue -->\n\nAfter.\n\n<!-- golden -->\n"
    filled = hooks.filled(page)
    assert filled.startswith("Before.\n\n<!-- parameters:blue -->\n\n| parameter |")
    assert filled.count("\n\n<!-- end -->\n") == 2
    assert "\n\nAfter.\n\n<!-- golden -->\n\n| scenario |" in filled
    old = filled.replace("| `increment` |", "| `step` |")
    assert old != filled
    assert hooks.filled(old) == hooks.filled(filled) == filled
    with pytest.raises(KeyError):
        hooks.filled("<!-- parametres:blue -->\n")


def anchors(text: str) -> set[str]:
    """What can be linked to on a page, as MkDocs makes it of headings."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    found = set(re.findall(r'id="([^"]+)"|\{:? *#([\w-]+)', prose))
    named = {each for pair in found for each in pair if each}
    for heading in re.findall(r"^#+ (.+)$", prose, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        letters = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        words = re.sub(r"[^\w\s-]", "", letters).strip().lower()
        named.add(re.sub(r"[-\s]+", "-", words))
    return named


def test_every_anchor_is_there(hooks: ModuleType) -> None:
    """`make docs` says it, too, but only after the site is written, where nobody may look."""
    whole = [page for page in PAGES if page.parent.name != "measured"]  # those are parts of others
    pages = {page: hooks.filled(page.read_text("utf-8")) for page in whole}
    there = {page: anchors(text) for page, text in pages.items()}
    dead = []
    for page, text in pages.items():
        for file, anchor in re.findall(r"\]\(([\w./-]*)#([^)]+)\)", text):
            target = (page.parent / file).resolve() if file else page
            of_code = anchor.startswith("bluewater.")  # of docstrings
            if target in there and not of_code and anchor not in there[target]:
                dead.append(f"{page.name}: {file}#{anchor}")
    assert not dead


def test_every_algorithm_has_its_table_and_its_place(hooks: ModuleType) -> None:
    nav = ["index.md", {"Reference": [{"Queue disciplines": ["algorithms/index.md"]}]}]
    config = SimpleNamespace(nav=nav, extra={})
    hooks.on_config(config)
    placed = str(config.nav)
    for entry in bluewater.catalog()["aqms"]:
        page = DOCS / "algorithms" / f"{entry['name']}.md"
        filled = hooks.filled(page.read_text("utf-8"))
        assert f"'algorithms/{entry['name']}.md'" in placed
        for parameter in entry["parameters"]:
            assert f"| `{parameter['name']}` |" in filled


def test_every_algorithm_has_its_cost() -> None:
    """``make cost`` writes the table; also on a busy machine, with the times that it had."""
    table = (DOCS / "measured" / "cost.md").read_text("utf-8")
    counted = set(re.findall(r"^\| ([a-z0-9-]+) \| [0-9]+ \| [0-9]+ \|", table, re.M))
    assert counted == {entry["name"] for entry in bluewater.catalog()["aqms"]}


def test_each_fair_queue_meets_adversaries() -> None:
    """``make measure`` writes the table of what those gain that try to get more."""
    table = (DOCS / "measured" / "times.md").read_text("utf-8")
    for name in ("sfq", "drr", "fq-codel", "fq-pie", "cake", "dualpi2", "csfq", "fred", "sfb"):
        assert f"\n| {name} |" in table


def test_every_page_has_its_place() -> None:
    nav = (ROOT / "mkdocs.yml").read_text("utf-8")
    placed = {entry["name"] for entry in bluewater.catalog()["aqms"]}
    for page in PAGES:
        path = page.relative_to(DOCS)
        by_hand = path.parent.name != "algorithms" or path.stem not in placed
        assert (path.as_posix() in nav) == by_hand, page


def test_a_measured_row_leads_to_the_page_of_its_own_discipline(hooks: ModuleType) -> None:
    rows = "".join(hooks._measured(page.stem) for page in (DOCS / "measured").glob("*.md"))
    assert "[dualpi2](algorithms/dualpi2.md) |" in rows
    assert not re.findall(r"^\| \[[^]]*\]\([^)]*\)\w.*", rows, re.M)


def test_every_column_is_described(hooks: ModuleType) -> None:
    result = bluewater.run(
        """
        duration = "2s"
        [network]
        preset = "dumbbell"
        [[queue]]
        aqm = "red"
        buffer = "50p"
        [[queue]]
        link = "B->A"
        aqm = "blue"
        buffer = "50p"
        [[traffic]]
        transport = "sack"
        [measure]
        interval = "1s"
        groups = true
        """
    )
    declared = {each["name"]: each["columns"] for each in _core.tables()}
    names = {table: [n for c in columns for n in c["names"]] for table, columns in declared.items()}
    assert list(result.summary) == [
        *names["summary"][:-1],
        *names["queues"],
        "wall_s",
    ]
    for table in SIMULATED:
        made = getattr(result, table).columns
        assert made[: len(names[table])] == names[table]
        assert table == "series" or len(made) == len(names[table])
    page = hooks.filled((DOCS / "metrics.md").read_text("utf-8"))
    for table, columns in names.items():
        section = page.partition(f"## {table.capitalize()}\n")[2].partition("\n## ")[0]
        described = set(
            re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section, re.M)))
        )
        assert not section or set(columns) <= described, table
    signals = set(result.series.columns) - set(names["series"])
    assert all(f"`{signal}`" in page for signal in signals)


def test_every_column_of_a_trace_is_described(hooks: ModuleType) -> None:
    raw = _core.measure_generated(["10ms"], "1s", duration="100ms")
    page = hooks.filled((DOCS / "traces.md").read_text("utf-8"))
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", page, re.M | re.S))
    for table in ("summary", "flows", "windows", "skew", "persistence"):
        rows = " ".join(re.findall(r"^\| (`.*?) \|", sections[table.capitalize()], re.M))
        assert set(re.findall(r"`(\w+)`", rows)) == set(raw[table])


def test_every_key_of_the_command_line_is_there(hooks: ModuleType) -> None:
    filled = hooks.filled((DOCS / "cli.md").read_text("utf-8"))
    for name in ("reproduce", "compare", "run", "sweep", "plot", "report", "list", "explain",
                 "trace measure", "trace generate"):  # fmt: skip
        assert f"## {name}\n" in filled
    for option in ("--reps", "--set", "--dry-run", "--json", "--jobs", "--quick"):
        assert f"`{option}`" in filled


def test_every_key_of_traffic_is_on_its_page(hooks: ModuleType) -> None:
    filled = hooks.filled((DOCS / "traffic.md").read_text("utf-8"))
    for key in json.loads(bluewater.schema())["$defs"]["TrafficSpec"]["properties"]:
        assert f"| `{key}` |" in filled, key


def test_the_examples_of_traffic_run(tmp_path: Path) -> None:
    """Each is a group for the link that the page begins with; something of it gets through."""
    text = (DOCS / "traffic.md").read_text("utf-8")
    link, *groups = [block for block in BLOCK.finditer(text) if block["kind"] == "toml"]
    for block in BLOCK.finditer(text):
        if block["kind"] == "sh":
            _shell(block["code"], tmp_path)
    carried = set()
    for group in groups:
        code = link["code"] + group["code"].replace('"trace.pcapng"', f'"{tmp_path}/trace.pcapng"')
        flows = bluewater.run(code).flows
        assert flows["goodput_bps"].sum() > 0, group["title"]
        for each in tomllib.loads(group["code"])["traffic"]:
            carried |= {each["transport"], each.get("app", "infinite")}
    names = bluewater.catalog()
    used = {each["name"] for each in names["transports"] + names["apps"]}
    # What differs by its name alone has no example.
    assert used - carried == {"tahoe", "reno", "newreno", "noq", "exponential"}


def test_the_example_of_a_link_that_varies_runs() -> None:
    text = (DOCS / "varying.md").read_text("utf-8")
    code = next(block["code"] for block in BLOCK.finditer(text) if block["kind"] == "toml")
    result = bluewater.run(code)
    capacity = result.links["capacity_bps"][0]
    assert capacity == pytest.approx(10e6, rel=0.01)
    assert 0.5 * capacity < result.summary["throughput_bps"] <= capacity


def test_the_examples_of_the_last_mile_run() -> None:
    """Hosts share a home's line whatever their flows are, and circuits reach their ceils."""
    text = (DOCS / "last-mile.md").read_text("utf-8")
    home, tree, _ = [block["code"] for block in BLOCK.finditer(text) if block["kind"] == "toml"]
    for code, low, high in [(home, 20.5e6, 23.5e6), (tree, 45e6, 50.5e6)]:
        flows = bluewater.run(code).flows
        for _, own in flows.group_by("group"):
            assert low < own["goodput_bps"].sum() < high, own


def test_the_example_of_wifi_shares_the_air() -> None:
    """Each station has a third of the airtime."""
    text = (DOCS / "wifi.md").read_text("utf-8")
    code = next(block["code"] for block in BLOCK.finditer(text) if block["kind"] == "toml")
    stations = bluewater.run(code).stations
    assert list(stations["station"]) == ["1", "2", "3"]
    assert list(stations["airtime_share"]) == pytest.approx([1 / 3] * 3, rel=0.01)


def test_the_example_of_a_cable_modem_has_the_delay_of_its_page() -> None:
    """Half of the pings wait for at most what the page says, beyond the path's 5.5 ms."""
    text = (DOCS / "docsis.md").read_text("utf-8")
    code = next(block["code"] for block in BLOCK.finditer(text) if block["kind"] == "toml")
    delays = bluewater.run(code).delays
    own = delays.filter((delays["group"] == "ping") & (delays["kind"] == "one-way"))
    assert own["delay_p50_s"][0] - 0.0055 == pytest.approx(0.0118, abs=0.003)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["tutorial", "controllers", "fabrics", "gym"])
def test_the_tutorial_runs(name: str, tmp_path: Path) -> None:
    page = DOCS / f"{name}.md"
    text = page.read_text("utf-8")
    printed = ""
    changes: list[tuple[str, str]] = []
    for block in BLOCK.finditer(text):
        code = block["code"]
        match block["kind"]:
            case "toml" | "python" if block["title"]:
                (tmp_path / block["title"]).write_text(code, "utf-8")
            case "sh":
                printed = _shell(code, tmp_path)
            case "python":
                _ran([sys.executable, "-c", code], tmp_path)
            case "text" if block["title"]:
                (tmp_path / block["title"]).write_text(code, "utf-8")
            case "text":
                shown = _shown(printed)
                if os.environ.get("BLUEWATER_UPDATE_DOCS"):
                    changes.append((block[0], f"```text\n{shown}```"))
                else:
                    assert code == shown
            case kind:
                pytest.fail(f"a block of {kind} in the tutorial")
    for old, new in changes:
        text = text.replace(old, new, 1)
    if changes:
        page.write_text(text, "utf-8")


@pytest.mark.slow
def test_the_readme_s_commands_are_there() -> None:
    """Every ``bluewater`` command on the first pages exists, with its options."""
    for name in ("README.md", "CONTRIBUTING.md", "docs/start.md"):
        for line in re.findall(r"^bluewater (.*)$", (ROOT / name).read_text("utf-8"), re.M):
            words = line.partition("#")[0].split()
            found = _shell(f"bluewater {words[0]} --help", ROOT)
            for option in re.findall(r"--[a-z-]+", line.partition("#")[0]):
                assert option in found, line


@pytest.mark.slow
def test_the_numbers_of_start_are_those_that_its_command_prints(tmp_path: Path) -> None:
    """If this fails, ``docs/img/draw.py`` also draws the picture anew."""
    text = (DOCS / "start.md").read_text("utf-8")
    (command,) = re.findall(r"^(bluewater compare dualpi2 .*)$", text, re.M)
    rows = {row["aqm"]: row for row in json.loads(_shell(f"{command} --json", tmp_path))}
    used = {aqm: 100 * row["utilisation"] for aqm, row in rows.items()}
    assert f"leave {100 - used['cake']:.0f} % of the link idle" in text
    assert f"leaves {100 - used['red']:.0f} % idle" in text
    delay = 1e3 * rows["blue"]["delay_mean_s"]
    assert f"uses {used['blue']:.1f} % of the link, with a delay of {delay:.0f} ms" in text


def test_the_numbers_of_comparisons_are_those_of_the_table(hooks: ModuleType) -> None:
    """README, the first page and the table of validation count what all comparisons count."""
    table = (DOCS / "validation-table.md").read_text("utf-8")
    programs = table.partition("### A testbed")[0]
    verdicts = re.findall(r"\| (holds|\*\*differs\*\*) \|$", programs, re.M)
    said = f"{verdicts.count('holds')} of {len(verdicts)} comparisons"
    for page in (ROOT / "README.md", DOCS / "index.md"):
        text = page.read_text("utf-8")
        assert said in text, page.name
        assert hooks.counted(text) == text, page.name
    text = (DOCS / "validation.md").read_text("utf-8")
    assert hooks.counted(text) == text, "run `make tables`"
    rows = re.findall(r"^\| \[[^|]*\((#[a-z0-9-]+)\)[^|]*\| (\d+) ", text, re.M)
    (testbed,) = re.findall(r"\(#a-testbed-of-linux-hosts\)[^|]*\| (\d+) means \| (\d+) ", text)
    of_table = [int(of) for anchor, of in rows if anchor in hooks._COMPARED]
    # AccECN's row says more than its medians.
    medians = next(of for name, (_, of) in hooks.compared().items() if name.startswith("AccECN of"))
    assert sum(of_table) + medians == len(verdicts) + int(testbed[0])
    assert f"{medians} of {medians} medians" in text
    for page in (ROOT / "README.md", DOCS / "index.md"):
        assert f"{testbed[1]} of {testbed[0]}" in page.read_text("utf-8"), page.name


def test_the_rates_beside_the_testbed_are_those_of_the_table() -> None:
    """Each pair of rates in validation's section is a row of the table of all comparisons."""
    table = (DOCS / "validation-table.md").read_text("utf-8").partition("### A testbed")[2]
    rows = re.findall(r"goodput, Mb/s \| ([\d.]+) \| ([\d.]+) \|", table)
    measured = {tuple(f"{float(value):.1f}" for value in row) for row in rows}
    text = (DOCS / "validation.md").read_text("utf-8")
    section = text.partition("\n## A testbed of Linux hosts")[2].partition("\n## ")[0]
    pair = r"([\d.]+) : ([\d.]+)"
    quoted = re.findall(rf"\| {pair} \| {pair} \|$", section, re.M)
    assert quoted
    for prague, others, prague_here, others_here in quoted:
        assert (prague, prague_here) in measured
        assert (others, others_here) in measured


def test_links_in_readme_and_contributing_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text("utf-8")):
            assert (ROOT / link).exists(), f"{name}: {link}"


def _shown(printed: str) -> str:
    """What is shown of an output: no paths, nor what differs from one machine to the next."""
    lines = [line.rstrip() for line in printed.splitlines()]
    volatile = ("/", " took", " decision hash")
    return "".join(f"{line}\n" for line in lines if line and not line.startswith(volatile))


def _shell(code: str, folder: Path) -> str:
    return _ran(["bash", "-e", "-o", "pipefail", "-c", code], folder)


def _ran(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", ["howto", "python"])
def test_what_pages_say_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scenarios are valid, and Python runs from the first block to the last."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    trace.generate(tmp_path / "up.pcapng", {"duration": "5s", "load": "2mbit"})
    for block in BLOCK.finditer((DOCS / "tutorial.md").read_text("utf-8")):
        if block["kind"] == "python" and block["title"]:
            (tmp_path / block["title"]).write_text(block["code"], "utf-8")
    # What comes from elsewhere, as the cells of a notebook, is tried there.
    own = of_docs("hooks").MARKER.sub("", (DOCS / f"{page}.md").read_text("utf-8"))
    for block in BLOCK.finditer(own):
        if block["kind"] == "python" and block["title"]:
            (tmp_path / block["title"]).write_text(block["code"], "utf-8")
        elif block["kind"] == "python":
            exec(block["code"], names)
        elif block["kind"] == "toml":
            made = parse(block["code"], "x.toml", "x")
            assert made.plan(made.size("full"))
    assert capsys.readouterr().out


def in_jupyter(path: Path, folder: Path) -> tuple[Any, dict[int, list[str]]]:
    """Runs a notebook in a kernel; gives it with its outputs, and what cells showed for a while."""
    client = NotebookClient(
        nbformat.read(path, as_version=4), timeout=120, resources={"metadata": {"path": folder}}
    )
    shown: dict[int, list[str]] = {}
    process = client.process_message

    def processed(message: Any, cell: Any, index: int) -> Any:
        if message["msg_type"] in ("display_data", "update_display_data"):
            text = message["content"]["data"].get("text/plain", "")
            shown.setdefault(index, []).append(text)
        return process(message, cell, index)

    client.process_message = processed
    return client.execute(), shown


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_notebook_of_the_figure_runs(tmp_path: Path) -> None:
    """In Jupyter: bars come and go, results and sweeps have their tables, plots are pictures."""
    path = DOCS / "notebooks/figure.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    done, shown = in_jupyter(path, tmp_path)
    (bar,) = shown.values()
    assert any("of 45 runs" in text and "█" in text for text in bar)
    assert bar[-1] == "", "it is gone when the runs are made"
    last = [cell["outputs"][-1]["data"] for cell in done.cells if cell.get("outputs")]
    pages = [each["text/html"] for each in last if "text/html" in each]
    assert sum("decision hash" in page and "<svg" in page for page in pages) == 1
    assert sum("45 runs" in page and "<img" in page for page in pages) == 1
    assert sum("image/png" in each for each in last) == 2
    assert (tmp_path / "delay-for-the-paper.pdf").stat().st_size > 1000
    assert (tmp_path / "tables" / "summary.csv").exists()
    page = of_docs("hooks").filled("<!-- notebook:figure -->")
    assert all("".join(cell["source"]) in page for cell in cells if cell["cell_type"] == "code")
    assert "ipynb" not in page


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_notebook_of_the_policy_runs(tmp_path: Path) -> None:
    """The class has the numbers that the search finds, and is in the table."""
    path = DOCS / "notebooks/learn.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    done, _ = in_jupyter(path, tmp_path)
    last = [cell["outputs"][-1]["data"] for cell in done.cells if cell.get("outputs")]
    (found,) = (each["text/plain"] for each in last if "array(" in each["text/plain"])
    numbers = re.findall(r"\d\.\d+", found)
    sources = ["".join(cell["source"]) for cell in cells]
    (policy,) = (source for source in sources if "class Learned" in source)
    defaults = re.findall(r"number\((\S+),", policy)
    assert [f"{float(number):.3g}" for number in numbers] == defaults
    assert sum("image/png" in each for each in last) == 1
    (table,) = (each["text/html"] for each in last if "text/html" in each)
    assert all(aqm in table for aqm in ("Learned", "red", "pie", "codel"))


def test_the_reference_has_every_name_of_the_package() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    whole = re.findall(r"^::: bluewater\.(\S+)", page, re.MULTILINE)
    listed = re.findall(r"members: \[(.*)\]", page)
    there = {name.rpartition(".")[2] for name in whole}
    there.update(name for names in listed for name in names.split(", "))
    assert set(bluewater.__all__) <= there
    for name in ("newest", "Interrupted", "StorageError", "DamagedWarning", "Advice"):
        assert name in bluewater.__all__
        assert getattr(bluewater, name).__name__ == name
    assert "<!-- tables -->" in page


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason="there is no Chromium")
@pytest.mark.parametrize(
    "heads",
    [
        ["paper", "claim", "statement", "verdict", "value", "holds if", "reading", "fitted"],
        ["name", "title", "source", "claims"],
    ],
    ids=["claims", "experiments"],
)
def test_a_row_is_a_card_on_a_phone(heads: list[str], tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    cells = [
        "A-name-of-one-word",
        "Many words. " * 9,
        *["Others-are-words"] * (len(heads) - 3),
        "–",
    ]
    head = "".join(f"<th>{text}</th>" for text in heads)
    row = "".join(f"<td>{text}</td>" for text in cells)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{f'<tr>{row}</tr>' * 41}</tbody></table>"
    style, script = ((DOCS / name).read_text("utf-8") for name in ("site.css", "site.js"))
    page = f'<div class="md-content md-typeset">{table}</div><script>{script}</script>'
    (tmp_path / "page.html").write_text(f"<style>{style}</style>{page}", "utf-8")
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        tab.goto((tmp_path / "page.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        named = tab.eval_on_selector_all(
            "tbody tr:first-child td", "c => c.map(d => [d.dataset.head, !!d.offsetWidth])"
        )
        assert named == [[name, name != heads[-1]] for name in heads], "an empty cell is not shown"
        assert tab.locator("th button").first.is_visible(), "the heads that sort stay"
        browser.close()


@pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason="there is no Chromium")
def test_a_long_table_is_sorted_by_its_heads(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    rows = "".join(f"<tr><td>{(7 * k) % 41}.5 ± 1</td><td>x</td></tr>" for k in range(41))
    table = f"<table><thead><tr><th>value</th><th>b</th></tr></thead><tbody>{rows}</tbody></table>"
    # The theme's script has names of its own.
    page = f'<div class="md-content">{table}</div><script>const value = 1, compare = 2</script>'
    script = (DOCS / "site.js").read_text("utf-8")
    (tmp_path / "page.html").write_text(f"{page}<script>{script}</script>", "utf-8")
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto((tmp_path / "page.html").as_uri())

        def values() -> list[float]:
            cells = tab.eval_on_selector_all("tbody tr", "rows => rows.map(r => r.innerText)")
            return [float(cell.split()[0]) for cell in cells]

        tab.click("th button")
        assert values() == sorted(values())
        tab.click("th button")
        assert values() == sorted(values(), reverse=True)
        browser.close()


def test_a_sparse_flow_loses_what_the_page_of_fq_codel_says() -> None:
    def lost(preset: str) -> tuple[int, int]:
        wish = {
            "duration": "600s",
            "network": {"preset": "dumbbell", "rate": "1mbit", "delay": "10ms"},
            "queue": [{"aqm": "fq-codel", "buffer": "1000p", "params": {"preset": preset}}],
            "traffic": [
                {"flows": 4, "transport": "cubic", "preset": "linux", "packet": "1514B"},
                {"name": "sparse", "transport": "cbr", "rate": "784bit", "packet": "98B",
                 "gaps": "poisson"},
            ],
        }  # fmt: skip
        flows = bluewater.run(wish).flows
        (sparse,) = flows.filter(flows["group"] == "sparse").to_dicts()
        return sparse["drops"], sparse["arrivals"]

    (before, all_), (since, _) = lost("linux-6.1"), lost("linux")
    page = (DOCS / "algorithms" / "fq-codel.md").read_text("utf-8")
    assert f"loses {before} of {all_} packets, and {since} with `linux`" in page
