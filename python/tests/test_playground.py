"""The playground, in a real browser: what is moved changes what is shown.

Its decisions are those of the command line. Pages are opened as files, as without a server.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bluewater import _core

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
PLAY = ROOT / "docs/play"
GOLDEN = sorted((ROOT / "crates/sim/tests/golden").glob("*.toml"))
PINS = (ROOT / "crates/sim/tests/golden.rs").read_text()
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
PLAYS = "document.querySelector('bluewater-play')"
DRAWN = f"!{PLAYS}.waiting"  # what arrived is shown with the next picture
SHOWN = f"{DRAWN} && Object.keys({PLAYS}.answers).length == {PLAYS}.sides.length"

pytestmark = pytest.mark.skipif(
    not os.environ.get("CI") and (not (PLAY / "engine.js").exists() or CHROMIUM is None),
    reason="no playground was built (make docs), or there is no browser",
)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page with the playground alone."""
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("play")
    for name in ("engine.js", "play.js", "play.css"):
        shutil.copy(PLAY / name, folder)
    head = '<!doctype html><meta charset="utf-8"><script src="play.js"></script>'
    (folder / "page.html").write_text(f"{head}<bluewater-play></bluewater-play>")
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"file://{folder}/page.html")
        page.wait_for_function(SHOWN)
        yield page
        browser.close()
        assert said == []


def hash_of(text: str) -> str:
    return str(_core.Prepared(text).run()["decision_hash"])


def test_what_is_shown_is_what_the_command_line_decides(tab: Page) -> None:
    for side in ("a", "b"):
        text = tab.evaluate(f"{PLAYS}.scenario('{side}')")
        assert tab.evaluate(f"{PLAYS}.answers.{side}.hash") == hash_of(text)


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_decisions_are_the_same_as_on_the_command_line(tab: Page, file: Path) -> None:
    text = file.read_text()
    answer = tab.evaluate(f"(text) => {PLAYS}.simulate(text)", text)
    assert answer["decision_hash"] == hash_of(text)
    assert f'("{file.stem}", "{answer["decision_hash"]}")' in PINS


def test_what_is_wrong_is_said_with_its_place(tab: Page) -> None:
    answer = tab.evaluate(f"(text) => {PLAYS}.simulate(text)", 'duration = "10"\n')
    assert answer["error"]["line"] == 1, json.dumps(answer)


def test_keys_alone_change_the_link_and_the_address(tab: Page) -> None:
    before = tab.evaluate(f"{PLAYS}.answers.a.hash")
    slider = tab.get_by_label("TCP connections")
    slider.focus()
    for _ in range(40):
        slider.press("ArrowRight")
    tab.wait_for_function(f"{PLAYS}.answers.a.hash != '{before}'")
    flows = tab.evaluate(f"{PLAYS}.state.flows")
    assert flows > 50
    assert slider.get_attribute("aria-valuetext") == f"{flows} "
    tab.wait_for_function(f"location.hash.includes('flows={flows}&')")
    address = tab.url
    tab.goto("about:blank")
    tab.goto(address)
    tab.wait_for_function(SHOWN)
    assert tab.evaluate(f"{PLAYS}.state.flows") == flows


def test_every_discipline_and_picture_can_be_chosen(tab: Page) -> None:
    choices = tab.get_by_label("Discipline").locator("option").all_inner_texts()
    assert len(choices) > 10
    for choice in choices:
        tab.evaluate(f"{PLAYS}.answers = {{}}")
        tab.get_by_label("Discipline").select_option(choice)
        tab.wait_for_function(f"{PLAYS}.answers.a?.hash")
        assert tab.get_by_role("columnheader", name=choice, exact=True).count() >= 1
    for button in tab.locator(".buttons button").all()[:3]:
        tab.evaluate(f"{PLAYS}.answers = {{}}")
        button.click()
        tab.wait_for_function(SHOWN)
        assert "Decision hash" in tab.locator(".status").inner_text()


def test_every_tcp_can_be_chosen(tab: Page) -> None:
    choices = tab.get_by_label("TCP", exact=True).locator("option").all_inner_texts()
    assert len(choices) == 4
    for choice in choices:
        tab.evaluate(f"{PLAYS}.answers = {{}}")
        tab.get_by_label("TCP", exact=True).select_option(choice)
        tab.wait_for_function(SHOWN)


@pytest.mark.alone
def test_what_is_dragged_is_shown_at_once(tab: Page) -> None:
    """A second of dragging: what is simulated and drawn meanwhile. A quiet machine makes 40."""
    tab.get_by_role("button", name="A bloated buffer").click()
    tab.wait_for_function(SHOWN)
    drag = f"""async () => {{
            const play = {PLAYS}, before = play.runs;
            const slider = play.querySelector("[id$=-buffer]");
            let frames = 0;
            for (const began = performance.now(); performance.now() - began < 1000; frames++) {{
                slider.value = 300 + 10 * (frames % 60);
                slider.dispatchEvent(new Event("input"));
                await new Promise(requestAnimationFrame);
            }}
            return [frames, play.runs - before];
        }}"""
    frames, runs = max(tab.evaluate(drag) for _ in range(3))
    assert frames >= 30
    assert runs >= 4


def test_it_is_small() -> None:
    """What a server sends of it, compressed."""
    sent = sum(len(gzip.compress((PLAY / name).read_bytes())) for name in ("engine.js", "play.js"))
    assert sent < 1_250_000


def at(tab: Page, address: str) -> None:
    """Opens the page anew at an address."""
    url = tab.url.split("#")[0]
    tab.goto("about:blank")
    tab.goto(f"{url}#{address}")


def test_a_hash_is_named_only_beside_the_scenario_that_has_it(tab: Page) -> None:
    at(tab, "flows=20&step=0")
    tab.wait_for_function(SHOWN)
    before = tab.evaluate(f"{PLAYS}.answers.a.hash")
    tab.evaluate(f"{PLAYS}.engines.a.go = () => {{}}")  # as if it took long
    tab.get_by_label("Round trip without queue").press("ArrowRight")
    assert tab.evaluate(f"{PLAYS}.classList.contains('stale')")
    with tab.expect_download() as download:
        tab.get_by_role("button", name="RED as TOML").click()
    text = download.value.path().read_text()
    assert "bluewater run" not in text
    assert before not in text
    tab.evaluate(f"delete {PLAYS}.engines.a.go; {PLAYS}.engines.a.go()")
    tab.wait_for_function(f"!{PLAYS}.classList.contains('stale')")
    with tab.expect_download() as download:
        tab.get_by_role("button", name="RED as TOML").click()
    text = download.value.path().read_text()
    assert f"says {hash_of(text)}, too" in text


def test_an_address_in_an_open_page_is_followed_and_kept_within_the_sliders(tab: Page) -> None:
    at(tab, "a=BLUE")
    tab.wait_for_function(SHOWN)
    tab.evaluate("location.hash = 'a=PIE&b=DRR&flows=3e6&udp=1e7&rate=5&toString=x&b.max_p=1'")
    tab.wait_for_function(f"{PLAYS}.state.a == 'PIE' && {PLAYS}.state.b == 'DRR'")
    state = tab.evaluate(f"{PLAYS}.state")
    assert (state["flows"], state["udp"], state["rate"]) == (400, 150, 5)
    tab.evaluate("location.hash = 'playground'")  # a place in the page
    tab.evaluate("location.hash = 'a=__proto__&b=constructor&flows=%20'")
    tab.wait_for_function(f"{PLAYS}.state.a == 'RED' && {PLAYS}.state.b == 'BLUE'")
    assert tab.evaluate(f"{PLAYS}.state.flows") == 50
    tab.wait_for_function(SHOWN)


def test_an_address_that_was_typed_is_followed_although_the_page_writes_its_own(tab: Page) -> None:
    at(tab, "a=BLUE")
    tab.wait_for_function(SHOWN)
    tab.evaluate(f"location.hash = 'a=PIE&b=DRR'; {PLAYS}.toAddress()")
    tab.wait_for_function(f"{PLAYS}.state.a == 'PIE' && {PLAYS}.state.b == 'DRR'", timeout=5000)


def test_a_worker_that_traps_or_runs_on_gives_place_to_another(tab: Page) -> None:
    at(tab, "flows=5&step=0")
    tab.wait_for_function(SHOWN)
    tab.evaluate(f"{PLAYS}.state.flows = 3900000; {PLAYS}.changed()")
    tab.wait_for_function(f"{DRAWN} && {PLAYS}.refused.a", timeout=60_000)
    said = tab.locator(".status").inner_text()
    assert "more than the simulator has room for" in said or "not done in 20 s" in said
    tab.evaluate(f"{PLAYS}.state.flows = 6; {PLAYS}.changed()")
    tab.wait_for_function(f"!{PLAYS}.classList.contains('stale')")


def test_tcp_that_needs_ecn_says_so(tab: Page) -> None:
    at(tab, "ecn=off")
    tab.get_by_label("TCP", exact=True).select_option("dctcp")
    ecn = tab.get_by_label("ECN")
    assert (ecn.is_disabled(), ecn.input_value()) == (True, "on")
    tab.get_by_label("TCP", exact=True).select_option("sack")
    assert (ecn.is_disabled(), ecn.input_value()) == (False, "off")


def test_no_share_is_above_one_though_what_waited_before_is_dropped(tab: Page) -> None:
    """FQ-CoDel drops from the longest queue, more packets of a flood than come in the same time."""
    flood = "rate=100&rtt=400&buffer=2000&udp=150&flows=400&step=400&tcp=cubic"
    at(tab, f"a=FQ-CoDel&b=RED&{flood}")
    tab.wait_for_function(SHOWN, timeout=60_000)
    row = tab.locator(".numbers tr", has_text="The flow without control loses")
    lost = [float(each.split()[0]) for each in row.locator("td").all_inner_texts()]
    assert len(lost) == 2
    assert max(lost) < 100
    assert tab.evaluate(f"Math.max(...{PLAYS}.answers.a.share('drops'))") <= 100


def test_numbers_stand_below_one_another_beside_the_themes_rule(tab: Page) -> None:
    material = importlib.util.find_spec("material")
    if material is None or material.origin is None:
        pytest.skip("the theme is not installed")
    styles = Path(material.origin).parent / "templates/assets/stylesheets"
    at(tab, "flows=5&step=0")
    tab.wait_for_function(SHOWN)
    for style in [*styles.glob("main.*.css"), PLAY / "play.css"]:
        tab.add_style_tag(content=style.read_text())
    tab.evaluate("document.body.className = 'md-typeset'")
    # In one go: the page draws these rows anew as often as numbers come.
    align = """(cell) => [...document.querySelectorAll(`.numbers tbody ${cell}`)]
        .map((each) => getComputedStyle(each).textAlign)"""
    assert set(tab.evaluate(align, "td")) == {"right"}
    assert set(tab.evaluate(align, "th")) == {"left"}


def test_a_key_is_a_step_that_one_can_see(tab: Page) -> None:
    at(tab, "flows=1&step=0")
    slider = tab.get_by_label("TCP connections")
    slider.press("ArrowRight")
    assert tab.evaluate(f"{PLAYS}.state.flows") == 2
    for _ in range(3):
        slider.press("ArrowLeft")
    assert tab.evaluate(f"{PLAYS}.state.flows") == 1


def test_a_worker_is_ready_before_its_first_question() -> None:
    """What takes a moment there is done before the question in one browser, after it in another."""
    assert "new WebAssembly.Instance(" in (PLAY / "play.js").read_text()
    assert "WebAssembly.instantiate" not in (PLAY / "play.js").read_text()


def test_a_question_that_hangs_gives_way_to_the_next(tab: Page) -> None:
    at(tab, "flows=5&step=0")
    tab.wait_for_function(SHOWN)
    tab.evaluate(
        f"""const engine = {PLAYS}.engines.a, post = engine.worker.postMessage.bind(engine.worker);
        engine.worker.postMessage = (asked) => asked.text.includes('flows = 77') || post(asked);
        {PLAYS}.state.flows = 77; {PLAYS}.changed();
        {PLAYS}.state.flows = 6; {PLAYS}.changed();"""
    )
    tab.wait_for_function(f"!{PLAYS}.classList.contains('stale')", timeout=10_000)
    assert tab.evaluate(f"{PLAYS}.refused") == {}
