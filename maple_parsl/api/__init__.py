"""The library's functions: plan a launch, run it, find it again."""

from __future__ import annotations

from maple_parsl.api.asking import ask
from maple_parsl.api.composing import plan
from maple_parsl.api.launching import chain, map, run
from maple_parsl.api.listing import runs, sites
from maple_parsl.api.mending import correct, port

__all__ = ["ask", "chain", "correct", "map", "plan", "port", "run", "runs", "sites"]
