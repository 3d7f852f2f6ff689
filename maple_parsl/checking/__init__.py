"""Checking script files: configuration, guessing the site, baselines, and the forms a report takes.

The rules themselves are in :mod:`maple_parsl.rules`; nothing here prints or runs anything.
"""

from __future__ import annotations

from maple_parsl.checking.report import FileReport, Report, inspect

__all__ = ["FileReport", "Report", "inspect"]
