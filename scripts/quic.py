"""Runs every queue discipline under each QUIC stack and its controllers, and under TCP's.

Writes docs/measured/quic.csv. Four flows of one stack and controller share a link of 20 Mb/s with
a round trip of 40 ms and a buffer of one bandwidth-delay product for 30 s, of which the last 20 s
count.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

import bluewater

LOADS = ("quinn:cubic", "quinn:newreno", "noq:cubic", "noq:newreno", "cubic", "bbr")
COLUMNS = {
    "utilisation": "utilisation", "delay_mean_s": "delay_mean_ms", "delay_p95_s": "delay_p95_ms",
    "loss": "loss", "marks": "marks", "jain": "jain",
}  # fmt: skip


def main() -> None:
    """Makes the runs and writes the table."""
    aqms = [each["name"] for each in bluewater.catalog()["aqms"]]
    parts = []
    for load in LOADS:
        made = bluewater.compare(
            aqms, rate="20mbit", rtt="40ms", flows=4, duration="30s", transport=load
        )
        rows = made.runs.select("aqm", *COLUMNS).rename(COLUMNS)
        parts.append(rows.select(pl.lit(load).alias("transport"), pl.all()))
    every = pl.concat(parts).with_columns(pl.col("delay_mean_ms", "delay_p95_ms") * 1000)
    file = Path(__file__).parents[1] / "docs/measured/quic.csv"
    every.with_columns(pl.col(pl.Float64).round_sig_figs(3)).write_csv(file)


if __name__ == "__main__":
    main()
