"""The test of the launch before the program: whether it runs, and what it is told of the plan."""

from __future__ import annotations

from maple_parsl.compose.context import Context
from maple_parsl.compose.launch import interpreter
from maple_parsl.plan import Launch, Placement, Preflight, Shape
from maple_parsl.shell import Rooted, Word

_SECONDS = 60
_NODES_A_SECOND = 8  # large launches start more slowly: a second more for each so many nodes beyond 64


def preflight(context: Context, launch: Launch, paradigm: str, shape: Shape, placement: Placement) -> Preflight | None:
    """The preflight of a launch: as stated, else for every launch on several nodes of a scheduler."""
    action = context.request.preflight
    if action is not None:
        context.note("preflight", "stated", "stated in the request")
    elif shape.nodes > 1 and context.site.scheduler.kind != "none":
        action = "stop"
        context.note("preflight", "maple", "a launch on several nodes is tried before it is left alone for hours")
    if action is None or action == "off":
        return None
    seconds = _SECONDS + max(0, shape.nodes - 64) // _NODES_A_SECOND
    words: list[Word] = [interpreter(context), "-u", Rooted(root="MAPLE_RUN_DIR", rest="/bin/preflight.py")]
    words += ["--nodes", str(shape.nodes), "--per-node", str(shape.devices), "--paradigm", paradigm]
    words += ["--seconds", str(seconds)]
    if launch.mode == "device" and all(placement.cores):
        words += ["--cores", "/".join(map(str, placement.cores))]
    return Preflight(action=action, program=tuple(words), seconds=seconds)
