"""Host files, and ssh between the nodes of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Launch, Place
from maple_parsl.script.values import Value

_ROW = re.compile(r"^(?P<lead>[^#]*?(?:^|[\s'\"]|\\n))(?P<host>[A-Za-z0-9][\w.-]*)\s+slots\s*=\s*(?P<slots>\d+)")
_PLACEHOLDER = re.compile(
    r"(?:node|worker|host|hostname|machine|server|slave|master|gpu-?node)[-_]?[0-9a-z]{0,2}\Z", re.I
)
_AT = re.compile(r"(?:main_process_ip|master_addr|MASTER_ADDR)\s*[:=]\s*['\"]?(?P<who>[\w.-]+@[\w.-]+)")
_SLURM = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n"
_ARRAY = "#SBATCH --array=0-3\n"
_WRITE = "scontrol show hostnames $SLURM_JOB_NODELIST | sed 's/$/ slots=4/' > hostfile.$SLURM_JOB_ID\n"
_RUN = "deepspeed --hostfile=hostfile.$SLURM_JOB_ID train.py\n"
_FIX = "scontrol show hostnames $SLURM_JOB_NODELIST | sed 's/$/ slots=N/' > hostfile.$SLURM_JOB_ID"
_SUBMITTED = ("slurm", "pbs", "lsf", "cobalt")


def _literal(subject: Subject) -> Iterator[Found]:
    submitted = parts.has_directives(subject) or subject.script.scheduler in _SUBMITTED
    for line, row in enumerate(subject.lines, 1):
        if "slots" not in row or not (match := _ROW.match(row[:500])):
            continue
        host = match["host"]
        if host in ("localhost", "sed") or host.endswith("$"):
            continue
        if submitted or _PLACEHOLDER.match(host):
            yield Found(
                f"{host} stands in the host file whichever nodes the job is given",
                Place(line, match.start("host") + 1),
                fix=_FIX if subject.script.scheduler == "slurm" else "write the file from the job's own host list",
            )
            return
    for launch in subject.script.all_launches if submitted and parts.fewest_nodes(subject) > 1 else ():
        option = launch.option("hosts") if launch.launcher in ("mpirun", "mpiexec", "horovodrun") else None
        names = [h.partition(":")[0] for h in re.split(r"[,\s]+", option.value.text or "") if h] if option else []
        if option is not None and any(re.match(r"[A-Za-z]", n) and n != "localhost" for n in names):
            yield Found(
                f"{option.flag} {option.value} names hosts, whichever nodes the job is given",
                option.place,
                fix="take the hosts from the scheduler, or leave the option out",
            )
            return


def _written(subject: Subject, path: Value) -> list[tuple[str, Place]]:
    """Commands that write this file; for a redirection the whole line."""
    name = str(path).rpartition("/")[2]
    found = []
    if path.text:
        variables = [n for n, v in subject.script.variables.items() if v.value == path and len(path.text) > 3]
        names = "|".join([re.escape(name), *(rf"\$\{{?{n}\}}?" for n in variables)])
        pattern = re.compile(rf">\s*[\"']?[^\s\"'|;&]*(?:{names})[\"']?(?:\s|$)")
        for line, row in enumerate(subject.lines, 1):
            if ">" in row and not row.lstrip().startswith("#") and pattern.search(row):
                found.append((row, Place(line, 1)))
    writers = (c for c in subject.script.commands if c.name in ("tee", "cp", "mv", "sed", "python", "python3"))
    found += [(c.name, c.place) for c in writers if any(str(w).rpartition("/")[2] == name for w in c.words[1:])]
    return found


def _hostfiles(subject: Subject) -> Iterator[tuple[Launch, Value, Place]]:
    for launch in islice(subject.script.all_launches, 64):
        for name in ("hostfile", "deepspeed_hostfile"):
            option = launch.option(name)
            if option is not None and option.value.parts:
                yield launch, option.value, option.value_place


def _missing(subject: Subject) -> Iterator[Found]:
    for launch, path, place in _hostfiles(subject):
        if (
            path.text is None
            or launch.config
            or launch.launcher not in ("deepspeed", "accelerate", "mpirun", "mpiexec")
        ):
            continue
        if launch.launcher.startswith("mpi") and not (
            parts.has_directives(subject) and parts.fewest_nodes(subject) > 1
        ):
            continue
        if _written(subject, path) or any(
            path.text in (str(h.file) if h.file else "") for h in subject.script.heredocs
        ):
            continue
        if parts.sources_unread(subject):
            continue
        mpi = launch.launcher.startswith("mpi")
        yield Found(
            f"nothing in the script writes {path.text}: "
            + (
                "which nodes the job gets is known only when it runs"
                if mpi
                else "if it is not there, DeepSpeed trains on this node alone, without an error"
            ),
            place,
            severity="warning" if mpi else None,
            fix=f"write it in the job ({_FIX}) and stop where it is missing",
        )


def _format(subject: Subject) -> Iterator[Found]:
    for launch, path, place in _hostfiles(subject):
        if launch.launcher != "deepspeed":
            continue
        if path.has("node_file"):
            yield Found(
                "the scheduler's node file has no slots=, without which DeepSpeed refuses it",
                place,
                fix="sort -u \"$PBS_NODEFILE\" | sed 's/$/ slots=N/' > hostfile.$PBS_JOBID",
            )
            continue
        writers = _written(subject, path)
        rows = [row for row in subject.lines if str(path.text or "\0") in row or "slots" in row]
        if writers and path.text and not any("slots" in row for row in rows):
            direct = re.search(r"scontrol|sort|uniq|cat|cp|head|srun|NODEFILE", writers[0][0])
            if direct and not any(re.search(r"awk|sed|python|<<", text) for text, _ in writers):
                yield Found(
                    "the host file is written without slots=, without which DeepSpeed refuses it", writers[0][1]
                )


def _slots(subject: Subject) -> Iterator[Found]:
    gpus = subject.ranks.gpus_per_node
    if not gpus or not any(True for _ in _hostfiles(subject)):
        return
    for line, row in enumerate(subject.lines, 1):
        match = re.search(r"slots\s*=\s*(\d{1,3})\b", row) if not row.lstrip().startswith("#") else None
        if match and int(match[1]) != gpus:
            yield Found(
                f"slots={match[1]} and the job has {gpus} devices per node",
                Place(line, match.start() + 1),
                severity="error" if int(match[1]) > gpus else "note",
                edits=parts.replace_text(subject, Place(line, 1), match[0], match[0].replace(match[1], str(gpus))),
            )
            return


def _fixed_name(subject: Subject) -> Iterator[Found]:
    """Jobs of an array share their directory for certain."""
    if subject.script.directive("-J" if subject.script.scheduler == "pbs" else "--array") is None:
        return
    for _, path, place in _hostfiles(subject):
        text = path.text
        if text is None or text.startswith(("/tmp", "/dev/shm", "/local")):
            continue
        writers = _written(subject, path)
        if writers:
            yield Found(
                f"every job of the array writes the same {text}: they take each other's nodes",
                writers[0][1] or place,
                fix="put the job's id into the name",
            )
            return


def _at(subject: Subject) -> Iterator[Found]:
    for line, row in enumerate(subject.lines, 1):
        if "@" in row and not row.lstrip().startswith("#") and (match := _AT.search(row)):
            yield Found(
                f"{match['who']} is a login, not an address",
                Place(line, match.start("who") + 1),
                fix=f"only the address: {match['who'].partition('@')[2]}",
                edits=parts.replace_text(subject, Place(line, 1), match["who"], match["who"].partition("@")[2]),
            )
            return
    for launch in subject.script.all_launches:
        for name in ("master_addr", "rdzv_endpoint"):
            option = launch.option(name)
            if option is not None and "@" in "".join(p for p in option.value.parts if isinstance(p, str)):
                yield Found(f"{option.value} is a login, not an address", option.value_place)
                return
        address = launch.config.get("main_process_ip", "")
        if "@" in address:
            yield Found(f"main_process_ip {address} in the configuration is a login, not an address", launch.place)
            return


def _runner(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "slurm":
        return
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is None:
            continue
        several = (ranks.framework_nodes or 1) > 1 or parts.fewest_nodes(subject) > 1
        if inner.launcher == "deepspeed" and several and inner is ranks.launch and not inner.option("no_ssh"):
            chosen = inner.value("launcher")
            if chosen is not None and (chosen.text or "").lower() in ("slurm", "openmpi", "mpich", "impi", "mvapich"):
                continue
            if inner.option("hostfile") or (ranks.framework_nodes or 1) > 1:
                yield Found(
                    "the deepspeed runner reaches the other nodes by pdsh and ssh without a password, which clusters"
                    " seldom have",
                    inner.place,
                    fix="srun torchrun, one task per node (DeepSpeed takes RANK and WORLD_SIZE), or --launcher slurm",
                )
        if inner.launcher == "accelerate" and several:
            kind = inner.value("deepspeed_multinode_launcher")
            text = (kind.text if kind else None) or inner.config.get("deepspeed_multinode_launcher")
            uses = inner.option("use_deepspeed") or inner.config.get("distributed_type") == "DEEPSPEED"
            if text == "pdsh" or (uses and text is None and inner.config_found is not False):
                yield Found(
                    f"accelerate with DeepSpeed starts other nodes by {text or 'pdsh, the default'}, which needs ssh",
                    inner.place,
                    fix="--deepspeed_multinode_launcher standard",
                )


def _ssh(subject: Subject) -> Iterator[Found]:
    if not parts.has_directives(subject):
        return
    seen: set[str] = set()
    for ranks in subject.launches:
        launch = ranks.launch
        if launch.launcher not in ("ssh", "pdsh") or not launch.children or launch.launcher in seen:
            continue
        if not any(parts.trains(child) for child in launch.children):
            continue
        seen.add(launch.launcher)
        yield Found(
            f"{launch.launcher} starts the program outside the job's steps: it needs a login without a password,"
            " carries no modules and variables over, and what it starts may outlive the job",
            launch.place,
            fix="srun --ntasks-per-node=1" if subject.script.scheduler == "slurm" else "mpiexec --ppn 1",
        )


RULES = (
    Rule(
        id="hostfile-literal-hosts", fault_class="SSH_HOSTFILE", severity="error",
        title="fixed or placeholder names in a host file",
        why="A job is given other nodes each time; names like node-0 are those of an example.",
        source="https://github.com/EleutherAI/gpt-neox/issues/811",
        fix="Write the file in the job, from its own host list.",
        bad=_SLURM + "cat > hostfile <<END\nnode1 slots=4\nnode2 slots=4\nEND\ndeepspeed --hostfile=hostfile t.py\n",
        good=_SLURM + _WRITE + _RUN, check=_literal,
    ),
    Rule(
        id="hostfile-not-written", fault_class="SSH_HOSTFILE", severity="warning",
        title="a host file that nothing writes",
        why="Without the file the deepspeed runner takes the local devices only; the world shrinks without an error.",
        source="https://github.com/deepspeedai/DeepSpeed/issues/5221",
        fix="Write it in the job.",
        bad=_SLURM + "deepspeed --hostfile=/job/hostfile train.py\n", good=_SLURM + _WRITE + _RUN, check=_missing,
    ),
    Rule(
        id="hostfile-without-slots", fault_class="SSH_HOSTFILE", severity="error",
        title="a DeepSpeed host file without slots",
        why="Every line needs 'host slots=N'; the scheduler's node file is not of that form.",
        source="https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node",
        fix="Add slots=N to each line.",
        bad="#!/bin/bash\n#PBS -l select=2:ngpus=4\ndeepspeed --hostfile=$PBS_NODEFILE train.py\n",
        good="#!/bin/bash\n#PBS -l select=2:ngpus=4\nsort -u $PBS_NODEFILE |"
        " sed 's/$/ slots=4/' > hostfile.$PBS_JOBID\ndeepspeed --hostfile=hostfile.$PBS_JOBID train.py\n",
        check=_format,
    ),
    Rule(
        id="hostfile-slots-differ", fault_class="SSH_HOSTFILE", severity="error",
        title="slots are not the devices per node",
        why="slots is the number of processes started on each host.",
        source="https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node",
        fix="slots equal to devices per node.",
        bad=_SLURM + _WRITE.replace("slots=4", "slots=8") + _RUN, good=_SLURM + _WRITE + _RUN, check=_slots,
    ),
    Rule(
        id="hostfile-fixed-name", fault_class="SSH_HOSTFILE", severity="warning",
        title="the jobs of an array write one host file",
        why="A second job overwrites the file while the first reads it.",
        source="https://github.com/EleutherAI/gpt-neox/issues/811",
        fix="Put the job's id into the name.",
        bad=_SLURM + _ARRAY + _WRITE.replace(".$SLURM_JOB_ID", "") + _RUN.replace(".$SLURM_JOB_ID", ""),
        good=_SLURM + _ARRAY + _WRITE + _RUN, check=_fixed_name,
    ),
    Rule(
        id="login-as-address", fault_class="SSH_HOSTFILE", severity="error",
        title="user@host where an address is wanted",
        why="The address is resolved and connected to, not logged in to.",
        source="https://github.com/huggingface/accelerate/issues/1317",
        fix="The plain address.",
        bad=_SLURM + "export MASTER_ADDR=me@gpu01\nsrun python train.py\n",
        good=_SLURM + "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
        "srun python train.py\n",
        check=_at,
    ),
    Rule(
        id="runner-needs-ssh", fault_class="SSH_HOSTFILE", severity="warning",
        title="a runner that needs ssh between nodes",
        why="pdsh must be installed and ssh between compute nodes allowed, without a password.",
        source="https://github.com/deepspeedai/DeepSpeed/issues/1603",
        fix="Start the processes with srun.",
        bad=_SLURM + _WRITE + _RUN,
        good=_SLURM + "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
        "srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29400 train.py\n",
        check=_runner,
    ),
    Rule(
        id="ssh-in-job", fault_class="SSH_HOSTFILE", severity="warning",
        title="ssh starts the program on the nodes",
        why="Processes started over ssh are not part of the job: no environment, no accounting, no clean end.",
        source="https://slurm.schedmd.com/pam_slurm_adopt.html",
        fix="Use the scheduler's launcher.",
        bad=_SLURM + "for host in $(scontrol show hostnames $SLURM_JOB_NODELIST); do\n"
        "  ssh $host python train.py &\ndone\nwait\n",
        good=_SLURM + "srun python train.py\n", check=_ssh,
    ),
)  # fmt: skip
