"""MPI libraries, the launchers that start them, and the variables these set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Severity
from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Launch, Place
from maple_parsl.script.rankmap import LaunchRanks

_OPENMPI = re.compile(r"(?<![a-z])(?:openmpi|open-mpi|ompi|hpcx)", re.I)
_MPICH = re.compile(
    r"(?<![a-z])(?:cray-)?(?:mpich|mvapich2?|impi|intel-?mpi|intel-oneapi-mpi|oneapi/mpi)(?![a-z])", re.I
)
# Flags of Open MPI, of Hydra, of PALS, none of which the others take.
_FLAGS = {
    "openmpi": frozenset("--map-by -map-by --mca -mca -x --bind-to -bind-to --npernode -npernode --report-bindings"
                         " --oversubscribe --allow-run-as-root".split()),
    "hydra": frozenset("-genv -genvall -genvlist -bootstrap -iface -rr -perhost".split()),
    "pals": frozenset("--cpu-bind --depth --no-vni --line-buffer --mem-bind --gpu-bind".split()),
}  # fmt: skip
_OWNERS = {
    "OMPI_COMM_WORLD": "openmpi", "SLURM_PROCID": "slurm", "SLURM_LOCALID": "slurm", "SLURM_NODEID": "slurm",
    "PALS_": "pals", "MV2_COMM_WORLD": "hydra", "MPI_LOCALRANKID": "hydra", "JSM_NAMESPACE": "jsrun",
}  # fmt: skip
_SLURM = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
_PBS = "#!/bin/bash -l\n#PBS -l select=2:system=polaris\n#PBS -A demo\n"
_RUN = {"openmpi": "Open MPI", "hydra": "MPICH's Hydra", "pals": "PALS", "slurm": "srun", "jsrun": "jsrun"}


def _dialect(subject: Subject, launch: Launch) -> str:
    if launch.dialect != "unknown" or subject.site is None:
        return launch.dialect
    known = {k.dialect for k in subject.site.launchers.values() if k.command == launch.launcher}
    return known.pop() if len(known) == 1 else "unknown"


def _foreign_flags(subject: Subject) -> Iterator[Found]:
    assert subject.site is not None
    for launch in subject.script.all_launches:
        if launch.launcher not in ("mpiexec", "mpirun"):
            continue
        known: set[str] = {k.dialect for k in subject.site.launchers.values() if k.command == launch.launcher}
        known |= {
            k.per_node_dialect for k in subject.site.launchers.values()
            if k.per_node_dialect and k.per_node_command == launch.launcher
        }  # fmt: skip
        if not known or any(s.kind == "module" and _OPENMPI.search(str(s)) for s in subject.script.steps):
            continue
        for option in launch.options:
            owners = {name for name, flags in _FLAGS.items() if option.flag in flags}
            if owners and not owners & known:
                yield Found(
                    f"{option.flag} is an option of {_RUN[min(owners)]}; {launch.launcher} here is"
                    f" {' or '.join(_RUN.get(k, k) for k in sorted(known))}",
                    option.place,
                    fix="--ppn, --depth, --cpu-bind" if "pals" in known else None,
                )


def _families(subject: Subject) -> tuple[bool, bool]:
    text = [str(s) for s in subject.script.steps_of("module") if "unload" not in str(s) and "purge" not in str(s)]
    text += [str(a.value) for a in subject.script.assignments if a.name in ("LD_LIBRARY_PATH", "PATH", "MPI_HOME")]
    whole = "\n".join(text)
    return bool(_OPENMPI.search(whole)), bool(_MPICH.search(whole))


def _two_libraries(subject: Subject) -> Iterator[Found]:
    openmpi, mpich = _families(subject)
    if openmpi == mpich:
        return
    for launch in subject.script.all_launches:
        found = None
        if launch.launcher in ("mpiexec", "mpirun"):
            if openmpi and launch.dialect == "hydra":
                found = "Open MPI is loaded, and the launcher is MPICH's"
            elif mpich and launch.dialect == "openmpi":
                found = "MPICH or its kin is loaded, and the launcher is Open MPI's"
            if found:
                yield Found(f"{found}: each process would be rank 0 of 1", launch.place)
        kind = launch.value("mpi") if launch.launcher == "srun" else None
        text = kind.text or "" if kind else ""
        if openmpi and text.startswith(("pmi2", "none")):
            yield Found(
                f"--mpi={text} with Open MPI, which from version 5 on speaks PMIx only",
                launch.place, severity="warning", fix="--mpi=pmix",
            )  # fmt: skip
        elif mpich and text.startswith("pmix"):
            yield Found(
                f"--mpi={text} with MPICH or its kin, which mostly speak PMI-2",
                launch.place, severity="warning", fix="--mpi=pmi2",
            )  # fmt: skip


def _no_type(subject: Subject) -> Iterator[Found]:
    if subject.site is not None:
        return  # its default is the site's concern
    openmpi, _ = _families(subject)
    for ranks in subject.launches:
        launch = ranks.launch
        if launch.launcher != "srun" or ranks.framework or launch.option("mpi") or ranks.processes == 1:
            continue
        if "SLURM_MPI_TYPE" in launch.environment or parts.is_tool(launch) or launch.children:
            continue
        words = [w.value.text or "" for w in launch.leaf.program[:5]]
        if not words or any(w.kind == "container" for w in launch.wrappers):
            continue
        first = words[0]
        binary = "/" in first and not re.search(r"\.(?:sh|py|pl|R|jl|bash)\Z", first) and "python" not in first
        uses = any("horovod" in w or "mpi4py" in w for w in words)
        if binary or uses or (openmpi and parts.PYTHON.match(first.rpartition("/")[2]) and "-m" in words):
            yield Found(
                "srun starts an MPI program without --mpi: where the default is not the library's, every process is"
                " rank 0 of 1",
                launch.place,
                fix="--mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH); srun --mpi=list shows what there is",
            )


def _sources(ranks: LaunchRanks) -> Iterator[tuple[str, str, Place]]:
    for launch in ranks.launch.all:
        for variable in launch.environment.values():
            for symbol in variable.value.symbols:
                if symbol.kind == "per_task":
                    yield symbol.detail, variable.name, variable.place
        for option in launch.options:
            for symbol in option.value.symbols:
                if symbol.kind == "per_task":
                    yield symbol.detail, option.flag, option.place


def _foreign_rank(subject: Subject) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    for ranks in subject.launches:
        launch = ranks.launch
        dialect = _dialect(subject, launch)
        if dialect == "unknown" and launch.launcher in ("mpiexec", "mpirun") and subject.script.scheduler == "pbs":
            dialect = "not slurm"
        if dialect in ("unknown", "none") or not parts.stepped(launch) or launch.launcher in ("ssh", "pdsh", "pbsdsh"):
            continue
        for detail, target, place in _sources(ranks):
            owner = next((o for prefix, o in _OWNERS.items() if detail.startswith(prefix)), None)
            if owner is None or owner == dialect or (dialect == "not slurm" and owner != "slurm"):
                continue
            severity: Severity = "error"
            if owner == "slurm" and (launch.launcher == "ibrun" or subject.script.scheduler == "slurm"):
                severity = "warning"
            if {owner, dialect} <= {"hydra", "pals", "intel"} or dialect == "ibrun":
                continue
            if parts.once(seen, place):
                yield Found(
                    f"{target} takes {detail}, which {_RUN[owner]} sets and {launch.launcher} does not",
                    place,
                    severity=severity,
                )


RULES = (
    Rule(
        id="launcher-flags-foreign", fault_class="MPI_PMI", severity="error",
        title="options of another MPI's launcher",
        why="mpiexec and mpirun are names of several launchers: PALS, Hydra and Open MPI take different options.",
        source="https://docs.alcf.anl.gov/polaris/running-jobs/ (mpiexec: PALS)",
        fix="Use the options of the site's launcher.",
        bad=_PBS + "mpiexec -n 8 --map-by ppr:4:node python train.py\n",
        good=_PBS + "mpiexec -n 8 --ppn 4 python train.py\n",
        check=_foreign_flags, needs_site=True, site="polaris",
    ),
    Rule(
        id="two-mpi-libraries", fault_class="MPI_PMI", severity="error",
        title="the launcher belongs to another MPI than the one loaded",
        why="A process started by another MPI's launcher does not find its peers; each is rank 0 of 1.",
        source="https://docs.open-mpi.org/en/v5.0.x/launching-apps/",
        fix="Use the launcher of the library the program is linked to.",
        bad=_SLURM + "module load mpich\nmpirun --map-by ppr:4:node python train.py\n",
        good=_SLURM + "module load openmpi\nmpirun --map-by ppr:4:node python train.py\n", check=_two_libraries,
    ),
    Rule(
        id="srun-without-mpi-type", fault_class="MPI_PMI", severity="note",
        title="srun starts an MPI program without --mpi",
        why="srun offers the interface its administrators chose; another than the library's leaves each process alone.",
        source="https://slurm.schedmd.com/mpi_guide.html",
        fix="Say --mpi=pmix or --mpi=pmi2.",
        bad=_SLURM + "srun ./solver\n", good=_SLURM + "srun --mpi=pmix ./solver\n", check=_no_type,
    ),
    Rule(
        id="rank-of-other-launcher", fault_class="MPI_PMI", severity="error",
        title="the rank is read from a variable another launcher sets",
        why="Each launcher sets its own variables; those of another are empty, or those of the batch job.",
        source="https://docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html",
        fix="Read its own: SLURM_PROCID (srun), PMI_RANK (PALS, Hydra), OMPI_COMM_WORLD_RANK (Open MPI).",
        bad=_SLURM + "srun bash -c 'RANK=$OMPI_COMM_WORLD_RANK python train.py'\n",
        good=_SLURM + "srun bash -c 'RANK=$SLURM_PROCID python train.py'\n", check=_foreign_rank,
    ),
)  # fmt: skip
