"""Options of sbatch, salloc and srun: long names and which take a value."""

from __future__ import annotations

SHORT = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint", "c": "cpus-per-task",
    "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "H": "hold", "h": "help",
    "I": "immediate", "i": "input", "J": "job-name", "K": "kill-on-bad-exit", "k": "no-kill", "L": "licenses",
    "l": "label", "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks", "O": "overcommit",
    "o": "output", "p": "partition", "Q": "quiet", "q": "qos", "r": "relative", "S": "core-spec",
    "s": "oversubscribe", "T": "threads", "t": "time", "u": "unbuffered", "V": "version", "v": "verbose",
    "W": "wait", "w": "nodelist", "X": "disable-status", "x": "exclude", "Z": "no-allocate",
}  # fmt: skip
# Without a value, or with one only behind "=" (or stuck to the short form).
SWITCHES = frozenset(
    "contiguous exclusive exact get-user-env hold help immediate kill-on-bad-exit label multi-prog no-kill"
    " no-allocate no-requeue requeue nohold overcommit overlap oversubscribe parsable preserve-env pty quiet reboot"
    " spread-job test-only unbuffered usage use-min-nodes verbose version wait-for-switch whole disable-status"
    " external-launcher debugger-test interactive nvmps container-mount-home no-container-mount-home"
    " container-remap-root no-container-remap-root container-writable container-readonly no-container-entrypoint"
    " container-entrypoint ignore-pbs propagate enable-mem-bind resv-ports".split()
)
# sbatch's --wait is a switch; srun's takes seconds.
SBATCH_SWITCHES = SWITCHES | {"wait"}
VALUES = frozenset(
    "account array acctg-freq batch bb bbf begin bcast chdir clusters cluster-constraint comment constraint container"
    " container-id container-image container-mounts container-name container-save container-workdir container-env"
    " core-spec cores-per-socket cpu-bind cpu_bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency"
    " distribution epilog error exclude exclude export export-file extra extra-node-info gid gpu-bind gpu-freq gpus"
    " gpus-per-node gpus-per-socket gpus-per-task gres gres-flags het-group pack-group hint image input job-name"
    " jobid kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem_bind mem-per-cpu mem-per-gpu"
    " mem-per-task module mpi network nice nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu"
    " ntasks-per-node ntasks-per-socket tasks-per-node tasks open-mode output partition power prefer prefix priority"
    " profile prolog qos relative reservation signal slurmd-debug sockets-per-node stepmgr segment switches"
    " task-epilog task-prolog threads threads-per-core thread-spec time time-min tmp tres-bind tres-per-task"
    " treewidth uid mincpus wait-all-nodes oom-kill-step volume wckey wait wrap env-vars het-job job".split()
)
ALIASES = {
    "tasks": "ntasks", "tasks-per-node": "ntasks-per-node", "workdir": "chdir", "cpu_bind": "cpu-bind",
    "mem_bind": "mem-bind", "job": "jobid", "pack-group": "het-group", "share": "oversubscribe",
    "nnodes": "nodes", "exclude-nodes": "exclude",
}  # fmt: skip


def known(name: str) -> bool:
    return name in SWITCHES or name in VALUES or name in ALIASES or name in SHORT.values()


def long_name(name: str) -> str:
    """The full name of an option given in full, as an alias or (as getopt allows) as a unique beginning."""
    if name in ALIASES:
        return ALIASES[name]
    if known(name) or len(name) < 3:
        return name
    starts = {n for n in (*VALUES, *SWITCHES) if n.startswith(name)}
    return starts.pop() if len(starts) == 1 else name
