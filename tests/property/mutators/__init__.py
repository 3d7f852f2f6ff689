"""Faults put into scripts that Maple writes, one for each rule."""

from __future__ import annotations

from tests.property.mutators import further, launches, requests
from tests.property.mutators.base import ABSENT, MUTATORS

__all__ = ["ABSENT", "MUTATORS", "further", "launches", "requests"]
