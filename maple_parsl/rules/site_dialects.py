"""What a site wants otherwise: its scheduler, options, constraint, launcher."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import after_directives, alone, cite, effective, kinds, submitted
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.directives import normal_name

_OPENMPI = frozenset(
    "--map-by --bind-to --mca -mca -x --rank-by --npernode -npernode --report-bindings --oversubscribe".split()
)
_CRAY = frozenset("--depth -d --cpu-bind --gpu-bind --no-vni --line-buffer --pmi --rlimits".split())
_FLAGS = {"openmpi": _CRAY, "pals": _OPENMPI | {"-ppr", "-rr", "-perhost"}, "hydra": _OPENMPI | (_CRAY - {"-d"})}


def _scheduler(subject: Subject) -> Iterator[Found]:
    assert subject.site is not None
    wanted, own = subject.site.scheduler.kind, subject.script.scheduler
    if wanted != "none" and own != wanted and submitted(subject):
        yield Found(
            f"directives of {own}; {subject.site.title} runs {wanted}",
            effective(subject)[0].place,
            evidence=cite(subject.site.scheduler),
        )


def _forbidden(subject: Subject) -> Iterator[Found]:
    assert subject.site is not None
    facts = subject.site.directives
    if subject.script.scheduler != subject.site.scheduler.kind:
        return
    names = {normal_name(name, subject.script.scheduler) for name in facts.forbidden}
    for directive in effective(subject):
        if directive.name not in names or directive.name.startswith("--mem"):
            continue
        line = directive.place.line
        yield Found(
            f"{directive.flag} is not taken at {subject.site.title}"
            + (f": {facts.forbidden_note}" if facts.forbidden_note else ""),
            directive.place,
            evidence=cite(facts),
            edits=(Edit(first=line, last=line, text="", safe=False),) if alone(subject, directive) else (),
        )


def _constraint(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    if (
        subject.site is None
        or subject.script.scheduler != "slurm"
        or not submitted(subject)
        or not found
        or any(kind.constraint is None for kind in found)
        or subject.script.directive("--constraint") is not None
    ):
        return
    names = list(dict.fromkeys(k.constraint for k in found if k.constraint))
    yield Found(
        f"no --constraint; at {subject.site.title} it says which nodes are meant: {', '.join(names)}",
        effective(subject)[-1].place,
        evidence=cite(found[0]),
        fix=f"Add #SBATCH --constraint={names[0]}.",
        edits=after_directives(subject, f"#SBATCH --constraint={names[0]}"),
    )


def _own_mpi(subject: Subject) -> bool:
    """The script brings an MPI of its own."""
    words = " ".join(str(step) for step in subject.script.steps_of("module")).lower()
    return any(name in words for name in ("openmpi", "mpich", "mvapich", "impi", "intelmpi", "hpcx", "mpi/"))


def _launcher(subject: Subject) -> Iterator[Found]:
    assert subject.site is not None
    site = subject.site
    if subject.script.scheduler != site.scheduler.kind or _own_mpi(subject):
        return
    dialects = {site.launchers[kind.launcher].dialect for kind in kinds(subject)}
    dialects |= {d for kind in kinds(subject) if (d := site.launchers[kind.launcher].per_node_dialect)}
    facts = site.launchers[kinds(subject)[0].launcher]
    for launch in subject.script.launches:
        if launch.command.conditional:
            continue
        if launch.launcher in ("ibrun", "aprun", "jsrun") and launch.launcher not in dialects:
            yield Found(
                f"{launch.launcher} is not at {site.title}; processes are started with {facts.command}",
                launch.place,
                evidence=cite(facts),
            )
        if launch.launcher not in ("mpiexec", "mpirun") or len(dialects) != 1 or "/" in str(launch.command.words[0]):
            continue
        dialect = next(iter(dialects))
        if facts.command != str(launch.command.words[0]):
            continue
        for option in launch.options:
            if option.flag in _FLAGS.get(dialect, ()):
                yield Found(
                    f"{option.flag} is no option of {facts.command} at {site.title} ({dialect})",
                    option.place,
                    evidence=cite(facts),
                )


_ALCF = "#!/bin/bash -l\n#PBS -A demo\n#PBS -q debug\n#PBS -l select=2:system=polaris\n#PBS -l walltime=00:10:00\n"
_ALCF += "#PBS -l filesystems=home:eagle\n"
_NERSC = "#!/bin/bash\n#SBATCH --account=m0000\n#SBATCH --qos=debug\n#SBATCH --nodes=2\n#SBATCH --time=00:10:00\n"
_TACC = (
    "#!/bin/bash\n#SBATCH --partition=gh-dev\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --time=00:10:00\n"
)


_FAMILY = Family("SCHED_DIALECT", source="the site's documentation")


RULES = (
    _FAMILY.rule(
        "scheduler-of-other-site",
        "error",
        "directives of a scheduler the site does not run",
        "The site's scheduler does not read them.",
        "Write the directives of the site's scheduler.",
        _NERSC + "srun python t.py\n",
        _ALCF + "mpiexec -n 8 --ppn 4 python t.py\n",
        _scheduler,
        site="polaris",
    ),
    _FAMILY.rule(
        "option-site-forbids",
        "error",
        "an option the site rejects",
        "The site's submission filter refuses the script, or the job never starts.",
        "Leave the option out.",
        _TACC + "#SBATCH --gres=gpu:1\nibrun python t.py\n",
        _TACC + "ibrun python t.py\n",
        _forbidden,
        site="vista",
    ),
    _FAMILY.rule(
        "constraint-missing",
        "error",
        "the kind of node is not stated",
        "Where one queue has several kinds of node the constraint chooses; without it the job is refused"
        " or lands on other nodes.",
        "Add --constraint.",
        _NERSC + "srun python t.py\n",
        _NERSC + "#SBATCH --constraint=gpu\nsrun python t.py\n",
        _constraint,
        site="perlmutter",
    ),
    _FAMILY.rule(
        "launcher-of-other-site",
        "error",
        "a launcher or launcher option of another site",
        "Launchers share names and not options; the command stops with an unknown option, or binds otherwise.",
        "Use the options of the launcher at this site.",
        _ALCF + "mpiexec -n 8 --map-by ppr:4:node python t.py\n",
        _ALCF + "mpiexec -n 8 --ppn 4 python t.py\n",
        _launcher,
        site="polaris",
    ),
)
