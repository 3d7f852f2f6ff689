"""Extraction: words → what they state, each value with its place; pure, and without a model."""

from maple_parsl.extraction.extract import extract
from maple_parsl.extraction.reading import FIELDS, Issue, Reading, Value

__all__ = ["FIELDS", "Issue", "Reading", "Value", "extract"]
