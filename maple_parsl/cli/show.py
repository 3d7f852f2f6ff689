"""How plans, findings and states look on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from maple_parsl.cli.output import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from maple_parsl.finding import Finding
    from maple_parsl.plan import Plan
    from maple_parsl.runs.status import Status

_COLOURS = {
    "done": "green",
    "running": "cyan",
    "pending": "yellow",
    "submitting": "yellow",
    "ending": "cyan",
    "unknown": "magenta",
}
_LEVELS = {"error": "bold red", "warning": "yellow", "note": "dim"}


def colour(state: str) -> str:
    """The colour of a state; what went wrong is red."""
    return _COLOURS.get(state, "red")


def facts() -> Table:
    """An empty table of two columns: name and value."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def print_plan(screen: Console, plan: Plan) -> None:
    """The plan on one page: shape, cost, launch."""
    from maple_parsl.runs.cost import Cost
    from maple_parsl.script.launch_line import tree

    shape = plan.shape
    world = f"{shape.world_size} process{'es' if shape.world_size > 1 else ''}"
    table = facts()
    table.add_row("launch", clean(plan.title))
    table.add_row(
        "shape",
        f"{shape.nodes} node{'s' if shape.nodes > 1 else ''} x {shape.devices} {plan.torch_device}"
        f" = {world}, {plan.backend}, template {plan.template}",
    )
    if plan.scheduler != "none":
        table.add_row("cost", clean(str(Cost.of(plan))))
    table.add_row("starts", clean(tree(plan)))
    screen.print(table)
    screen.print()


def print_script(screen: Console, plan: Plan) -> None:
    """The script without the parts that are the same in every one."""
    from maple_parsl.script.render import FIXED

    ends, left_out = "", 0
    write = screen.file.write  # as it is: rich would measure every line
    for line in clean(plan.script).rstrip("\n").split("\n"):
        if ends and line != ends:
            left_out += 1
            continue
        if ends:
            write(f"  ... {left_out} lines, the same in every script ...\n")
            ends, left_out = "", 0
        write(f"{line}\n")
        ends = next((last for first, last in FIXED if line.startswith(first)), "")
    write("\n")


def print_why(screen: Console, plan: Plan) -> None:
    """Every value with why it is there, and the document that says so."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("VALUE", overflow="fold", ratio=1)
    table.add_column("WHY", overflow="fold", ratio=1)
    table.add_column("SOURCE", no_wrap=True)
    parts = [
        *((directive.option, directive.origin) for directive in plan.directives),
        *((step.line, step.origin) for step in plan.setup),
        *((f"{export.name}={export.value}", export.origin) for export in plan.exports),
        (f"MASTER_ADDR={plan.rendezvous.expression}{plan.rendezvous.suffix or ''}", plan.rendezvous.origin),
        *(part for part in plan.provenance.items() if part[1].layer != "stated"),
    ]
    sources: dict[str, int] = {}
    for value, origin in parts:
        source = f"{origin.source}, checked {origin.checked_on}" if origin.source else ""
        number = str(sources.setdefault(source, len(sources) + 1)) if source else ""
        table.add_row(clean(value), clean(origin.why), number)
    screen.print(table)
    screen.print()
    for source, place in sources.items():
        screen.print(f"{place}  {clean(source)}", overflow="fold")
    screen.print()


def print_findings(screen: Console, findings: Iterable[Finding]) -> None:
    """Findings, the worst first, each with what to do."""
    order = list(_LEVELS)
    for finding in sorted(findings, key=lambda found: order.index(found.severity)):
        text = f"{finding.severity}: {clean(finding.message)}"
        if finding.fix:
            text += f"; {clean(finding.fix)}"
        screen.print(text, style=_LEVELS[finding.severity])


def print_status(screen: Console, status: Status, extra: dict[str, str] | None = None) -> None:
    """One run's state, in full."""
    from maple_parsl.runs.words import findings, still

    table = facts()
    state = status.state.value
    table.add_row("run", status.id)
    table.add_row("state", state, style=colour(state))
    if status.explanation:
        table.add_row("why", clean(status.explanation))
    if status.never:
        table.add_row("", "as it stands this job can never start: cancel it and correct the request", style="bold red")
    if status.start_estimate:
        table.add_row("starts about", when(status.start_estimate))
    table.add_row("launch", clean(status.title))
    if status.job_id:
        told = f" ({clean(status.scheduler_state)})" if status.scheduler_state else ""
        table.add_row("job", f"{clean(status.job_id)} at {clean(status.site)}{told}")
    if status.hosts:
        table.add_row("hosts", clean(status.hosts))
    if status.attempt > 1:
        table.add_row("attempt", str(status.attempt))
    if status.preflight:
        found = "; ".join(findings(status.preflight))
        table.add_row("preflight", clean(f"{status.preflight.get('verdict')}{f': {found}' if found else ''}"))
    if status.watchdog:
        table.add_row("watchdog", clean(still(status.watchdog)), style="bold red")
    for line in status.restarts:
        table.add_row("restart", clean(line))
    for name, value in (extra or {}).items():
        table.add_row(name, clean(value))
    if status.asked_at and not status.state.final:
        table.add_row("asked", f"{max(0, round(time.time() - status.asked_at))} s ago")
    table.add_row("files", clean(status.run_dir))
    screen.print(table)
    for note in status.notes:
        screen.print(f"note: {clean(note)}", style="dim")


def when(seconds: float) -> str:
    """A moment in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def figures(found: Any) -> dict[str, str]:
    """The training's figures as rows."""
    if found is None or found.last_loss is None:
        return {}
    speed = f", {found.samples_per_s:.1f} samples/s" if found.samples_per_s else ""
    return {"training": f"step {found.steps}, loss {found.first_loss:.4f} -> {found.last_loss:.4f}{speed}"}
