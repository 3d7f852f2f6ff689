"""Maple: correct launches of distributed deep-learning training on any GPU cluster.

::

    import maple_parsl as maple

    print(maple.run("gpt", "fsdp", "local").result())
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maple_parsl.api import ask, chain, correct, map, plan, port, run, runs, sites
    from maple_parsl.errors import (
        ComposeError,
        ConfigurationError,
        InferenceError,
        LimitError,
        MapleError,
        NotHereError,
        RequestError,
        RunFailedError,
        SchedulerError,
        StoreError,
        SubmissionError,
        UnknownNameError,
    )
    from maple_parsl.finding import Finding
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request
    from maple_parsl.runs.group import Group
    from maple_parsl.runs.outcome import Outcome
    from maple_parsl.runs.run import Run
    from maple_parsl.walltime import Walltime

__all__ = [
    "ComposeError",
    "ConfigurationError",
    "Finding",
    "Group",
    "InferenceError",
    "LimitError",
    "MapleError",
    "NotHereError",
    "Outcome",
    "Plan",
    "Request",
    "RequestError",
    "Run",
    "RunFailedError",
    "SchedulerError",
    "StoreError",
    "SubmissionError",
    "UnknownNameError",
    "Walltime",
    "__version__",
    "ask",
    "chain",
    "correct",
    "map",
    "plan",
    "port",
    "run",
    "runs",
    "sites",
]

# Where each name comes from; imported when it is first asked for.
_FROM = {
    **dict.fromkeys(("ask", "chain", "correct", "map", "plan", "port", "run", "runs", "sites"), "api"),
    "__version__": "version",
    "Finding": "finding",
    "Group": "runs.group",
    "Outcome": "runs.outcome",
    "Plan": "plan",
    "Request": "request",
    "Run": "runs.run",
    "Walltime": "walltime",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_FROM.get(name, 'errors')}")
    value = getattr(module, "VERSION" if name == "__version__" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """``plan``, ``port`` and ``runs`` are functions here, although modules of these names exist too.

    Importing a module sets its name in the package, and would hide the function.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
