"""Explain: for each line of a plan's script, why it is there and where its value came from."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from maple_parsl.plan import Origin, Plan
from maple_parsl.script.render import lines


@dataclass(frozen=True)
class Explained:
    """One line. ``layer``: as of :class:`maple_parsl.plan.Origin`; ``why``: one sentence; ``source``: a fact's."""

    number: int
    text: str
    layer: str
    why: str
    source: str | None = None
    checked_on: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


# Sections of the script by the line that opens them, with what their fixed text is for.
_SECTIONS = (
    (re.compile(r"# --- This run"), "names of this run and its folders, for everything below"),
    (re.compile(r"# --- Bookkeeping"), "shipped shell: claims the run, keeps the exit record, forwards signals"),
    (re.compile(r"# --- Watchdog"), "shipped shell: watches the training and says when it no longer advances"),
    (re.compile(r"# --- Environment"), "the software and variables of every process"),
    (re.compile(r"# --- Rendezvous"), "where the processes meet"),
    (re.compile(r"# --- What each"), "the small program around each process"),
    (re.compile(r"# --- Launch"), "the launch itself"),
)
_TASK = re.compile(r"maple_put \"\$MAPLE_(?:RUN_DIR/bin/)?(task|start|preflight|SAMPLE)(?:\.sh|\.py)?\" <<'(\w+)'")


def explain(plan: Plan) -> tuple[Explained, ...]:
    """Every line of the script, in order; none is left without a reason."""
    made: list[Explained] = []
    section, inside, end = "", "", ""
    for number, part in enumerate(lines(plan), 1):
        section = next((why for pattern, why in _SECTIONS if pattern.match(part.text)), section)
        if opened := _TASK.match(part.text):
            inside, end = opened[1], opened[2]
        origin = part.origin or _fixed(plan, part.text, section, inside)
        made.append(_line(number, part.text, origin))
        if inside and part.text == end:
            inside, end = "", ""
    return tuple(made)


def _line(number: int, text: str, origin: Origin) -> Explained:
    checked = origin.checked_on.isoformat() if origin.checked_on else None
    return Explained(number, text, origin.layer, origin.why, origin.source, checked)


def _fixed(plan: Plan, text: str, section: str, inside: str) -> Origin:
    """Why a line is there that carries no fact of the site by itself."""

    def maple(why: str) -> Origin:
        return Origin(layer="maple", why=why)

    if inside == "task":
        return maple(
            "shipped shell around each process: takes its rank from the launcher, watches it, notes its failure"
        )
    if inside == "SAMPLE":
        return maple("shipped shell: samples the devices for the watchdog")
    if inside == "preflight":
        return maple("the preflight: shipped code that tries the launch before the training")
    if inside == "start":
        return Origin(layer="template", why=f"template {plan.template} starts {_program(plan)} on each node")
    if not text.strip():
        return maple("an empty line, for readers")
    if text.startswith("#!"):
        return Origin(layer="site", why="the shell that this site's jobs need")
    if not section:
        return maple("a comment for readers" if text.startswith("#") else "the head of the script")
    if text.startswith(('[ "$MAPLE_GRANTED"', "MAPLE_GRANTED=")):
        return Origin(layer="computed", why=f"the job must have the {plan.shape.nodes} nodes it was planned for")
    if text.startswith("export MAPLE_TASKS="):
        return Origin(layer="computed", why=f"{plan.shape.nodes} nodes x {plan.shape.tasks_per_node} started processes")
    if text.startswith(("export MAPLE_RANK_VARS", "export MAPLE_SIZE_VARS")):
        return _of(
            plan, "launcher", f"variables in which the launcher ({plan.launch.dialect}) tells each process its rank"
        )
    if text.startswith("export MAPLE_VISIBLE_NAME"):
        return Origin(layer="site", why="the order of devices in which each local rank is near its cores")
    if section == _SECTIONS[-1][1] and not text.startswith(("#", "export ", "for ", "done", "  [")):
        if text == "maple_finish":
            return maple("the exit record is written and the job ends with the code of the first failure")
        if text.startswith(("maple_launch", "maple_preflight")):
            return _of(plan, "launcher", "the site's launcher, under the watch of this script")
        return Origin(layer="template", why=f"what is started: {_program(plan)}, by template {plan.template}")
    return maple(section)


def _of(plan: Plan, name: str, why: str) -> Origin:
    known = plan.provenance.get(name)
    return known.model_copy(update={"why": why}) if known else Origin(layer="site", why=why)


def _program(plan: Plan) -> str:
    return "the mini-app of this model" if plan.miniapp else str(plan.request.script)
