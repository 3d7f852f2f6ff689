"""A hand-written script: checked, submitted once, and followed; its bytes stay as they are.

The job gets a name of its own on the command line, so that it is found again whatever happens; nothing is added to
the script, so how it ended is the scheduler's word.
"""

from __future__ import annotations

import getpass
import os
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maple_parsl.catalogue import Catalogue
from maple_parsl.checking.files import read_file
from maple_parsl.checking.project import Project
from maple_parsl.checking.report import FileReport
from maple_parsl.errors import ComposeError, RequestError, SchedulerError
from maple_parsl.here import detect_site
from maple_parsl.runs import cost, files, process, submit
from maple_parsl.runs.place import new_id
from maple_parsl.runs.run import Run
from maple_parsl.runs.start import Terms
from maple_parsl.runs.store import FORMAT, Store
from maple_parsl.schedulers import commands
from maple_parsl.schedulers.submission import JOB_IDS, judged
from maple_parsl.site import Defaults, Site
from maple_parsl.walltime import Walltime

_DEADLINE = 60.0


@dataclass(frozen=True)
class Hand:
    """What is known of a script before it is sent.

    Attributes:
        report: its findings. site: where it is sent; None where no known site is this machine.
        nodes, walltime: as its directives state them.
    """

    path: Path
    data: bytes
    report: FileReport
    site: Site | None
    scheduler: str

    @property
    def nodes(self) -> int | None:
        """Nodes, where they are stated."""
        script = self.report.script
        if self.scheduler == "slurm":
            found = script.directive("--nodes")
            return found.number if found else None
        select = script.directive("select")
        chunks = re.findall(r"(?:^|\+)(\d+)", select.value or "") if select else []
        return sum(map(int, chunks)) or None

    @property
    def walltime(self) -> Walltime | None:
        """The walltime, where it is stated in a form that can be read."""
        found = self.report.script.directive("--time" if self.scheduler == "slurm" else "walltime")
        text = found.value if found else None
        if text is None:
            return None
        if self.scheduler == "slurm" and text.isdecimal():
            return Walltime(int(text) * 60)
        try:
            return Walltime.parse(text)
        except RequestError:
            return None

    @property
    def cost(self) -> cost.Cost:
        """What it can cost at most, as far as its directives tell."""
        script, nodes, walltime = self.report.script, self.nodes, self.walltime
        account = script.directive("--account") or script.directive("-A")
        queue = script.directive("--partition") or script.directive("queue")
        hours = nodes * walltime.hours if nodes and walltime else None
        shown = str(walltime) if walltime else None
        names = account.value if account else None, queue.value if queue else None
        return cost.Cost(*names, nodes or 1, shown, hours, None)


def examined(path: Path, site: str | None, catalogue: Catalogue) -> Hand:
    """Read and check a script.

    Raises:
        RequestError: it cannot be read, or is for neither Slurm nor PBS. UnknownNameError: no such site.
    """
    data = read_file(path)
    name = site or detect_site(catalogue, catalogue.environ).site
    known = catalogue.get(name).site if name else None
    report = Project(catalogue.cwd, known.name if known else None).check(data, str(path), path)
    scheduler = report.script.scheduler
    if scheduler not in ("slurm", "pbs"):
        raise RequestError(f"{path} has no directive of Slurm or PBS, so it is not known which scheduler is to take it")
    if known is not None and known.scheduler.kind != scheduler:
        raise RequestError(f"{path} is for {scheduler}, and {known.name} runs {known.scheduler.kind}")
    return Hand(path, data, report, known, scheduler)


def start(hand: Hand, options: Sequence[str], terms: Terms, cwd: Path, store: Store | None = None) -> Run:
    """Submit a script, once, and return its run.

    Args:
        options: further words for sbatch or qsub, before the script.

    Raises:
        ComposeError: it has findings of severity error, and ``force`` was not given.
        LimitError, SubmissionError, SchedulerError, StoreError: as for any run.
    """
    store = store or Store()
    errors = [found for found in hand.report.findings if found.severity == "error"]
    if errors and not terms.force:
        raise ComposeError([f"line {f.line}: {f.message} [{f.rule}; --force submits it anyway]" for f in errors])
    defaults = hand.site.defaults if hand.site else Defaults()
    cost.confirm(hand.cost, defaults, max_node_hours=terms.max_node_hours, yes=terms.yes, ask=terms.ask)
    run_id = new_id()
    folder = Path(os.path.abspath(cwd / (terms.run_root or "maple-runs"))) / run_id
    files.make_folder(folder)
    script = folder / "script.sh"
    try:
        script.write_bytes(hand.data)
    except OSError as error:
        raise files.explained(script, error, "written") from None
    name = f"maple-{run_id}"
    poll = hand.site.scheduler.poll_seconds if hand.site else 60
    directive = hand.report.script.directive("--clusters")
    clusters = directive.value if directive else hand.site.scheduler.clusters if hand.site else None
    record = {
        "format": FORMAT,
        "id": run_id,
        "site": hand.site.name if hand.site else hand.scheduler,
        "scheduler": hand.scheduler,
        "title": hand.path.name,
        "job_name": name,
        "run_dir": str(folder),
        "work_dir": str(cwd),
        "poll_seconds": poll,
        "node_hours": hand.cost.node_hours,
        "nodes": hand.nodes,
        "walltime": None if hand.walltime is None else int(hand.walltime),
        "created": time.time(),
        "host": os.uname().nodename,
        "process": process.identity(),
        "here": False,
        "clusters": clusters,
        "hand": str(hand.path.absolute()),
    }
    entry = store.record(run_id, record)
    run = Run(entry, store)

    def send() -> str:
        return _sent(hand, script, name, clusters, options, cwd)

    job_id = submit.once([entry], name, poll, script, send)
    if log := _log(hand, name, job_id, cwd):
        try:
            os.symlink(log, folder / "log.txt")
        except OSError as error:
            raise files.explained(folder / "log.txt", error, "written") from None
    return run


def _sent(hand: Hand, script: Path, name: str, clusters: str | None, options: Sequence[str], cwd: Path) -> str:
    """Call sbatch or qsub in the user's folder; the id of the job."""
    if hand.scheduler == "slurm":
        words = ["sbatch", "--parsable", f"--job-name={name}", *([f"--clusters={clusters}"] if clusters else [])]
    else:
        words = ["qsub", "-N", name]
    answer = commands.run([*words, *options, str(script)], deadline=_DEADLINE, locale=None)
    if answer.code != 0:
        raise judged(hand.scheduler, f"{answer.err}\n{answer.out}", answer.code)
    lines = answer.out.strip().splitlines() or [""]
    job_id = lines[-1].strip().partition(";")[0]  # --parsable: id;cluster
    if not JOB_IDS[hand.scheduler].fullmatch(job_id):
        said = shlex.quote(answer.out.strip()[:100])
        raise SchedulerError(f"the scheduler took the script and answered {said}; look for the job by its name {name}")
    return job_id


def _log(hand: Hand, name: str, job_id: str, cwd: Path) -> Path | None:
    """Where the script's output goes, where its directives tell; for arrays there is no single place."""
    script = hand.report.script
    if hand.scheduler == "slurm":
        if script.directive("--array"):
            return None
        stated = script.directive("--output")
        pattern = (stated.value if stated else None) or "slurm-%j.out"
        known = {"%j": job_id, "%A": job_id, "%x": name, "%u": getpass.getuser(), "%%": "%", "%J": job_id}
        text = re.sub(r"%[A-Za-z%]", lambda found: known.get(found[0], found[0]), pattern)
        return None if re.search(r"%\d*[A-Za-z]", text) else cwd / text
    stated = script.directive("-o")
    number = job_id.partition(".")[0]
    if "[" in number or (stated and (stated.value or "").endswith("/")):
        return None
    return cwd / (stated.value.rpartition(":")[2] if stated and stated.value else f"{name}.o{number}")
