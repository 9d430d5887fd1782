"""The live page of a gateway, in a real browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from bluewater import programs

pytestmark = pytest.mark.alone

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)


@dataclass(frozen=True)
class Shell:
    """A shell with a live page, and TCP on its way up."""

    program: str
    name: str
    url: str

    def show(self) -> Any:
        command = [self.program, "ctl", self.name, "show"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return json.loads(text)["queues"]

    def ask(
        self, path: str, *, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, str]:
        """What the port answers; `path` is below the page's address if it does not begin with /."""
        at = urlsplit(self.url)
        connection = http.client.HTTPConnection(at.netloc, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        target = path if path.startswith("/") else at.path + path
        connection.request(method, target, body=body, headers=named)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def shell(options: str) -> Iterator[Shell]:
    program = programs.find("bluewater-gateway")
    name = f"web-{os.getpid()}"
    command = [program, "shell", "--quiet", "--web", "0", "--name", name, *options.split()]
    command += ["--far", f"{program} sink", "--"]
    command += ["sh", "-c", f"{program} bulk 100.64.0.2 --flows 4 --time 100s & cat; kill $!"]
    with subprocess.Popen(command, stdin=-1, stderr=-1, text=True) as running:
        assert running.stdin
        assert running.stderr
        lines = []
        for line in running.stderr:
            lines.append(line)
            if line.startswith("web: "):
                break
        else:
            assert "CI" not in os.environ, lines
            pytest.skip("".join(lines))
        threading.Thread(target=running.stderr.read, daemon=True).start()
        try:
            yield Shell(program, name, lines[-1].removeprefix("web: ").strip())
        finally:
            running.stdin.close()
    assert running.returncode == 0


def soon(ask: Callable[[], Any], right: Callable[[Any], bool]) -> Any:
    """The first answer that is right, of a hundred tries."""
    for _ in range(100):
        answer = ask()
        if right(answer):
            break
        time.sleep(0.1)
    assert right(answer), answer
    return answer


def number(text: str) -> float:
    """The number that a tile begins with, in its unit."""
    found = re.match(r"[\d.]+", text)
    assert found, text
    return float(found[0])


def test_the_page_shows_and_changes_the_link() -> None:
    if CHROMIUM is None:
        assert "CI" not in os.environ, "the live page is tried in Chromium, which is not here"
        pytest.skip("NOT TRIED: the live page, since there is no Chromium here")
    sync_api = pytest.importorskip("playwright.sync_api", exc_type=ImportError)
    expect = sync_api.expect
    expect.set_options(timeout=20_000)
    options = "--rate 8mbit --delay 5ms --aqm blue --ecn"
    with shell(options) as link, sync_api.sync_playwright() as p:
        # As root Chromium has no sandbox; what it opens is ours.
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(link.url)
        expect(page.locator("#live")).to_have_text("live")
        throughput = page.locator("#way-up [data-tile=Throughput]")

        # Values move.
        expect(throughput).to_have_text(re.compile(r"^[78](\.\d+)?Mb/s$"))
        clock = page.locator("#clock").inner_text()
        expect(page.locator("#clock")).not_to_have_text(clock)
        expect(page.locator("#way-up tbody")).to_contain_text("TCP 100.64.0.1:")
        expect(page.locator("#way-up")).to_contain_text("blue: p_m")

        # A slider changes the link, of one way alone if that is chosen.
        page.get_by_text("up", exact=True).click()
        rate = page.locator("#rate")
        rate.focus()
        # Also while the page waits for the state that follows from the first change.
        page.evaluate(
            """() => {
                const fetched = window.fetch;
                window.fetch = async (what, ...how) => {
                    if (what === "state") await new Promise((done) => setTimeout(done, 300));
                    return fetched(what, ...how);
                };
            }"""
        )
        for _ in range(3):
            rate.press("ArrowRight")
            page.wait_for_timeout(120)
        wanted = page.locator("#rate-text").inner_text()
        assert number(wanted) > 8
        up, down = soon(link.show, lambda ways: number(ways[0]["rate"]) == number(wanted))
        assert (down["rate"], up["delay"], down["delay"]) == ("8mbit", "5ms", "5ms")
        expect(page.locator("#rate-text")).to_have_text(wanted)

        # So do the discipline and its parameters.
        page.locator("#aqm").select_option("pie")
        expect(page.locator("#way-up .settings")).to_contain_text("pie")
        page.locator("summary").click()
        target = page.locator("[data-parameter=target]")
        target.fill("20ms")
        target.press("Enter")
        expect(page.locator("#said")).to_contain_text("target 20ms")
        queue = link.show()[0]
        assert (queue["aqm"], queue["params"]["target"]) == ("pie", "20ms")

        # What is wrong is said, and changes nothing.
        target.fill("20")
        target.press("Enter")
        expect(page.locator("#said.wrong")).to_contain_text("allowed")
        assert link.show()[0]["params"]["target"] == "20ms"

        # On a phone nothing hangs over the edge.
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        # The error above is one of the console's, too.
        assert [text for text in wrong if "409" not in text] == []
        browser.close()


def test_nobody_else_sees_or_changes_anything() -> None:
    with shell("--rate 8mbit") as link:
        change = {"method": "POST", "body": '{"rate": "1mbit"}', "Content_Type": "application/json"}
        root = urlsplit(link.url).path
        other = root[:-2] + ("0/" if root[-2] != "0" else "1/")
        for path in ["/", "/state", other, other + "state", other + "page.js", root[:-1], "//"]:
            assert link.ask(path)[0] == 403, path
        assert link.ask(other + "set", **change)[0] == 403
        assert link.ask("state", Host="evil.example")[0] == 403
        assert link.ask("set", Origin="http://evil.example", **change)[0] == 403
        assert link.ask("set", **(change | {"Content_Type": "text/plain"}))[0] == 403
        assert link.show()[0]["rate"] == "8mbit"
        status, text = link.ask("set", **(change | {"body": '{"rate": "1mbps"}'}))
        assert (status, "allowed" in text) == (400, True)
        assert link.ask("set", **change)[0] == 200
        assert link.show()[0]["rate"] == "1mbit"


def test_a_hundred_open_pages_cost_no_packet() -> None:
    """As many as ask four times a second, as pages do, for five seconds."""
    with shell("--rate 8mbit --aqm blue --ecn") as link:
        statuses: list[int] = []

        def page() -> None:
            end = time.monotonic() + 5
            while time.monotonic() < end:
                statuses.append(link.ask("state")[0])
                time.sleep(0.25)

        pages = [threading.Thread(target=page) for _ in range(100)]
        for thread in pages:
            thread.start()
        for thread in pages:
            thread.join()
        assert set(statuses) == {200}
        assert len(statuses) > 500, "on a busy machine"
        for queue in link.show():
            assert queue["conserved"]
            assert (queue["lost_before"], queue["refused"]) == (0, 0)
