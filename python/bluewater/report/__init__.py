"""The pages: each one HTML file that needs nothing else, with files beside it."""

from bluewater.report.build import tally, to_json, write_report
from bluewater.report.explore import write_exploration

__all__ = ["tally", "to_json", "write_exploration", "write_report"]
