"""The store: one folder of small JSON files per run.

::

    $MAPLE_HOME/runs/<run id>/      default of MAPLE_HOME: $XDG_DATA_HOME/maple, ~/.local/share/maple
        run.json          what it is: site, folders, title, who made it where and when
        request.json, plan.json
        intent.<n>.json   written before submission n: unique job name, time, process, host
        submitted.<n>.json  the job id of submission n
        refused.<n>.json  the scheduler's words, when it refused submission n
        restart.json      what was decided about starting it again
        cancelled.json    somebody asked for the end of the run
        cancel_sent.json  and the scheduler was told
        outcome.json      the final outcome, once it is known

A folder appears whole, by one rename. Files are put in place by rename or created exclusively; there is no
lock and no database, so the store lives on NFS and Lustre. The run directory, which holds script, log and exit
record, is elsewhere (:mod:`maple_parsl.runs.place`) and may be purged without harm to the store.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple_parsl.errors import RequestError, StoreError, UnknownNameError
from maple_parsl.folders import expanded
from maple_parsl.plan import Plan
from maple_parsl.runs import files, process
from maple_parsl.transport.via import Via

FORMAT = 1
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{5,60}\Z")
_MEMBER = re.compile(r"(\d{8}-\d{6}-[0-9a-f]{12})-(?:p(\d+)-)?(\d+)\Z")
_INTENT = re.compile(r"intent\.(\d{1,4})\.json\Z")


def home(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for everything Maple keeps: MAPLE_HOME, else the user's data folder.

    Raises:
        StoreError: there is neither MAPLE_HOME nor a home.
    """
    environ = os.environ if environ is None else environ
    if stated := environ.get("MAPLE_HOME", "").strip():
        return Path(os.path.abspath(expanded(stated, "MAPLE_HOME")))
    base = environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "share")
    if not os.path.isabs(base):
        raise StoreError("there is no home folder to keep runs in; set MAPLE_HOME to a folder of yours")
    return Path(base) / "maple"


@dataclass(frozen=True)
class Summary:
    """What a list shows of a run without opening its plan.

    Attributes:
        created: seconds since 1970. walltime: seconds. run_dir, work_dir: absolute paths.
        here: launched inside an allocation, so that no scheduler follows it. clusters: of Slurm, where named.
        via: the way to its site, where that is not this machine.
        hand: the user's own script, sent as it is; empty for a plan of Maple's.
        process: which process was about to submit it; None after a dry run.
        group: the sweep or chain it belongs to. kind: which of the two. element: its index in a job array; None
            for a job of its own.
        restarts: what the attempts of a launch share, see :mod:`maple_parsl.runs.restart`; None where none was asked
            for.
        problem: why the entry cannot be read, if so; the other fields are then empty.
    """

    id: str
    site: str = ""
    scheduler: str = ""
    title: str = ""
    run_dir: str = ""
    work_dir: str = ""
    job_name: str = ""
    poll_seconds: int = 60
    created: float = 0.0
    host: str = ""
    node_hours: float | None = None
    nodes: int | None = None
    walltime: int | None = None
    here: bool = False
    clusters: str | None = None
    via: Via | None = None
    process: Mapping[str, Any] | None = None
    group: str | None = None
    kind: str | None = None
    element: int | None = None
    hand: str = ""
    restarts: Mapping[str, Any] | None = None
    problem: str | None = None


class Entry:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name

    def read(self, name: str) -> dict[str, Any] | None:
        """A file of the run; None when absent, :class:`StoreError` when damaged."""
        return files.read(self.folder / name)

    def write(self, name: str, value: Any) -> None:
        """Put a file in place, replacing an older one."""
        files.write(self.folder / name, value)

    def create(self, name: str, value: Any) -> bool:
        """Create a file; False when another process was first."""
        return files.create(self.folder / name, value)

    def summary(self) -> Summary:
        """What the run is; raises :class:`StoreError` when the folder is damaged or not ours."""
        raw = self.read("run.json")
        path = self.folder / "run.json"
        if raw is None:
            raise files.damaged(path, "it is missing")
        if raw.get("format") != FORMAT or raw.get("id") != self.id:
            raise files.damaged(path, f"it is not of this run (format {raw.get('format')!r}, id {raw.get('id')!r})")
        try:
            return Summary(
                id=self.id,
                site=_text(raw["site"]),
                scheduler=_text(raw["scheduler"]),
                title=_text(raw["title"]),
                run_dir=_text(raw["run_dir"]),
                work_dir=_text(raw["work_dir"]),
                job_name=_text(raw["job_name"]),
                poll_seconds=int(raw["poll_seconds"]),
                created=float(raw["created"]),
                host=_text(raw.get("host", "")),
                node_hours=None if raw.get("node_hours") is None else float(raw["node_hours"]),
                nodes=None if raw.get("nodes") is None else int(raw["nodes"]),
                walltime=None if raw.get("walltime") is None else int(raw["walltime"]),
                here=bool(raw.get("here", False)),
                via=Via.from_json(raw["via"]) if raw.get("via") else None,
                process=raw["process"] if isinstance(raw.get("process"), dict) else None,
                clusters=None if raw.get("clusters") is None else _text(raw["clusters"]),
                group=None if raw.get("group") is None else _text(raw["group"]),
                kind=None if raw.get("kind") is None else _text(raw["kind"]),
                hand=_text(raw.get("hand", "")),
                restarts=raw["restarts"] if isinstance(raw.get("restarts"), dict) else None,
                element=None if raw.get("element") is None else int(raw["element"]),
            )
        except (KeyError, TypeError, ValueError, RequestError) as error:
            raise files.damaged(path, f"a value is missing or wrong ({error})") from None

    def plan(self) -> Plan:
        """The plan that was submitted."""
        path = self.folder / "plan.json"
        raw = self.read("plan.json")
        if raw is None:
            raise files.damaged(path, "it is missing")
        from maple_parsl.errors import ConfigurationError

        try:
            return Plan.model_validate(raw)
        except ValueError as error:
            raise files.damaged(path, f"it is not a plan ({str(error)[:200]})") from None
        except ConfigurationError as error:
            raise files.damaged(path, str(error)) from None

    def submissions(self) -> int:
        """How many times a submission of this run was begun."""
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise files.explained(self.folder, error, "read") from None
        return max((int(m[1]) for name in names if (m := _INTENT.match(name))), default=0)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


class Store:
    """All runs of this user.

    Args:
        root: the folder; default :func:`home`.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or home()
        self.runs = self.root / "runs"

    def add(
        self,
        plan: Plan,
        *,
        here: bool = False,
        submits: bool = True,
        via: Mapping[str, str] | None = None,
        member: Mapping[str, Any] | None = None,
    ) -> Entry:
        """Record a run that is about to be submitted; its folder appears at once and whole.

        Args:
            member: ``group``, ``kind`` and ``element`` of a run of a sweep or chain, or ``restarts``; see
                :class:`Summary`.
            here: launched inside an allocation. submits: this process is about to submit it (not for a dry run).
            via: the way to its site.

        Raises:
            StoreError: it cannot be written, or the id exists already.
        """
        place = plan.place
        if place is None:
            raise StoreError("a run needs a place before it is stored")
        record = {**_run_record(plan, here, submits), **({"via": dict(via)} if via else {}), **(member or {})}
        request = plan.request.model_dump(mode="json", exclude_defaults=True)
        return self.record(place.run_id, record, {"request.json": request, "plan.json": plan.to_json()})

    def record(self, run_id: str, record: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> Entry:
        """Make the folder of a run, with ``run.json`` and other files, whole and at once.

        Raises:
            StoreError: it cannot be written, or the id exists already.
        """
        files.make_folder(self.runs)
        building = self.runs / f".{run_id}.{os.getpid()}.new"
        entry = Entry(building)
        try:
            files.make_folder(building)
            for name, value in (more or {}).items():
                entry.write(name, value)
            entry.write("run.json", record)
            final = self.runs / run_id
            try:
                os.rename(building, final)
            except OSError as error:
                if final.exists():
                    raise StoreError(f"run {run_id} exists already; nothing was submitted") from None
                raise files.explained(final, error, "written") from None
        finally:
            with contextlib.suppress(OSError):
                shutil.rmtree(building)
        return Entry(final)

    def ids(self) -> list[str]:
        """All run ids, oldest first."""
        try:
            names = os.listdir(self.runs)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise files.explained(self.runs, error, "read") from None
        return sorted(name for name in names if RUN_ID.match(name))

    def open(self, prefix: str) -> Entry:
        """The run whose id starts with ``prefix``, or whose random part does.

        Raises:
            UnknownNameError: no such run, or several; they are listed.
        """
        wanted = prefix.strip().lower().removeprefix("maple-")
        ids = self.ids()
        if wanted in ids:
            return Entry(self.runs / wanted)
        found = [i for i in ids if wanted and (i.startswith(wanted) or i.split("-", 2)[-1].startswith(wanted))]
        if len(found) == 1:
            return Entry(self.runs / found[0])
        if len(found) > 1:
            shown = ", ".join(found[-8:]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")
            raise UnknownNameError("run", prefix, (), f"is the beginning of {len(found)} runs: {shown}")
        raise UnknownNameError("run", prefix, ids[-8:], "(maple runs lists them)")

    def members(self, prefix: str) -> tuple[str, list[Entry]]:
        """The sweep or chain whose id, or the random part of it, begins so, and its runs in order; or none."""
        wanted = prefix.strip().lower().removeprefix("maple-")
        found: dict[str, list[tuple[int, int, str]]] = {}
        for run_id in self.ids():
            match = _MEMBER.match(run_id)
            if match and wanted and (match[1].startswith(wanted) or match[1].split("-", 2)[2].startswith(wanted)):
                found.setdefault(match[1], []).append((int(match[2] or 0), int(match[3]), run_id))
        if len(found) != 1:
            return "", []
        ((group, rows),) = found.items()
        return group, [Entry(self.runs / run_id) for _, _, run_id in sorted(rows)]

    def summaries(self) -> Iterator[Summary]:
        """All runs, newest first; one that cannot be read is listed with its problem."""
        for run_id in reversed(self.ids()):
            try:
                yield Entry(self.runs / run_id).summary()
            except StoreError as error:
                yield Summary(id=run_id, problem=str(error))


def _run_record(plan: Plan, here: bool, submits: bool) -> dict[str, Any]:
    place = plan.place
    assert place is not None
    from maple_parsl.schedulers import clusters_of

    return {
        "format": FORMAT,
        "id": place.run_id,
        "site": plan.site,
        "scheduler": plan.scheduler,
        "title": plan.title,
        "job_name": plan.job_name,
        "run_dir": place.run_dir,
        "work_dir": place.work_dir,
        "poll_seconds": plan.poll_seconds,
        "node_hours": plan.node_hours,
        "nodes": plan.shape.nodes,
        "walltime": None if plan.walltime is None else int(plan.walltime),
        "created": time.time(),
        "host": os.uname().nodename,
        "process": process.identity() if submits else None,
        "here": here,
        "clusters": clusters_of(plan),
    }
