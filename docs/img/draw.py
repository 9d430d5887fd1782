"""Makes ``compare.png``, ``today.png`` and ``varying.png``: ``.venv/bin/python docs/img/draw.py``.

It runs the commands below in a temporary folder, and the scenario of the page on links that vary,
and keeps the pictures with few colours.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from PIL import Image

import bluewater
from bluewater import rates

HERE = Path(__file__).parent


def keep(path: Path, name: str) -> None:
    """Keeps a picture with few colours."""
    picture = Image.open(path).convert("RGB")
    small = picture.resize((1184, round(1184 * picture.height / picture.width)), Image.LANCZOS)
    # The default method goes by area: a thin line takes the colour of what there is more of.
    small.quantize(192, Image.Quantize.MAXCOVERAGE).save(HERE / name, optimize=True)


def varying(path: Path) -> None:
    """The page's scenario under three disciplines: rate, throughput, and delay in the queue."""
    page = (HERE.parent / "varying.md").read_text(encoding="utf-8")
    code = re.search(r"```toml\n(.*?)```", page, re.S)[1]
    trace = rates.make("cellular", mean="10mbit", length="60s", seed=7).text
    course = pl.read_csv(trace.encode()).filter(pl.col("time_s") <= 20)
    _, (above, below) = plt.subplots(2, sharex=True, figsize=(8, 5), layout="constrained")
    above.step(course["time_s"], course["rate_bps"] / 1e6, where="post", color="0.5", label="link")
    for aqm in ("blue", "codel", "pie"):
        text = code.replace('"codel"', f'"{aqm}"') + '[measure]\ninterval = "100ms"\n'
        series = bluewater.run(text).series.filter(pl.col("time_s") <= 20)
        sent = series["departures"] * 1000 * 8 / 0.1 / 1e6
        above.plot(series["time_s"], sent, lw=1, label=aqm)
        below.plot(series["time_s"], series["backlog_packets"], lw=1, label=aqm)
    above.set_ylabel("Mb/s")
    below.set(xlabel="time (s)", ylabel="queue (packets)", yscale="symlog")
    above.legend(ncols=4, fontsize="small")
    plt.savefig(path, dpi=180)


COMMANDS = {
    "compare": "compare red blue droptail --rate 45mbit --rtt 100ms --flows 400",
    "today": "compare dualpi2 cake fq-codel red blue --rate 50mbit --rtt 40ms --flows 20 "
    "--transport cubic --preset modern",
}

with tempfile.TemporaryDirectory() as folder:
    for name, text in COMMANDS.items():
        command = [sys.executable, "-m", "bluewater", *text.split(), "--out", f"{folder}/{name}"]
        subprocess.run(command, check=True)
        keep(next(Path(folder, name).glob("compare-*.png")), f"{name}.png")
    varying(Path(folder) / "varying.png")
    keep(Path(folder) / "varying.png", "varying.png")
