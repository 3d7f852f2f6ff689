"""The page: its parts put together from what the store and the run directory hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape

from maple_parsl import picture
from maple_parsl.errors import MapleError
from maple_parsl.plan import Plan
from maple_parsl.report.curves import curves
from maple_parsl.report.script import script
from maple_parsl.report.style import CSS, JS
from maple_parsl.report.text import Shown, moment, rows
from maple_parsl.report.timeline import timeline
from maple_parsl.runs import metrics
from maple_parsl.runs.cost import Cost
from maple_parsl.runs.files import explained
from maple_parsl.runs.logs import missing
from maple_parsl.runs.run import Run
from maple_parsl.runs.status import Status
from maple_parsl.version import VERSION

LOG_TAIL = 64 << 10
"""Bytes of the log's end that are shown."""
_BAD = {True: "bad", False: ""}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def report(run: Run) -> str:
    """The whole page.

    Raises:
        StoreError: the run's records cannot be read.
    """
    status = run.status()
    shown = Shown() if run.summary.hand else Shown.of(run.plan)
    title = shown.html(f"{run.id}: {run.summary.title}")
    parts: list[tuple[str, Callable[[Run, Shown], str]]] = [
        ("Who runs where", _ranks),
        ("Training", _training),
        ("What happened", _timeline),
        ("Cause", _cause),
        ("Findings before submission", _findings),
        ("Script, and where each line comes from", _script),
        ("End of the log", _log),
    ]
    sections = [(head, _made(part, run, shown)) for head, part in parts]
    body = "".join(f"<section><h2>{escape(head)}</h2>{made}</section>" for head, made in sections if made)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{title}</title><style>{CSS}</style></head><body>'
        f"<main><h1>{shown.html(run.summary.title)}</h1>{_head(run, status, shown)}{body}</main>"
        f"<footer>Written by Maple {VERSION} at {moment(time.time())}. Values of variables that were stated, and what"
        f" looks like a secret, are hidden.</footer><script>{JS}</script></body></html>\n"
    )


def _made(part: Callable[[Run, Shown], str], run: Run, shown: Shown) -> str:
    """A part of the page; what cannot be read, such as the log at a site that does not answer, is said in its place."""
    try:
        return part(run, shown)
    except MapleError as error:
        return f'<p class="bad">{shown.html(error)}</p>'


def _head(run: Run, status: Status, shown: Shown) -> str:
    outcome = run.outcome() if status.state.final else None
    mood = "good" if status.state.value == "done" else "bad" if status.state.final else ""
    used = f"{outcome.node_hours:.3f} node-hours" if outcome and outcome.node_hours is not None else ""
    code = str(outcome.code) if outcome and outcome.code is not None else ""
    return f'<p><span class="state {mood}">{escape(status.state.value)}</span></p>' + rows(
        [
            ("why", shown.html(status.explanation)),
            ("run", escape(run.id)),
            ("job", shown.html(f"{status.job_id} at {status.site}") if status.job_id else shown.html(status.site)),
            ("hosts", shown.html(status.hosts)),
            ("shape", "" if run.summary.hand else escape(_shape(run.plan))),
            ("cost", "" if run.summary.hand or run.plan.scheduler == "none" else shown.html(Cost.of(run.plan))),
            ("used", used),
            ("exit code", code),
            ("files", shown.html(status.run_dir)),
        ]
    )


def _shape(plan: Plan) -> str:
    shape = plan.shape
    return f"{shape.nodes} x {shape.devices} = {shape.world_size} processes, {plan.backend}"


def _ranks(run: Run, shown: Shown) -> str:
    if run.summary.hand:
        return ""
    return f'<div class="wide" tabindex="0" role="region" aria-label="rank map">{picture.svg(run.plan)}</div>'


def _training(run: Run, shown: Shown) -> str:
    return curves(metrics.points(run.files)) or '<p class="soft">The program has written no figures.</p>'


def _timeline(run: Run, shown: Shown) -> str:
    made = "".join(
        f'<li>{moment(event.at)}<span class="{_BAD[event.bad]}">{shown.html(event.what)}</span></li>'
        for event in timeline(run)
    )
    return f'<ol class="time">{made}</ol>'


def _cause(run: Run, shown: Shown) -> str:
    outcome = run.outcome()
    if outcome is None or outcome.ok:
        return ""
    from maple_parsl.runs.diagnosed import diagnosed

    made = f"<p>{shown.html(outcome.cause)}</p>"
    for cause in diagnosed(run).causes:
        todo = "".join(f"<li>{shown.html(edit.words)}</li>" for edit in cause.edits)
        made += (
            f"<p><b>{escape(cause.fault_class)}</b> {shown.html(cause.explanation)}</p>"
            f"<pre>{shown.html(cause.evidence.text)}</pre><ul>{todo}</ul>"
        )
    return made


def _findings(run: Run, shown: Shown) -> str:
    if run.summary.hand:
        return ""
    made = "".join(
        f'<li><b class="{found.severity}">{found.severity}</b> {shown.html(found.message)}'
        f"{'; ' if found.fix else ''}{shown.html(found.fix or '')}</li>"
        for found in run.plan.findings
    )
    return f"<ul>{made}</ul>" if made else '<p class="soft">None.</p>'


def _script(run: Run, shown: Shown) -> str:
    if run.summary.hand:
        try:
            text = run.script.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise explained(run.script, error, "read") from None
        made = f"<p>{shown.html(run.summary.hand)}, as it was sent.</p><pre>{shown.html(text)}</pre>"
    else:
        made = script(run.plan, shown)
    return f"<details><summary>{shown.html(run.summary.job_name)}</summary>{made}</details>"


def _log(run: Run, shown: Shown) -> str:
    part = run.logs(-LOG_TAIL)
    if not part:
        why = missing(run.files) or "the log is empty"
        return f'<p class="soft">{shown.html(why)}</p>'
    text = str(part)
    if part.offset > LOG_TAIL:
        text = text.partition("\n")[2]
    return (
        f'<details open id="log"><summary>at most {LOG_TAIL >> 10} KiB</summary><pre>{shown.html(text)}</pre></details>'
    )
