from __future__ import annotations

import html
import json
import math
import os
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl
import pytest
from conftest import SWEEP
from matplotlib.figure import Figure

from bluewater.errors import InputError
from bluewater.plots.draw import Drawable, draw
from bluewater.plots.files import inline_svg, save
from bluewater.plots.marks import Mark
from bluewater.plots.style import contrast, on_dark, palette
from bluewater.report import to_json, write_report
from bluewater.report.page import environment
from bluewater.report.scorecard import score, scorecard
from bluewater.results.store import Store
from bluewater.study.experiments import experiment
from bluewater.study.experiments.claims import AS_WRITTEN
from bluewater.study.experiments.experiment import parse
from bluewater.study.experiments.paper import Paper
from bluewater.study.experiments.plot import Scale
from bluewater.study.experiments.reproduce import Outcome, Plan, reproduce

EXPERIMENT = (
    'title = "Loss <of> two"\nseeds = [1, 2, 3]\n'
    + SWEEP
    + """
[about]
question = "Which loses more?"
[[claim]]
id = "a"
text = "Nobody loses all."
paper = "< 100 %"
unit = "%"
measure = "SELECT seed, MAX(100 * loss) AS value FROM runs GROUP BY seed"
holds = "< 100"
fitted = "The buffer was chosen by it."
plot = "loss"
[[claim]]
id = "b"
text = "The moon is of cheese."
paper = "> 2"
measure = "SELECT seed, MAX(loss) AS value FROM runs GROUP BY seed"
holds = "> 2"
plot = "drops"
[[plot]]
id = "loss"
title = "Loss"
caption = "Loss against buffer."
kind = "spread"
x = { label = "Buffer (kB)" }
y = { label = "Loss (%)" }
[[plot.panel]]
title = "all"
sql = "SELECT buffer AS x, 100 * loss AS y, aqm AS line, seed FROM runs"
[[plot]]
id = "bars"
title = "Bars"
caption = "Loss."
kind = "bars"
x = { label = "" }
y = { label = "Loss (%)" }
[[plot.panel]]
title = "all"
sql = "SELECT aqm AS x, 'loss' AS line, 100 * loss AS y, seed FROM runs"
[[plot]]
id = "time"
title = "Queue"
caption = "Queue over time."
kind = "trace"
x = { label = "Time (s)" }
y = { label = "Queue (packets)" }
[[plot.panel]]
title = "queue"
sql = "SELECT time_s AS x, backlog_packets AS y, aqm AS line, seed FROM series"
[[plot.panel]]
title = "nothing"
sql = "SELECT time_s AS x, p_m AS y, aqm AS line, seed FROM series WHERE time_s < 0"
[[plot]]
id = "flows"
title = "Flows"
caption = "Each flow."
kind = "scatter"
x = { label = "Flow" }
y = { label = "Throughput (b/s)" }
[[plot.panel]]
title = "flows"
sql = "SELECT flow AS x, throughput_bps AS y, aqm AS line, seed FROM flows WHERE buffer = 20"
[[table]]
id = "drops"
title = "Drops"
caption = "By `aqm`."
sql = "SELECT aqm, SUM(drops_bytes) AS \\"bytes <lost>\\", NULL AS nothing FROM flows GROUP BY aqm"
"""
)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    experiment = parse(EXPERIMENT, "f.toml", "test/two")
    plan = Plan.of([(experiment, experiment.size("full"))])
    (made,) = reproduce(plan, Store(tmp_path_factory.mktemp("store")), 2)
    return made


@pytest.fixture(scope="module")
def page(outcome: Outcome, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([outcome], tmp_path_factory.mktemp("report"))


def test_outcome(outcome: Outcome) -> None:
    assert [str(finding.verdict) for finding in outcome.findings] == [
        "reproduced",
        "not reproduced",
    ]
    assert outcome.reused == 0
    assert outcome.wall_s > 0
    assert len(outcome.decision_hash) == 16


def test_json_keeps_its_shape(outcome: Outcome) -> None:
    found = json.loads(json.dumps(to_json(outcome), allow_nan=False))
    assert {"experiment", "size", "seeds", "wall_s", "claims"} <= set(found)
    assert found["experiment"] == "test/two"
    assert found["seeds"] == [1, 2, 3]
    assert {"id", "paper", "measured", "spread", "verdict"} <= set(found["claims"][0])


class Links(HTMLParser):
    """What a page loads, and its open tags."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.styled = 0
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        assert tag not in {"script", "link", "iframe", "object"}
        self.loaded += [values[name] for name in ("src", "srcset", "data") if name in values]
        assert values.get("id") not in self.ids
        self.ids |= {values["id"]} if "id" in values else set()
        self.styled += "style" in values
        target = values.get("href", values.get("xlink:href", ""))
        self.anchors |= {target[1:]} if target.startswith("#") else set()


def test_the_report_needs_nothing_else(page: Path) -> None:
    text = page.read_text()
    links = Links()
    links.feed(text)
    assert links.loaded == []
    assert links.anchors <= links.ids
    assert links.styled == 0  # a class is much shorter, and there are thousands of marks
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert not re.search(r'href="https?:', text)


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@pytest.mark.skipif("CI" not in os.environ and CHROMIUM is None, reason="there is no browser")
def test_a_phone_scrolls_the_report_in_one_direction(page: Path, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    long = page.read_text().replace("Loss against buffer.", "LossWithoutASpace" * 20)
    long = re.sub(r'<td class="n">[0-9·]+</td>', '<td class="n">187</td>', long)
    (tmp_path / "report.html").write_text(long.replace("The moon", "TheMoon" * 20))
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        tab.goto((tmp_path / "report.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        # Numbers stand below their heads, each in a line.
        rows = """all => [...all].map(row => [...row.cells].slice(1).map(
            each => Math.round(each.getBoundingClientRect().right)))"""
        for table in (".counts", ".matrix"):
            heads, *below = tab.eval_on_selector_all(f"{table} tr", rows)
            assert below
            assert all(row == heads for row in below), table
        lines = """all => all.map(each => {
            const text = document.createRange();
            text.selectNodeContents(each);
            return text.getClientRects().length;
        })"""
        assert {*tab.eval_on_selector_all(":is(.counts, .matrix) td.n", lines)} == {1}
        # Every count is seen without scrolling its table.
        wider = "all => all.map(each => each.parentNode.scrollWidth - each.parentNode.clientWidth)"
        assert {*tab.eval_on_selector_all(":is(.counts, .matrix)", wider)} == {0}
        # Whatever the lines, readings and papers are called: each text with a long word behind it.
        tab.evaluate(
            """() => {
                const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
                const own = (node) => node.data.trim() && !node.parentNode.closest("svg, style");
                const all = [];
                while (texts.nextNode()) if (own(texts.currentNode)) all.push(texts.currentNode);
                for (const text of all) text.data = `${text.data.trim()} ${"LongWord".repeat(8)}`;
            }"""
        )
        assert tab.evaluate("document.documentElement.scrollWidth") == 390
        browser.close()


def test_a_panel_is_drawn_again_by_rules_that_need_nothing_around_it(page: Path) -> None:
    """On a phone each panel stands alone."""
    text = page.read_text()
    pictures = re.findall(r'<g id="(p[0-9a-f]{6})">', text)
    assert len(pictures) == 4
    assert re.findall(r'<use href="#(p[0-9a-f]{6})"/>', text) == pictures
    sheet = text.partition("<style>")[2].partition("</style>")[0]
    classes = set(re.findall(r'class="(s[0-9]+)"', text))
    assert classes
    assert all(re.search(rf"(^|}}|\n)\.{name}{{", sheet) for name in classes)


def test_a_plot_says_what_its_claims_say(page: Path) -> None:
    text = page.read_text().partition('<figure id="test-two-loss">')[2].partition("</figure>")[0]
    caption = re.sub(r"\s+", " ", re.sub("<.*?>", "", text.partition("<figcaption>")[2]))
    assert "(a) Nobody loses all. Paper: < 100 %. Bound: < 100 %." in html.unescape(caption)
    assert "(a) Nobody loses all." in (page.parent / "test-two" / "loss.svg").read_text()
    assert "(b)" not in caption


@pytest.mark.slow
@pytest.mark.skipif("CI" not in os.environ and CHROMIUM is None, reason="there is no browser")
def test_a_link_opens_the_experiment_that_it_leads_into(outcome: Outcome, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    other = replace(outcome, experiment=replace(outcome.experiment, id="test/other"))
    page = write_report([outcome, other], tmp_path)
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(page.as_uri())
        assert not tab.is_visible("#test-two-claim-b")
        tab.click("#open a[href='#test-two-claim-b']")
        assert tab.is_visible("#test-two-claim-b")
        assert not tab.is_visible("#test-other-claim-b")
        browser.close()


def test_experiments_are_folded_unless_there_is_one(outcome: Outcome, tmp_path: Path) -> None:
    one = write_report([outcome], tmp_path / "one").read_text()
    assert one.count('<details class="all" open>') == 1
    other = replace(outcome, experiment=replace(outcome.experiment, id="test/other"))
    two = write_report([outcome, other], tmp_path / "two").read_text()
    assert two.count('<details class="all">') == 2
    assert two.count("2 claims, 4 plots, parameters</summary>") == 2


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("As in Fig. 5 of it. Two.", "As in Fig. 5 of it."),
        ("Floyd et al. Have it. Two.", "Floyd et al. Have it."),
        ("It is 0.5 of\n all. Two. Three.", "It is 0.5 of all."),
        ("Only `a. B` here", "Only `a. B` here"),
        ("Not known.", "Not known."),
    ],
)
def test_a_cause_is_shown_in_its_first_sentence(text: str, first: str) -> None:
    found, rest = environment().filters["halves"](text)
    assert found == first
    assert " ".join(text.split()) == f"{found} {rest}".strip()


def test_the_report_says_it_all(page: Path, outcome: Outcome) -> None:
    text = page.read_text()
    assert "Loss &lt;of&gt; two" in text
    assert "Which loses more?" in text
    assert text.count('<svg role="img"') == 4
    assert "not reproduced" in text
    assert text.count("Fitted, no evidence.") == 2  # in the list of what is open, and at the claim
    assert "The buffer was chosen by it." in text
    assert outcome.decision_hash in text
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "var(--ink)" in text
    for entry in outcome.tables.entries:
        assert outcome.tables.store.read(entry.key).decision_hash in text


def test_what_is_open_is_listed_and_linked(page: Path) -> None:
    text = page.read_text()
    listed = text.partition('<section id="open">')[2].partition("</section>")[0]
    assert "The moon is of cheese." in listed
    assert "Nobody loses all." in listed  # fitted
    assert "Reproduced: The buffer was chosen by it." in listed
    # What says most against a claim comes first.
    assert listed.index("The moon is of cheese.") < listed.index("Nobody loses all.")
    assert 'href="#test-two-claim-b"' in listed
    assert 'id="test-two-claim-b"' in text
    # Each choice of the filter hides what it does not name.
    for choice in ("filter-verdict-v-not", "filter-evidence-e-fitted", "filter-paper-p-test"):
        assert f'id="{choice}"' in listed
        assert f".filter:has(#{choice}:checked) tbody tr:not(" in listed


def test_each_claim_of_a_paper_shows_where_its_bound_comes_from(page: Path) -> None:
    own = page.read_text().partition('<section id="test-two">')[2]
    cells = re.findall(r'<td data-name="holds if">(.*?)</td>', own, re.DOTALL)
    bounds = [html.unescape(cell.partition("<")[0]).strip() for cell in cells]
    assert bounds == ["< 100 %", "> 2"]
    assert all(AS_WRITTEN in html.unescape(cell) for cell in cells)


def test_the_head_says_how_much_is_provisional(outcome: Outcome, tmp_path: Path) -> None:
    findings = [replace(finding, provisional=True) for finding in outcome.findings]
    text = write_report([replace(outcome, findings=findings)], tmp_path).read_text()
    head = text.partition("<header")[2].partition("</header>")[0]
    assert "Size full" in head
    assert "3 seeds a claim, 12 runs" in head
    assert "2 of 2 verdicts are provisional" in head
    one = replace(outcome, size=replace(outcome.size, seeds=(1,)), findings=findings[:1])
    text = write_report([one], tmp_path / "one").read_text()
    assert "1 seed a claim, 12 runs" in text
    assert "1 claim, 4 plots, parameters</summary>" in text


def test_papers_come_before_our_own_and_ours_are_counted_apart(
    outcome: Outcome, tmp_path: Path
) -> None:
    def of(folder: str, *, own: bool, ours: bool) -> Outcome:
        paper = Paper(cite=folder.upper(), title="", source="", own=own)
        origin: Literal["paper", "ours"] = "ours" if ours else "paper"
        findings = [
            replace(each, claim=msgspec.structs.replace(each.claim, origin=origin))
            for each in outcome.findings
        ]
        experiment = replace(outcome.experiment, id=f"{folder}/x", paper=paper)
        return replace(outcome, experiment=experiment, findings=findings)

    made = [of("mine", own=True, ours=True), of("theirs", own=False, ours=False)]
    text = write_report(made, tmp_path).read_text()
    assert text.index('id="paper-theirs"') < text.index('id="paper-mine"')
    rows = text.partition('class="matrix"')[2].partition("</table>")[0].split("<tr")[2:]
    numbers = {
        re.sub("<.*?>", "", row.partition("</td>")[0].partition(">")[2]): re.findall(
            r'<td class="n">(.*?)</td>', row
        )
        for row in rows
    }
    counts = ["1", "·", "·", "·", "1", "·", "2", "1"]
    assert numbers == dict.fromkeys(("THEIRS", "MINE"), counts)
    assert "Of 2 claims of papers 1 are reproduced in one way or the other, 0 of them" in text


def test_only_the_row_of_all_papers_is_a_total(outcome: Outcome, tmp_path: Path) -> None:
    """A quick size shows the kept verdicts of its own papers, which have no such row."""

    def of(cite: str, size: str) -> Outcome:
        paper = Paper(cite=cite, title="", source="")
        experiment = replace(outcome.experiment, id=f"{cite.lower()}/x", paper=paper)
        return replace(outcome, experiment=experiment, size=replace(outcome.size, name=size))

    for size, totals in (("quick", []), ("full", ["all papers"])):
        both = [of("Feng02", size), of("HRC", size)]
        text = write_report(both, tmp_path / size).read_text()
        table = text.partition('class="counts"')[2].partition("</table>")[0]
        assert "<th>Feng02</th>" in table
        assert re.findall(r'<th class="total">(.*?)</th>', table) == totals


def test_a_plot_is_drawn_in_the_reading_that_a_verdict_rests_on(tmp_path: Path) -> None:
    text = (
        EXPERIMENT.replace("SELECT seed, MAX(loss) AS", "SELECT seed, MIN(flows) AS")
        .replace(
            'holds = "> 2"\nplot = "drops"',
            'holds = "<= 1"\nplot = "loss"\nauthors = "They eat it."',
        )
        .replace("[about]", READING + "[about]", 1)
    )
    made = parse(text, "f.toml", "test/two")
    (outcome,) = reproduce(Plan.of([(made, made.size("full"))]), Store(tmp_path / "store"), 2)
    assert [finding.under for finding in outcome.findings] == [[], ["alone"]]
    page = write_report([outcome], tmp_path).read_text()
    said = "The verdict rests on the reading alone, drawn below."
    first, _, again = page.partition('<figure id="test-two-loss">')[2].partition("</figure>")
    assert (first.count(said), again.count(said)) == (1, 0)
    own = again.partition('<figure id="test-two-loss-alone">')[2].partition("</figure>")[0]
    assert "Loss, reading alone" in own
    assert "Reading alone." not in own  # the caption says more of it
    assert "As the experiment stands" not in first
    assert "As the experiment stands: Loss against buffer." in own
    assert "The plot shows the reading alone: One flow." in own
    assert "(b)</a>" in own
    assert "(a)</a>" not in own
    # The value of the reading, and then that of the experiment as it stands.
    listed = page.partition('<section id="open">')[2].partition("</section>")[0]
    row = listed.partition('href="#test-two-claim-b"')[2].partition("</tr>")[0]
    cell = row.partition('data-name="measured">')[2].partition("</td>")[0]
    assert " ".join(re.sub(r"<[^>]*>", " ", cell).split()) == "1 ± 0 alone as it stands: 20 ± 0"
    assert page.count("<figure ") == 6  # four plots, this one again, and a table
    assert (tmp_path / "test-two" / "loss-alone.csv").is_file()
    assert "<b>The authors' program:</b> They eat it." in html.unescape(page)


READING = """
[[reading]]
id = "alone"
title = "One flow"
why = "Nobody says that they do."
post_hoc = true
set = { "traffic.0.flows" = 1 }
"""


def test_every_picture_has_its_files(page: Path) -> None:
    folder = page.parent / "test-two"
    for plot in ("loss", "bars", "time", "flows"):
        for ending in ("svg", "csv"):
            assert (folder / f"{plot}.{ending}").stat().st_size > 100
    assert (folder / "runs.csv").exists()
    assert json.loads((folder / "claims.json").read_text())["experiment"] == "test/two"


def test_a_table_is_on_the_page_and_beside_it(page: Path) -> None:
    folder = page.parent / "test-two"
    head, rule, *rows = (folder / "drops.md").read_text().splitlines()
    assert (head, rule) == ("| aqm | bytes <lost> | nothing |", "| --- | --- | --- |")
    assert sorted(row[2] for row in rows) == ["B", "R"]
    assert all(row.endswith(" | – |") for row in rows)
    assert (folder / "drops.csv").read_text().startswith("aqm,bytes <lost>,nothing\n")
    text = page.read_text()
    assert "<th>bytes &lt;lost&gt;</th>" in text
    assert "By <code>aqm</code>." in text
    below = text.partition('<figure id="test-two-drops">')[2].partition("</figure>")[0]
    caption = re.sub(r"\s+", " ", re.sub("<.*?>", "", below.partition("<figcaption>")[2]))
    assert "(b) The moon is of cheese. Paper: > 2. Bound: > 2." in html.unescape(caption)


@pytest.mark.slow
def test_the_same_numbers_give_the_same_pictures(
    page: Path, outcome: Outcome, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        write_report([outcome], tmp_path / folder, formats=("png", "pdf"))
    for ending in ("png", "svg", "pdf"):
        one, two = (tmp_path / folder / f"test-two/loss.{ending}" for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    assert (tmp_path / "one/test-two/loss.svg").read_bytes() == (
        page.parent / "test-two/loss.svg"
    ).read_bytes()


def test_a_plot_is_laid_out_once_and_drawn_once_a_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = pl.DataFrame({"x": [1, 2], "y": [3.0, 4.0]})
    panels = [Drawable("panel", points, Scale("y"))]
    figure = draw("plot", "spread", Scale("x"), panels, 1, "all")
    drawn: list[object] = []
    render = Figure.draw
    monkeypatch.setattr(Figure, "draw", lambda *given: drawn.append(render(*given)))
    save(figure, panels, tmp_path / "plot", formats := ("png", "svg", "pdf"))
    assert len(drawn) == len(formats)


@pytest.mark.slow
def test_drawing_in_parallel_changes_nothing(outcome: Outcome, tmp_path: Path) -> None:
    other = replace(outcome, experiment=replace(outcome.experiment, id="paper/other"))
    pages = [
        re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", page.read_text("utf-8"))
        for page in (write_report([outcome, other], tmp_path / f"{jobs}", jobs) for jobs in (1, 2))
    ]
    assert "paper-other" in pages[0]
    assert pages[0] == pages[1]


def panel(points: pl.DataFrame, scale: str = "linear", marks: tuple[Mark, ...] = ()) -> Drawable:
    return Drawable("panel", points, Scale("Loss", scale=scale), marks)  # type: ignore[arg-type]


def test_bounds_and_the_paper_s_numbers_are_drawn(tmp_path: Path) -> None:
    points = pl.DataFrame({"x": ["SFB", "RED"], "y": [1.0, 2.0], "line": ["measured"] * 2})
    marks = (Mark("a", -math.inf, 0.5, "SFB", 7.5), Mark("b", 3.0, math.inf))
    for kind, x in (("bars", points), ("spread", points.with_columns(x=pl.Series([1.0, 2.0])))):
        there = marks if kind == "bars" else (Mark("a", -math.inf, 0.5, 1.0, 7.5), marks[1])
        figure = draw("title", kind, Scale("x"), [panel(x, marks=there)], 1, "none")
        save(figure, [panel(x)], tmp_path / kind, ("svg",))
        text = (tmp_path / f"{kind}.svg").read_text()
        assert "(a)" in text
        assert "(b)" in text
        # What is drawn is within the axes.
        low, high = figure.axes[0].get_xlim() if kind == "bars" else figure.axes[0].get_ylim()
        assert low <= 0.5
        assert high >= 7.5


def test_bars_have_their_values() -> None:
    points = pl.DataFrame({"x": ["a", "b"], "y": [0.125, 20.0]})
    figure = draw("title", "bars", Scale("x"), [panel(points)], 1, "none")
    assert {"0.125", "20"} <= {text.get_text() for text in figure.axes[0].texts}


@pytest.mark.parametrize("share_y", ["all", "none"])
def test_a_bar_stands_at_its_name(share_y: Literal["all", "none"]) -> None:
    """Also where panels with one axis have their groups in another order, or not all of them."""
    values = {"a": 1.0, "b": 2.0, "c": 3.0}
    panels = [
        panel(pl.DataFrame({"x": list(names), "y": [values[name] for name in names]}))
        for names in ("abc", "cb")
    ]
    figure = draw("title", "bars", Scale("x"), panels, 2, share_y)
    for axes, names in zip(figure.axes, ("abc", "cb"), strict=True):
        named = figure.axes[0] if share_y == "all" else axes
        labels = [text.get_text() for text in named.get_yticklabels()]
        shown = {
            labels[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width()  # type: ignore[attr-defined]
            for bar in axes.patches
        }
        assert shown == {name: values[name] for name in names}


def test_a_logarithmic_axis_hides_no_zero() -> None:
    some = pl.DataFrame({"x": [1.0, 2.0], "y": [0.0, 0.1]})
    figure = draw("title", "spread", Scale("x"), [panel(some, "log")], 1, "none")
    assert figure.axes[0].get_yscale() == "symlog"
    figure = draw("title", "spread", Scale("x"), [panel(some.tail(1), "log")], 1, "none")
    assert figure.axes[0].get_yscale() == "log"


def test_legends_are_below() -> None:
    points = pl.DataFrame({"x": [1.0, 1.0], "y": [1.0, 2.0], "line": ["red", "blue"]})
    figure = draw("title", "spread", Scale("x"), [panel(points)], 1, "none")
    (legend,) = figure.legends
    assert legend.get_window_extent().y1 <= figure.axes[0].get_window_extent().y0


@pytest.mark.parametrize("colour", palette())
def test_lines_can_be_read_on_a_dark_page(colour: str) -> None:
    assert contrast(on_dark(colour), "#1a222b") >= 4.5
    assert contrast(colour, "#ffffff") >= 2


def test_an_inline_picture_is_small_and_whole(tmp_path: Path) -> None:
    points = pl.DataFrame(
        {"x": [k / 7 for k in range(20_000)], "y": [k % 97 for k in range(20_000)]}
    )
    made = panel(points)
    save(
        draw("0.25 of it", "trace", Scale("x"), [made], 1, "none"), [made], tmp_path / "x", ("svg",)
    )
    text = inline_svg(tmp_path / "x.svg", "a picture")
    assert len(text) < 30_000
    assert "0.25 of it" in text  # text keeps its digits
    names = set(re.findall(r' id="([^"]*)"', text))
    assert set(re.findall(r"#([A-Za-z][A-Za-z0-9_-]+)\)", text)) <= names


def test_a_claim_is_drawn_in_a_panel_that_is_there() -> None:
    text = (experiment.root() / "feng" / "table3.toml").read_text("utf-8")
    there = 'panel = "CBR at {rate} Mb/s: {of}"'
    assert there in text
    wrong = text.replace(there, 'panel = "no {rate}: {of}"')
    with pytest.raises(InputError, match="unknown panel"):
        parse(wrong, "x.toml", "feng/table3", experiment.root() / "feng")


def test_a_scorecard_compares_with_the_baseline(outcome: Outcome, tmp_path: Path) -> None:
    """Two tests of made-up scores: `B` halves the delay in both, and loses goodput in one."""
    sql = """SELECT aqm AS discipline, seed,
        CASE WHEN buffer = 20 THEN 'T2' ELSE 'T10' END AS test,
        CASE WHEN aqm = 'R' THEN 0.2 ELSE 0.1 END AS delay_s,
        CASE WHEN aqm = 'B' AND buffer = 20 THEN 9.4 ELSE 10.0 END AS goodput_bps
    FROM runs"""
    made = replace(
        outcome.experiment, views={"score": sql}, paper=Paper("T", "T", "", scorecard="R")
    )
    tables = replace(outcome.tables, views=made.views)
    scored = replace(outcome, experiment=made, tables=tables)
    found = score(scored)
    assert found is not None
    assert scorecard([found], "R").rows(named=True) == [
        {"discipline": "B", "better, of 2": 1, "T2": "0.5 · 0.94", "T10": "✓ 0.5 · 1"}
    ]
    page = write_report([scored], tmp_path).read_text()
    assert "✓ 0.5 · 1" in page
    assert "by those of R" in page
    assert (tmp_path / "test-scorecard.csv").read_text().startswith('discipline,"better, of 2",T2,')


def test_a_table_that_goes_on_beside_the_page_shows_it() -> None:
    """On a phone it ended in the middle of a word."""
    root = Path(__file__).parents[2]
    for file, rule in (
        ("python/bluewater/report/templates/style.css", ".scroll {"),
        ("docs/site.css", ".md-typeset__scrollwrap {"),
    ):
        found = (root / file).read_text("utf-8").partition(rule)[2].partition("}")[0]
        assert "background-attachment: local, local, scroll, scroll" in found
