"""One run as one HTML page that needs nothing else: no network, no files beside it."""

from maple_parsl.report.page import report

__all__ = ["report"]
