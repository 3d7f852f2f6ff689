"""What every job must state, and what was left to fill in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import after_directives, cite, documents, effective, fewest, submitted
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.model import Place

# Texts people leave for others to fill in.
PLACEHOLDER = re.compile(
    r"<[A-Za-z][\w .:/-]*>|\[(?:your|my|project|account|partition|queue|email|path)[\w .-]*\]|\{\{\s*\w[\w. -]*\}\}"
    r"|(?<![A-Za-z])(?:your|my)[_-](?:project|account|allocation|partition|queue|email|username|user|name|env|environment"
    r"|venv|conda|path|dir|directory|token|key|id|script|code|data|dataset|home|image|container|group|proj|folder)\w*"
    r"|(?<![A-Za-z])(?:your|yourproject|youraccount|your_?name)(?![A-Za-z])"
    r"|(?<!\w)X{3,}(?!\w)|CHANGE[_-]?ME|REPLACE[_-]?(?:ME|WITH|THIS)|FILL[_-]?(?:ME[_-]?)?IN|(?<!\w)TODO(?!\w)"
    r"|/path/to(?:/|\b)|/your/|(?<!\w)(?:PROJECT|ACCOUNT|ALLOCATION|PARTITION|QUEUE)_?(?:NAME|ID)(?!\w)|@example\.(?:com|org|net)\b|(?<!\w)(?:INSERT|ADD)_\w+_HERE",
    re.I,
)
_SHELL_PLACEHOLDER = re.compile(
    r"/path/to(?:/|\b)|(?<![A-Za-z$({])(?:your|YOUR)[_-]\w+|CHANGE[_-]?ME|REPLACE_(?:ME|WITH|THIS)"
    r"|(?<![<\w])<(?:your|my|path|account|project|user(?:name)?|env(?:ironment)?|conda|token|key|image|dir(?:ectory)?)"
    r"(?:[ _./-]\w+)*>|(?<!\w)X{4,}(?!\w)"
)


def _sized(subject: Subject) -> bool:
    """The script states the job's size, so that it is not all given on the command line."""
    return any(
        subject.script.directive(n) for n in ("-l select", "-l nodes", "--nodes", "--ntasks", "--gpus", "-nnodes")
    )


def _walltime(subject: Subject) -> Iterator[Found]:
    script, site = subject.script, subject.site
    if not submitted(subject) or script.scheduler not in ("slurm", "pbs", "lsf") or not script.launches:
        return
    if script.directive("walltime") is not None:
        return
    ours = site is not None and script.scheduler == site.scheduler.kind
    default = site.scheduler.default_walltime if site is not None and ours else None
    required = ours and script.scheduler == "pbs" and _sized(subject)
    what = f"the job gets {default}" if default else "the job gets the queue's default, or is refused"
    text = {"slurm": "#SBATCH --time=01:00:00", "pbs": "#PBS -l walltime=01:00:00", "lsf": "#BSUB -W 1:00"}
    yield Found(
        f"no time limit is stated; {what}",
        effective(subject)[-1].place,
        evidence=cite(site.scheduler) if site is not None and ours else None,
        severity="error" if required else "warning" if ours else "note",
        edits=after_directives(subject, text[script.scheduler]),
    )


def _nodes(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if not submitted(subject) or script.scheduler not in ("slurm", "pbs"):
        return
    if script.scheduler == "slurm":
        names = ("--nodes", "--ntasks", "--gpus", "--nodelist", "--nodefile", "--exclusive")
        if any(script.directive(n) for n in names):
            tasks = script.directive("--ntasks")
            many = tasks is not None and (tasks.number or 0) > 64
            sizes = ("--nodes", "--ntasks-per-node", "--gpus", "--gpus-per-task", "--nodelist", "--ntasks-per-gpu")
            if many and tasks is not None and not any(script.directive(n) for n in sizes):
                yield Found(
                    f"{tasks.value} tasks and neither nodes nor tasks per node: Slurm places them as cores are free",
                    tasks.place,
                )
            return
    elif any(script.directive(n) for n in ("-l select", "-l nodes", "-l ncpus", "-l mpiprocs")):
        return
    several = script.references("SLURM_JOB_NODELIST") or script.references("SLURM_NODELIST")
    several = several or script.references("SLURM_NNODES") or script.references("PBS_NODEFILE")
    per_node = script.directive("--ntasks-per-node")
    if per_node is not None and not several:
        yield Found(
            f"{per_node.flag} is given and the number of nodes is not; unless given at submission it is one",
            per_node.place,
            severity="note",
        )
    if several and fewest(subject) == 1:
        yield Found(
            "the number of nodes is not stated and the script is for several; unless given at submission it is one",
            effective(subject)[-1].place,
        )


def _always(subject: Subject) -> Iterator[Found]:
    """Directives that a site wants in every job."""
    site = subject.site
    if site is None or not submitted(subject) or subject.script.scheduler != site.scheduler.kind:
        return
    mark = {"pbs": "#PBS", "slurm": "#SBATCH"}.get(site.scheduler.kind)
    for line in site.directives.always:
        name = line.partition("=")[0]
        if mark and name.startswith("-l filesystems") and subject.script.directive(name) is None:
            yield Found(
                f"no {name}; {site.title} refuses jobs that do not name the file systems they use",
                effective(subject)[-1].place,
                evidence=cite(site.directives),
                severity=None if _sized(subject) else "warning",
                fix=f"Add {mark} {line} (only those the job uses).",
                edits=after_directives(subject, f"{mark} {line}"),
            )
        elif name == "-l filesystems" and (given := subject.script.directive(name)) and given.value:
            known = set(line.partition("=")[2].split(":"))
            others = [n for n in re.split("[:%]", given.value) if n not in known] if not given.variables else []
            if others:
                yield Found(
                    f"file system {others[0]} is not among those known at {site.title} ({', '.join(sorted(known))})",
                    given.value_place or given.place,
                    severity="warning",
                    evidence=cite(site.directives),
                    fix="Name only file systems that exist and that the job uses.",
                )


def _account(subject: Subject) -> Iterator[Found]:
    site = subject.site
    if site is None or not submitted(subject) or subject.script.scheduler != site.scheduler.kind:
        return
    if site.scheduler.account == "required" and subject.script.directive("account") is None:
        hint = f" ({site.scheduler.account_hint})" if site.scheduler.account_hint else ""
        yield Found(
            f"no account is named; {site.title} wants one in every job{hint}",
            effective(subject)[-1].place,
            severity=None if _sized(subject) else "warning",
            evidence=cite(site.scheduler),
        )


def _placeholders(subject: Subject) -> Iterator[Found]:
    for directive in effective(subject):
        match = PLACEHOLDER.search(directive.value or "")
        if match and not (directive.name in ("--job-name", "-N") and match[0].lower().startswith("my")):
            lost = directive.name in ("--job-name", "-N", "--mail-user", "-M", "--comment")
            yield Found(
                f"{directive.flag} still has the placeholder {match[0]!r}",
                directive.value_place or directive.place,
                severity="warning" if lost else None,
            )
    inside = documents(subject)
    for number, text in enumerate(subject.lines, 1):
        code = re.sub(r"(?:^|\s)#.*", "", text)
        match = _SHELL_PLACEHOLDER.search(code) if code and number not in inside else None
        if match and not re.match(r"\s*(?:echo|printf|usage)\b", code):
            yield Found(
                f"the placeholder {match[0]!r} was left in the script",
                Place(number, match.start() + 1),
                severity="warning",
            )


_ALCF = "#!/bin/bash -l\n#PBS -q debug\n#PBS -l select=2:system=polaris\n#PBS -l walltime=00:10:00\n"
_END = "mpiexec -n 8 --ppn 4 python t.py\n"
_GOOD = _ALCF + "#PBS -A demo\n#PBS -l filesystems=home:eagle\n" + _END
_S = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=00:10:00\n#SBATCH --account=demo\n"


_FAMILY = Family("MISSING_REQUIRED_FIELD")


_SLURM = "https://slurm.schedmd.com/sbatch.html"
RULES = (
    _FAMILY.rule(
        "walltime-missing",
        "warning",
        "no time limit",
        "Without a limit the job gets the queue's default, often minutes or the longest wait, or is refused.",
        "State a time limit.",
        "#!/bin/bash\n#SBATCH --nodes=2\nsrun python t.py\n",
        _S + "srun python t.py\n",
        _walltime,
        source=_SLURM,
    ),
    _FAMILY.rule(
        "nodes-missing",
        "warning",
        "the number of nodes is not stated",
        "A job that names no size gets one node, or as many as hold its tasks.",
        "State the nodes.",
        "#!/bin/bash\n#SBATCH --time=00:10:00\nsrun python t.py --hosts $SLURM_JOB_NODELIST\n",
        _S + "srun python t.py --hosts $SLURM_JOB_NODELIST\n",
        _nodes,
        source=_SLURM,
    ),
    _FAMILY.rule(
        "filesystems-missing",
        "error",
        "the file systems are not named",
        "PBS there refuses the job: the resource filesystems is required to be set.",
        "Name them.",
        _ALCF + "#PBS -A demo\n" + _END,
        _GOOD,
        _always,
        source="https://docs.alcf.anl.gov/running-jobs/ (filesystems)",
        site="polaris",
    ),
    _FAMILY.rule(
        "account-missing",
        "error",
        "no account is named",
        "The site charges every job to an account and refuses jobs without one.",
        "Name the account.",
        _ALCF + "#PBS -l filesystems=home:eagle\n" + _END,
        _GOOD,
        _account,
        source="the site's documentation",
        site="polaris",
    ),
    _FAMILY.rule(
        "placeholder-left",
        "error",
        "a placeholder was not filled in",
        "The text of the example is used as it stands.",
        "Put in your own value.",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --account=<account>\nsrun python t.py\n",
        _S + "srun python t.py\n",
        _placeholders,
        source=_SLURM,
    ),
)
