"""The report: one HTML file that needs nothing else, and the files beside it."""

from bluewater.report.build import tally, to_json, write_report

__all__ = ["tally", "to_json", "write_report"]
