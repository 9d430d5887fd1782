"""What the lessons quote is what the page shows: each number is simulated anew, from its scenario.

The scenarios are those that the page makes, and its table tells the results; `lessons.toml` has the
numbers, where they stand, and with which settings they are seen.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bluewater import _core

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCS = Path(__file__).parents[2] / "docs"
LESSONS = sorted((DOCS / "lessons").glob("[0-9]-*.md"))
TOLD = tomllib.loads(Path(__file__).with_name("lessons.toml").read_text())
QUOTED: list[dict[str, Any]] = TOLD["quoted"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
ROWS = {
    "Link used": "used",
    "Queue, mean": "queue",
    "Queue, 99th percentile": "queue99",
    "Lost": "lost",
    "Marked": "marked",
    "Fairness (Jain) of TCP from the start": "jain",
    "TCP, all together": "tcp",
    "The flow without control": "flow",
    "The flow without control loses": "flow_lost",
}
# As if somebody had moved it there: what a slider or a list does not have is refused.
SET = """(settings) => {
    const play = document.querySelector("bluewater-play");
    play.begin("");
    const own = Object.entries(settings).map(([name, value]) => [name.split("."), value]);
    const set = (of, name, value) => {
        if (!Object.hasOwn(of, name)) throw new Error(`no ${name}`);
        of[name] = value;
    };
    for (const [[name, param], value] of own) if (!param) set(play.state, name, value);
    play.defaults();
    for (const [[side, param], value] of own) if (param) set(play.state.params[side], param, value);
    return [play.state, Object.fromEntries(play.sides.map((side) => [side, play.scenario(side)]))];
}"""


@cache
def text(lesson: str) -> str:
    """A lesson, with single spaces."""
    return " ".join((DOCS / "lessons" / f"{lesson}.md").read_text().split())


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page for each lesson, without an engine: the simulator is the native one."""
    if CHROMIUM is None and not os.environ.get("CI"):
        pytest.skip("there is no browser")
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("lessons")
    shutil.copy(DOCS / "play/play.js", folder)
    (folder / "engine.js").write_text("")
    for lesson in LESSONS:
        play = re.search("<bluewater-play.*</bluewater-play>", lesson.read_text())
        assert play is not None
        head = '<!doctype html><meta charset="utf-8"><script src="play.js"></script>'
        (folder / f"{lesson.stem}.html").write_text(head + play[0])
    shutil.copy(DOCS / "play/play.css", folder)
    styled = f'{head}<link rel="stylesheet" href="play.css">'
    (folder / "all.html").write_text(f"{styled}<bluewater-play></bluewater-play>")
    for lesson in LESSONS:
        own = (folder / f"{lesson.stem}.html").read_text().replace(head, styled)
        (folder / f"styled-{lesson.stem}.html").write_text(own)
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"file://{folder}/{LESSONS[0].stem}.html")
        yield page
        browser.close()


@cache
def simulated(scenario: str) -> dict[str, Any]:
    return _core.Prepared(scenario).run()


def seen(tab: Page, lesson: str, settings: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The numbers that the page prints for both sides."""
    address = f"{tab.url.rpartition('/')[0]}/{lesson}.html"
    if tab.url.partition("#")[0] != address:
        tab.goto(address)
    state, scenarios = tab.evaluate(SET, settings)
    return {side: told(tab, state, scenario) for side, scenario in scenarios.items()}


def told(tab: Page, state: dict[str, Any], scenario: str) -> dict[str, float]:
    run = simulated(scenario)
    answer = {"queues": run["queues"], "flows": run["flows"], "series": {}}
    rows = tab.evaluate("(answer) => document.querySelector('bluewater-play').told(answer)", answer)
    found = {ROWS[row]: number for row, number in rows.items()}
    found["idle"] = 100 - found["used"]
    # Packets of 1000 bytes.
    packets = (state["rtt"] + found["queue"]) * state["rate"] / 8
    found["window"] = packets / state["flows"]
    found["formula"] = 150 / found["window"] ** 2
    losses = list(zip(run["series"]["time_s"], run["series"]["drops"], strict=True))
    times = [time for time, drops in losses if drops and time > 5]
    found["last_loss"] = max(times, default=0)
    gaps = [later - time for time, later in pairwise(times)]
    found["gap_least"], found["gap_most"] = min(gaps, default=0), max(gaps, default=0)
    behind = sum(drops for time, drops in losses if time > 15)
    burst = sum(drops for time, drops in losses if 15 < time <= 17.05)
    found["burst"] = 100 * burst / behind if behind else 0
    return found


@pytest.mark.parametrize("quoted", QUOTED, ids=lambda each: f"{each['lesson']}: {each['says']}")
def test_a_quoted_number_is_what_the_page_shows(tab: Page, quoted: dict[str, Any]) -> None:
    assert quoted["says"] in text(quoted["lesson"])
    assert {"form", "within"} & set(quoted)
    runs = [seen(tab, quoted["lesson"], settings) for settings in quoted["runs"]]
    if "form" in quoted:
        assert quoted["form"].format(*runs) == quoted["says"]
    for run, side, what, least, most in quoted.get("within", ()):
        assert least <= runs[run][side][what] <= most, f"{what} of {quoted['runs'][run]}, {side}"


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_every_number_of_a_lesson_is_measured_or_given(lesson: Path) -> None:
    source = re.sub("<bluewater-play.*</bluewater-play>", "", lesson.read_text())
    left = " ".join(re.sub(r"^(\s*|# )\d\. ", "", source, flags=re.MULTILINE).split())
    mine = [quoted["says"] for quoted in QUOTED if quoted["lesson"] == lesson.stem]
    given = TOLD["given"][lesson.stem]
    assert [phrase for phrase in given if phrase not in text(lesson.stem)] == []
    for phrase in sorted([*mine, *given], key=len, reverse=True):
        left = left.replace(phrase, "…")
    assert re.findall(r".{0,30}(?<![A-Za-z])\d.{0,20}", left) == []


def test_every_lesson_has_its_numbers() -> None:
    assert {quoted["lesson"] for quoted in QUOTED} == {lesson.stem for lesson in LESSONS}


# Presses each arrow on each slider until nothing moves, and tells where that is not at its end.
STUCK = """() => {
    const play = document.querySelector("bluewater-play");
    const stuck = [];
    const disciplines = [...play.querySelectorAll("[id$='-a'] option")].map((each) => each.value);
    const press = (input, key) => input.dispatchEvent(new KeyboardEvent("keydown", { key }));
    for (const discipline of disciplines.length ? disciplines : [play.state.a]) {
        play.state.a = discipline;
        play.defaults();
        play.build();
        for (const id of [...play.querySelectorAll("input[type=range]")].map((each) => each.id)) {
            const input = document.getElementById(id);
            for (const [key, end] of [["ArrowRight", 1000], ["ArrowLeft", 0], ["ArrowUp", 1000]]) {
                let moves = 0;
                for (let before; moves < 500; moves++) {
                    before = input.getAttribute("aria-valuetext");
                    press(input, key);
                    if (input.getAttribute("aria-valuetext") === before) break;
                }
                const at = input.getAttribute("aria-valuetext");
                if (Math.abs(input.value - end) > 5) stuck.push(`${discipline} ${id} ${key} ${at}`);
            }
        }
    }
    return stuck;
}"""


@pytest.mark.parametrize("page", ["all", *(lesson.stem for lesson in LESSONS)])
def test_no_key_is_stuck(tab: Page, page: str) -> None:
    tab.goto(f"{tab.url.rpartition('/')[0]}/{page}.html")
    assert tab.evaluate(STUCK) == []


@pytest.mark.parametrize("page", ["all", *(f"styled-{lesson.stem}" for lesson in LESSONS)])
@pytest.mark.parametrize(("width", "height"), [(360, 760), (390, 844), (800, 900), (1280, 900)])
def test_charts_fill_their_rows_and_can_be_read(
    tab: Page, page: str, width: int, height: int
) -> None:
    tab.set_viewport_size({"width": width, "height": height})
    tab.goto(f"{tab.url.rpartition('/')[0]}/{page}.html")
    boxes = tab.evaluate(
        """() => [...document.querySelectorAll(".charts figure")].filter((each) => !each.hidden)
            .map((each) => each.getBoundingClientRect()).map(({ x, y, width }) => [x, y, width])"""
    )
    assert boxes
    assert min(own for _, _, own in boxes) >= 140
    rows = {y: max(x + own for x, at, own in boxes if at == y) for _, y, _ in boxes}
    assert max(rows.values()) - min(rows.values()) < 1, "no part of a row is left blank"
    (all_of_it,) = tab.evaluate(
        "[document.querySelector('.charts')].map((each) => each.getBoundingClientRect().right)"
    )
    assert all_of_it - max(rows.values()) < 20
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
