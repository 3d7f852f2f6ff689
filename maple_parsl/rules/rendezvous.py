"""Meeting points: processes told different, unreachable or no addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Launch, Place
from maple_parsl.script.rankmap import LaunchRanks
from maple_parsl.script.values import Value

_NAMES = frozenset("MASTER_ADDR MASTER_HOST HEAD_NODE_IP HEAD_NODE RDZV_HOST RDZV_ENDPOINT PET_RDZV_ENDPOINT".split())
_HEADISH = re.compile(
    r"(?:master|head|rdzv|main|rank0|coord)\w*(?:addr|ip|host|node|endpoint)?|host_?ip\Z|addr\w*\Z", re.I
)
_SUBMIT = ("submit_host",)
_SSH_ADDRESS = re.compile(r"\bssh\s+(?:-\S+\s+)*(?P<host>[A-Za-z0-9][\w.@-]*)\s+['\"]?(?:/\S*/)?hostname\b")
_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n"
_FIRST = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
_RUN = "srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID {} train.py\n"
_END = _RUN.format("--rdzv-endpoint=$MASTER_ADDR:29400")
_SCONTROL = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'


def told(subject: Subject) -> Iterator[tuple[Value, Place | None, str, LaunchRanks | None]]:
    """Every meeting point: those of launches, then those the script sets and no launch was seen to use."""
    seen: set[tuple[int, int]] = set()
    widest = sorted(subject.launches, key=lambda r: (not parts.spread(r), not parts.stepped(r.launch)))
    for ranks in widest:
        endpoint = ranks.endpoint
        if endpoint.host is None or parts.is_tool(ranks.launch) or endpoint.source == "standalone":
            continue
        if parts.once(seen, endpoint.place):
            yield endpoint.host, endpoint.place, endpoint.source, ranks
    for assignment in subject.script.assignments:
        if assignment.name in _NAMES and assignment.how != "unset" and parts.once(seen, assignment.place):
            yield assignment.value.split(":")[0], assignment.place, assignment.name, None


def _several(subject: Subject, ranks: LaunchRanks | None) -> bool | None:
    """More than one node takes part; None: cannot be told."""
    if ranks is None:
        return True if parts.fewest_nodes(subject) > 1 else False if subject.ranks.job_nodes == 1 else None
    if parts.spread(ranks):
        return True
    inner = parts.framework_of(ranks.launch)
    option = inner.option("nnodes") if inner else None
    if option is not None and option.value.number is None:
        return None
    if ranks.nodes is None and parts.stepped(ranks.launch):
        return True if parts.fewest_nodes(subject) > 1 else None
    return False


def _loopback(subject: Subject) -> Iterator[Found]:
    for host, place, source, ranks in told(subject):
        text = host.text
        if text is None or not parts.LOOPBACK.match(text):
            continue
        several = _several(subject, ranks)
        fix: str | None = None
        edits: tuple[Edit, ...] = ()
        if subject.script.scheduler == "slurm" and source == "MASTER_ADDR" and place is not None:
            fix = f"MASTER_ADDR={_SCONTROL}"
            row = subject.lines[place.line - 1] if place.line <= len(subject.lines) else ""
            match = re.search(r"MASTER_ADDR=(['\"]?)" + re.escape(text) + r"\1", row)
            edits = parts.replace_text(subject, place, match[0], fix) if match else ()
        if several:
            yield Found(
                f"{source} is {text}: on every node that is the node itself, so no two nodes meet",
                place, fix=fix, edits=edits,
            )  # fmt: skip
        elif parts.has_directives(subject) and several is None:
            yield Found(
                f"{source} is {text}, which works on one node only", place, fix=fix, severity="note",
            )  # fmt: skip


def _differs(subject: Subject) -> Iterator[Found]:
    for host, place, source, ranks in told(subject):
        if not host.has("this_host", "this_host_ip", "per_task") or _several(subject, ranks) is False:
            continue
        if _several(subject, ranks) is None and ranks is None:
            continue
        yield Found(
            f"{source} is worked out in each process ({host}), so every node is told another address",
            place,
            fix="work it out once, in the batch script, from the job's host list, and export it",
        )


def _empty(subject: Subject) -> Iterator[Found]:
    for host, place, source, ranks in told(subject):
        unset = next((s.detail for s in host.symbols if s.kind == "unset"), None)
        if host.text == "" or (unset is not None and len(host.parts) == 1):
            if ranks is not None and not parts.spread(ranks) and parts.fewest_nodes(subject) < 2:
                continue
            if unset is not None and unset == source:
                continue
            why = "empty" if unset is None else f"empty: {unset} is not set there"
            yield Found(f"{source} is {why}", place)


def _nowhere(subject: Subject) -> Iterator[Found]:
    if not parts.has_directives(subject):
        return
    strict = any(
        "-u" in str(s) or "nounset" in str(s) or re.search(r"-\w*u", str(s)) for s in subject.script.steps_of("set")
    )
    for assignment in subject.script.assigned("MASTER_ADDR"):
        symbol = assignment.value.symbol
        if symbol is None or symbol.kind != "environment" or symbol.detail == "MASTER_ADDR" or assignment.value.assumed:
            continue
        if parts.sources_unread(subject) or symbol.detail.endswith(("HOST_IP", "_ADDR0")):
            continue
        yield Found(
            f"MASTER_ADDR is {symbol.detail}, which the script does not set"
            + (": set -u stops the script here" if strict else ""),
            assignment.place,
            severity="error" if strict else "warning",
            fix=f"MASTER_ADDR={_SCONTROL}" if subject.script.scheduler == "slurm" else None,
        )


def _missing(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is None or inner.launcher not in ("torchrun", "accelerate", "composer"):
            continue
        if (
            not parts.complete(inner)
            or (ranks.framework_nodes or 1) < 2
            or ranks.endpoint.host is not None
            or inner.config_found is False
        ):
            continue
        if any(n in inner.environment for n in ("PET_RDZV_ENDPOINT", "PET_MASTER_ADDR", "MASTER_ADDR")):
            continue
        conf = inner.option("rdzv_conf")
        if conf is not None and "endpoint" in str(conf.value):
            continue
        name = {"torchrun": "--rdzv-endpoint", "accelerate": "--main_process_ip"}.get(inner.launcher, "--master_addr")
        yield Found(
            f"{inner.launcher} is told {ranks.framework_nodes} nodes and no {name}: each node then looks for the"
            " meeting point on itself",
            inner.place,
            fix=f"{name}={'$MASTER_ADDR:$MASTER_PORT' if name == '--rdzv-endpoint' else '$MASTER_ADDR'},"
            " the first host of the job",
        )


def _environment(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        launch = ranks.launch
        if ranks.framework or not parts.stepped(launch) or not parts.trains(launch) or launch.leaf.opaque:
            continue
        env = launch.leaf.environment
        if "MASTER_ADDR" in env or ranks.processes == 1:
            continue
        words = " ".join(str(w) for w in launch.leaf.program)
        if "env://" not in words and parts.setting(launch.leaf.program, "master_addr", "dist_url", "init_method"):
            continue
        named = [n for n in ("RANK", "WORLD_SIZE", "MASTER_PORT", "LOCAL_RANK") if n in env]
        if len(named) >= 2 or "env://" in words:
            yield Found(
                f"{' and '.join(named) or 'env://'} set, but not MASTER_ADDR, which env:// needs as well",
                launch.place,
                severity="warning",
                fix="export MASTER_ADDR, the first host of the job",
            )


def _submit_host(subject: Subject) -> Iterator[Found]:
    for host, place, source, _ in told(subject):
        for symbol in host.symbols:
            if symbol.kind in _SUBMIT:
                step = symbol.detail == "SLURM_LAUNCH_NODE_IPADDR"
                yield Found(
                    f"{source} comes from {symbol.detail}, the host where "
                    + ("srun was called" if step else "the job was submitted")
                    + ", which need not be the node of rank 0",
                    place,
                    severity="warning" if step else "error",
                    fix=_SCONTROL if subject.script.scheduler == "slurm" else "the first line of the job's node file",
                )
                break


def _address_command(subject: Subject) -> Iterator[Found]:
    if subject.site is not None and subject.site.rendezvous.address == "any":
        return
    seen: set[int] = set()
    for assignment in subject.script.assignments:
        symbol = assignment.value.symbol
        if symbol is None or not symbol.kind.endswith("_ip") or assignment.context == "task":
            continue
        if assignment.name not in _NAMES and not _HEADISH.search(assignment.name):
            continue
        if assignment.place.line in seen or symbol.kind == "this_host_ip":
            continue
        seen.add(assignment.place.line)
        yield Found(
            f"{assignment.name} is an address that hostname -i or -I prints: it may be a loopback address, or several",
            assignment.place,
            fix=f"use the host's name: {_SCONTROL}" if subject.script.scheduler == "slurm" else "use the host's name",
        )


def _last_host(subject: Subject) -> Iterator[Found]:
    for host, place, source, ranks in told(subject):
        if not host.has("last_host", "loop_host"):
            continue
        inner = parts.framework_of(ranks.launch) if ranks else None
        backend = inner.value("rdzv_backend") if inner else None
        if backend is not None and backend.text in ("c10d", "etcd", "etcd-v2"):
            continue
        yield Found(
            f"{source} is the last host of the list, but rank 0, which has to listen there, runs on the first",
            place,
            fix="take the first host",
        )


def _literal(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if any(script.directive(n) for n in ("--nodelist", "--nodefile")) or any(
        d.name == "-l select" and "host=" in (d.value or "") for d in script.directives
    ):
        return
    for line, row in enumerate(subject.lines, 1):
        match = _SSH_ADDRESS.search(row) if "ssh" in row and not row.lstrip().startswith("#") else None
        if match and parts.has_directives(subject):
            yield Found(
                f"the address is asked from {match['host']}, whichever nodes the job is given",
                Place(line, match.start("host") + 1),
                fix=f"take the first host of the job: {_SCONTROL}" if script.scheduler == "slurm" else None,
            )
    for host, place, source, ranks in told(subject):
        text = host.text
        if not text or parts.LOOPBACK.match(text) or not re.match(r"[A-Za-z0-9][\w.-]*\Z", text):
            continue
        if not _several(subject, ranks) or not (
            parts.has_directives(subject) or (ranks and parts.stepped(ranks.launch))
        ):
            continue
        yield Found(
            f"{source} is always {text}, whichever nodes the job is given",
            place,
            fix=f"take the first host of the job: {_SCONTROL}" if script.scheduler == "slurm" else None,
        )


def endpoint_launches(subject: Subject) -> Iterator[tuple[LaunchRanks, Launch]]:
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is not None:
            yield ranks, inner


def _no_port(subject: Subject) -> Iterator[Found]:
    for _, inner in endpoint_launches(subject):
        option = inner.option("rdzv_endpoint")
        if option is None or inner.launcher != "torchrun" or not option.value.parts:
            continue
        if ":" in "".join(p for p in option.value.parts if isinstance(p, str)):
            continue
        if option.value.is_unknown or (option.value.has("environment") and "ENDPOINT" in str(option.value).upper()):
            continue
        yield Found(
            "the rendezvous endpoint has no port; which one is used then depends on the backend (29400 for c10d)",
            option.place,
            fix="host:port",
        )


RULES = (
    Rule(
        id="endpoint-loopback", fault_class="RDZV_ENDPOINT", severity="error",
        title="the meeting point is localhost on several nodes",
        why="localhost and 127.0.0.1 name the node itself: each node waits for the others on its own machine until"
        " the rendezvous times out.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
        fix="Use the first host of the job.",
        bad=_HEAD + "export MASTER_ADDR=localhost\n" + _END, good=_HEAD + _FIRST + _END, check=_loopback,
    ),
    Rule(
        id="endpoint-per-process", fault_class="RDZV_ENDPOINT", severity="error",
        title="every node is told another meeting point",
        why="hostname or a rank variable expanded inside each task gives each node its own name.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (one endpoint for all agents)",
        fix="Expand it once in the batch script.",
        bad=_HEAD + "srun bash -c 'torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d"
        " --rdzv-endpoint=$(hostname):29400 train.py'\n",
        good=_HEAD + _FIRST + _END, check=_differs,
    ),
    Rule(
        id="endpoint-empty", fault_class="RDZV_ENDPOINT", severity="error",
        title="the meeting point is empty",
        why="An empty address, or a variable that is not set where it is expanded, leaves the processes without one.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
        fix="Set and export it in the batch script.",
        bad=_HEAD + "export MASTER_ADDR=\n" + _END, good=_HEAD + _FIRST + _END, check=_empty,
    ),
    Rule(
        id="endpoint-from-nowhere", fault_class="RDZV_ENDPOINT", severity="warning",
        title="the meeting point comes from a variable that is never set",
        why="What the script does not set must come from the submitting shell, or is empty.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
        fix="Work it out from the job's host list.",
        bad=_HEAD + "export MASTER_ADDR=$MASTER_HOST\n" + _END, good=_HEAD + _FIRST + _END, check=_nowhere,
    ),
    Rule(
        id="endpoint-missing", fault_class="RDZV_ENDPOINT", severity="error",
        title="several nodes and no meeting point",
        why="Without an endpoint torchrun and accelerate fall back to the node itself.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--rdzv-endpoint, --master-addr)",
        fix="Give the first host of the job and a port.",
        bad=_HEAD + _RUN.format(""), good=_HEAD + _FIRST + _END, check=_missing,
    ),
    Rule(
        id="master-addr-missing", fault_class="RDZV_ENDPOINT", severity="warning",
        title="ranks are set and MASTER_ADDR is not",
        why="env:// initialisation needs MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
        fix="Export MASTER_ADDR.",
        bad="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
        "srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py'\n",
        good="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n" + _FIRST
        + "srun bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py'\n",
        check=_environment,
    ),
    Rule(
        id="endpoint-submit-host", fault_class="RDZV_ENDPOINT", severity="error",
        title="the meeting point is where the job was submitted or srun called",
        why="These variables name the login node, or the node srun was called on, not that of rank 0.",
        source="https://slurm.schedmd.com/srun.html (SLURM_LAUNCH_NODE_IPADDR: of the node srun ran on)",
        fix="Use the first host of the job.",
        bad=_HEAD + _RUN.format("--rdzv-endpoint=$SLURM_SUBMIT_HOST:29400"), good=_HEAD + _FIRST + _END,
        check=_submit_host,
    ),
    Rule(
        id="endpoint-address-command", fault_class="RDZV_ENDPOINT", severity="warning",
        title="the address is what hostname -i or -I prints",
        why="hostname -i gives a loopback address where /etc/hosts maps the name so, and several where the node has"
        " several networks; -I lists all, in no fixed order.",
        source="https://man7.org/linux/man-pages/man1/hostname.1.html (--ip-address: avoid this option)",
        fix="Use the host's name from the scheduler.",
        bad=_HEAD + "head_node_ip=$(hostname --ip-address)\n"
        + _RUN.format("--rdzv-endpoint=$head_node_ip:29400"),
        good=_HEAD + _FIRST + _END, check=_address_command,
    ),
    Rule(
        id="endpoint-last-host", fault_class="RDZV_ENDPOINT", severity="error",
        title="the meeting point is the last host",
        why="The process of rank 0 listens at the meeting point; launchers put it on the first node.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#tcp-initialization",
        fix="Take the first host.",
        bad=_HEAD + "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | tail -n 1)\nsrun python t.py\n",
        good=_HEAD + _FIRST + "srun python t.py\n", check=_last_host,
    ),
    Rule(
        id="endpoint-literal-host", fault_class="RDZV_ENDPOINT", severity="warning",
        title="the meeting point is one fixed host",
        why="A job gets other nodes each time; a fixed host is rarely among them.",
        source="https://slurm.schedmd.com/sbatch.html (SLURM_JOB_NODELIST)",
        fix="Take the first host of the job.",
        bad=_HEAD + "export MASTER_ADDR=gpu017\n" + _END, good=_HEAD + _FIRST + _END, check=_literal,
    ),
    Rule(
        id="endpoint-without-port", fault_class="RDZV_ENDPOINT", severity="warning",
        title="an endpoint without a port",
        why="The default port is the same for every job on the node, and depends on version and backend.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--rdzv-endpoint <host>:<port>)",
        fix="host:port, with a port of the job's own.",
        bad=_HEAD + _FIRST + _RUN.format("--rdzv-endpoint=$MASTER_ADDR"), good=_HEAD + _FIRST + _END, check=_no_port,
    ),
)  # fmt: skip
