"""The report: one HTML file that needs nothing else, and the files beside it."""

from bluewater.report.build import to_json, write_report

__all__ = ["to_json", "write_report"]
