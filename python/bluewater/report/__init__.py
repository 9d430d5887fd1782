"""The pages: each one HTML file that needs nothing else, with files beside it."""

from bluewater.report.build import besides, tally, write_report
from bluewater.report.explore import write_exploration
from bluewater.report.kept import LeftOut, told
from bluewater.report.section import to_json

__all__ = [
    "LeftOut",
    "besides",
    "tally",
    "to_json",
    "told",
    "write_exploration",
    "write_report",
]
