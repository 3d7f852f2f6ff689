"""Variables that belong to a site or to a launch, and not to the user's program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from maple_parsl.script.model import Script
    from maple_parsl.site import Site

LAUNCH = frozenset(
    "MASTER_ADDR MASTER_PORT RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK RDZV_ENDPOINT RDZV_HOST"
    " RDZV_PORT PMI_RANK PMI_LOCAL_RANK".split()
)
_DEVICES = re.compile(r"(?:CUDA|HIP|ROCR|NVIDIA|GPU_DEVICE)_(?:VISIBLE_DEVICES|ORDINAL)\Z|ZE_\w+\Z")
_PROXY = re.compile(r"(?:https?|ftp|no|all)_proxy\Z", re.I)
# Fabric and interface settings. Those that only say how much is logged (NCCL_DEBUG, CCL_LOG_LEVEL) are the user's.
_NETWORK = re.compile(
    r"(?:NCCL|RCCL|GLOO|TP|UCX|OMPI|CCL)_\w*(?:IFNAME|_HCA|NET\w*|GDR\w*|CROSS_NIC|COLLNET\w*|_TLS|_TRANSPORT\w*|KVS\w*"
    r"|WORKER\w*|ZE\w*|IB_\w+)\Z|FI_\w+\Z|MPICH_\w+\Z|PALS_\w+\Z|MPIR_CVAR_\w+\Z|OMPI_MCA_\w+\Z|I_MPI_\w+\Z"
)
_BINDING = re.compile(r"(?:CPU_BIND|CPU_AFFINITY|MEM_BIND|SLURM_CPU_BIND|KMP_AFFINITY|OMP_PLACES|OMP_PROC_BIND)\Z")
SCHEDULER = re.compile(
    r"\b(?:SLURMD?|SBATCH|SRUN|PBS|LSB|LSF|COBALT|PALS|PMIX?|OMPI_COMM|MPI_LOCAL)_\w+|\bscontrol\b|\bsqueue\b|\bqstat\b"
)
JOB_ID = re.compile(r"\$(?:SLURM_JOB_?ID|PBS_JOBID)\b|\$\{(?:SLURM_JOB_?ID|PBS_JOBID)\}")
# What a scheduler's variable counts.
COUNTS = {
    **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "nodes"),
    **dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), "world"),
    **dict.fromkeys(("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_NTASKS_PER_NODE"), "devices"),
}
_EVERYWHERE = ("/tmp", "/dev", "/usr", "/bin", "/sbin", "/etc", "/proc", "/sys", "/lib", "/lib64", "/var")
_READ = re.compile(r"(?<!\\)\$\{?([A-Za-z_]\w*)\b(?!\w*:?[-=])")
_PATH = re.compile(r"(?<![\w.$}/:-])/[\w.$@+-]+(?:/[\w.$@+{}-]*)*")
# Set by the system, the shell or the new script itself.
_ALWAYS = LAUNCH | frozenset(
    "HOME USER LOGNAME PWD OLDPWD PATH SHELL TMPDIR HOSTNAME LANG LC_ALL LD_LIBRARY_PATH PYTHONPATH RANDOM SECONDS IFS"
    " UID PPID BASH_SOURCE LINENO FUNCNAME".split()
)


def why_of_site(name: str, source: Site | None) -> str | None:
    """Why a variable belongs to the site or the launch; None where it is the user's."""
    if name in LAUNCH:
        return "the launch sets it"
    if _DEVICES.match(name):
        return "which devices a process sees"
    if _PROXY.match(name):
        return "the way out of the nodes"
    if _NETWORK.match(name):
        return "the network of the site"
    if _BINDING.match(name):
        return "where processes are bound"
    if source is not None and name in exports(source):
        return f"set on every job at {source.title}"
    return None


def exports(site: Site) -> frozenset[str]:
    """Every variable the site's file sets."""
    names: set[str] = set()
    for environment in site.environments.values():
        names |= {*environment.proxy, *environment.exports, *environment.network}
    for kind in site.kinds.values():
        names |= {*kind.exports, *kind.composite_exports}
    return frozenset(names)


def site_lines(site: Site | None) -> frozenset[str]:
    """Set-up lines of the site's file."""
    if site is None:
        return frozenset()
    return frozenset(
        line.strip()
        for e in site.environments.values()
        for line in (*e.base, *e.framework, *e.conda, *e.own, *e.container_setup)
    )


def foreign_paths(text: str, target: Site) -> list[str]:
    """Absolute paths in a text that no machine has by itself and the target is not known to have."""
    shared = target.storage.shared if target.storage else ()
    known = (*_EVERYWHERE, *(p.rstrip("/") for p in shared if p.startswith("/")))
    found = _PATH.findall(text)
    return [path for path in dict.fromkeys(found) if not any(path == p or path.startswith(f"{p}/") for p in known)]


def inherited(texts: Iterable[str], script: Script) -> list[str]:
    """Variables that these lines read and the script never sets: the old site or the submitting shell had them."""
    found = dict.fromkeys(name for text in texts for name in _READ.findall(text))
    return [
        name
        for name in found
        if name not in _ALWAYS and not name.startswith(("MAPLE_", "BASH_")) and not script.assigned(name)
    ]
