"""Faults put into scripts that Maple writes: for each rule a function text -> text, or None where it cannot occur.

Each takes a generated script and the site it is for. ``ABSENT`` names the rules whose fault no edit of a generated
script can bring about, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from maple_parsl.site import Site

Mutator = Callable[[str, Site], str | bytes | None]
MUTATORS: dict[str, Mutator] = {}

ABSENT = {
    "resource-set-gpus": "jsrun's resource sets: LSF, which no site of the catalogue runs",
    "lsb-hosts-empty": "LSF, which no site of the catalogue runs",
    "srun-without-mpi-type": "only for a script whose site is not known",
}


def slurm(text: str) -> bool:
    return "\n#SBATCH " in text


def pbs(text: str) -> bool:
    return "\n#PBS " in text


def swap(text: str, pattern: str, new: str) -> str | None:
    """The first match replaced; None where there is none."""
    made, count = re.subn(pattern, new, text, count=1, flags=re.M)
    return made if count else None


def directive(text: str, line: str) -> str | None:
    """A directive added behind the first one, for its own scheduler."""
    mark = line.split()[0]
    return swap(text, rf"^({mark} .*)$", rf"\1\n{line}")


def last_directive(text: str, line: str) -> str | None:
    """A directive added behind the last one."""
    rows = text.split("\n")
    mark = line.split()[0]
    at = [i for i, row in enumerate(rows[:40]) if row.startswith(mark)]
    return "\n".join([*rows[: at[-1] + 1], line, *rows[at[-1] + 1 :]]) if at else None


def without(text: str, pattern: str) -> str | None:
    """Lines taken out."""
    made, count = re.subn(rf"^{pattern}.*\n", "", text, flags=re.M)
    return made if count else None


def before_launch(text: str, line: str) -> str:
    return text.replace("\nmaple_launch ", f"\n{line}\nmaple_launch ", 1)


def launch(text: str, line: str) -> str:
    """Another launch instead of the one written."""
    return re.sub(r"(?ms)^maple_launch .*?(?=^maple_finish)", lambda _: line + "\n", text)


def program(text: str, words: str) -> str | None:
    """Arguments added to the program."""
    return swap(text, r"(--paradigm \w+.*)$", rf"\1 {words}")


def option(text: str, words: str) -> str | None:
    """An option added to the launcher."""
    return swap(text, r"^(maple_launch (?:srun|mpiexec|mpirun|ibrun))\b", rf"\1 {words}")


def starts(text: str) -> str:
    """The launcher of the script."""
    match = re.search(r"^maple_launch (\S+)", text, re.M)
    return match[1] if match else ""


def several(text: str) -> bool:
    return bool(re.search(r"^# .* on [2-9]\d* nodes", text, re.M)) or slurm(text) or pbs(text)


def add(identifier: str, mutator: Mutator) -> None:
    assert identifier not in MUTATORS
    MUTATORS[identifier] = mutator


def on_slurm(identifier: str, made: Callable[[str], str | bytes | None]) -> None:
    add(identifier, lambda text, _: made(text) if slurm(text) else None)


def on_pbs(identifier: str, made: Callable[[str], str | bytes | None]) -> None:
    add(identifier, lambda text, _: made(text) if pbs(text) else None)


def on_both(identifier: str, made: Callable[[str], str | bytes | None]) -> None:
    add(identifier, lambda text, _: made(text) if slurm(text) or pbs(text) else None)


def either(identifier: str, first: Callable[[str], str | None], second: Callable[[str], str | None]) -> None:
    """One form for Slurm, one for PBS."""
    add(identifier, lambda text, _: first(text) if slurm(text) else second(text) if pbs(text) else None)


def bare(text: str) -> str:
    """Without the lines that bring an environment."""
    pattern = r"^(?:module |command -v module|maple_check |eval |conda |source |\. ).*\n"
    return re.sub(pattern, "", text, flags=re.M)


def offline(text: str, site: Site) -> bool:
    """Its nodes have no way out."""
    return (slurm(text) or pbs(text)) and {e.outbound for e in site.environments.values()} == {"none"}


def forbidden(site: Site) -> str:
    """An option the site refuses."""
    return next((name for name in site.directives.forbidden if not name.startswith("--mem")), "")


def config(text: str, arguments: str) -> str:
    """A configuration of Parsl written by the script."""
    return before_launch(
        text,
        f"cat > config.py <<'E'\nfrom parsl.config import Config\nc = Config(executors=[HighThroughputExecutor({arguments})])\nE",
    )


def torchrun(more: str = "", nodes: str = "--nnodes=2", endpoint: str = "$MASTER_ADDR:$MASTER_PORT") -> str:
    return (
        f"torchrun {nodes} --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=$MAPLE_JOB_ID"
        f" --rdzv-endpoint={endpoint}{more} train.py"
    )


def node_step(text: str, command: str) -> str:
    """A launch with one task per node."""
    head = "srun --nodes=2 --ntasks-per-node=1" if slurm(text) else "mpiexec -n 2 --ppn 1"
    return launch(text, f"{head} {command}")


def device_step(text: str, command: str) -> str:
    """A launch with four tasks per node."""
    head = "srun --nodes=2 --ntasks-per-node=4" if slurm(text) else "mpiexec -n 8 --ppn 4"
    return launch(text, f"{head} {command}")


# --- The file itself
on_both("shebang-missing", lambda t: t.partition("\n")[2])
on_both("shebang-late", lambda t: "# licence\n" + t)
on_both("shebang-env-options", lambda t: "#!/usr/bin/env bash -l\n" + t.partition("\n")[2])
on_both("line-ends-crlf", lambda t: t.replace("\n", "\r\n"))
on_both("byte-order-mark", lambda t: "\ufeff" + t)
on_both("not-a-text", lambda t: t.encode("utf-16"))
on_both("look-alike-character", lambda t: device_step(t, "python train.py \u2013-lr 3"))
on_both("blank-after-backslash", lambda t: swap(t, r"^(maple_launch .*\\)$", r"\1 "))
on_both("shell-syntax", lambda t: before_launch(t, "if true; then"))
either(
    "line-break-lost",
    lambda t: swap(t, r"^(#SBATCH --time=.*)$", r"\1module purge"),
    lambda t: swap(t, r"^(#PBS -l walltime=.*)$", r"\1#PBS -k doe"),
)

# --- Directives
on_both("directive-after-command", lambda t: swap(t, r"\A(.*)$", r"\1\nset -e"))
either(
    "directive-is-comment",
    lambda t: swap(t, r"^#SBATCH --nodes", "# SBATCH --nodes"),
    lambda t: swap(t, r"^#PBS -l walltime", "# PBS -l walltime"),
)
either(
    "directive-stray-words",
    lambda t: swap(t, r"^#SBATCH --job-name=maple", "#SBATCH --job-name=my big run"),
    lambda t: swap(t, r"^#PBS -N maple", "#PBS -N my big run"),
)
either(
    "directive-second-on-line",
    lambda t: swap(t, r"^(#SBATCH --nodes=2)$", r"\1 #SBATCH --exclusive"),
    lambda t: swap(t, r"^(#PBS -N maple)$", r"\1 #PBS -k doe"),
)
either(
    "directive-repeated",
    lambda t: last_directive(t, "#SBATCH --time=00:10:00"),
    lambda t: last_directive(t, "#PBS -q other"),
)
either("directive-unknown", lambda t: directive(t, "#SBATCH --nodez=2"), lambda t: directive(t, "#PBS -Q debug"))
either(
    "directive-variable", lambda t: directive(t, "#SBATCH --error=$HOME/x.log"),
    lambda t: directive(t, "#PBS -o $HOME/x.log"),
)  # fmt: skip
either("directive-tilde", lambda t: directive(t, "#SBATCH --error=~/x.log"), lambda t: directive(t, "#PBS -o ~/x.log"))

# --- Dialects
either("directives-of-two-schedulers", lambda t: last_directive(t, "#SBATCH --exclusive\n#PBS -q debug"),
       lambda t: last_directive(t, "#PBS -k doe\n#SBATCH --nodes=2"))  # fmt: skip
either(
    "option-of-other-scheduler", lambda t: directive(t, "#SBATCH -l select=2"),
    lambda t: directive(t, "#PBS --nodes=2"),
)  # fmt: skip
on_pbs("torque-nodes", lambda t: swap(t, r"^#PBS -l select=\S*", "#PBS -l nodes=2:ppn=4"))
either("variable-of-other-scheduler", lambda t: before_launch(t, "cd $PBS_O_WORKDIR"),
       lambda t: before_launch(t, "cd $SLURM_SUBMIT_DIR"))  # fmt: skip
either("launcher-of-other-scheduler", lambda t: launch(t, "aprun -n 8 -N 4 python train.py"),
       lambda t: launch(t, "srun -n 8 python train.py"))  # fmt: skip
add("scheduler-of-other-site", lambda t, _: t.replace("#PBS ", "#SBATCH --comment=") if pbs(t) else
    t.replace("#SBATCH ", "#PBS -k doe ") if slurm(t) else None)  # fmt: skip

# --- Values and what contradicts
either("count-below-one", lambda t: swap(t, r"^#SBATCH --nodes=2", "#SBATCH --nodes=0"),
       lambda t: swap(t, r"^#PBS -l select=2", "#PBS -l select=0"))  # fmt: skip
either("time-unreadable", lambda t: swap(t, r"^#SBATCH --time=.*", "#SBATCH --time=1h"),
       lambda t: swap(t, r"^#PBS -l walltime=.*", "#PBS -l walltime=1h"))  # fmt: skip
on_slurm("tasks-against-nodes", lambda t: directive(t, "#SBATCH --ntasks=99"))
on_slurm("nodelist-against-nodes", lambda t: directive(t, "#SBATCH --nodelist=n[1-4]"))
on_slurm("options-against-each-other", lambda t: last_directive(t, "#SBATCH --exclusive\n#SBATCH --oversubscribe"))
on_slurm("comment-against-value", lambda t: swap(t, r"^(#SBATCH --nodes=2)$", r"\1  # 4 nodes"))
on_slurm("times-against-each-other", lambda t: directive(t, "#SBATCH --time-min=40:00:00"))
on_pbs("select-and-job-resource", lambda t: directive(t, "#PBS -l ncpus=8"))

# --- What is required
either("walltime-missing", lambda t: without(t, "#SBATCH --time="), lambda t: without(t, "#PBS -l walltime="))
on_slurm("nodes-missing", lambda t: without(t.replace("#SBATCH --exclusive\n", ""), "#SBATCH --nodes="))
add("filesystems-missing", lambda t, s: without(t, "#PBS -l filesystems"))
add("account-missing", lambda t, s: without(t, r"#(?:SBATCH --account=|PBS -A )")
    if s.scheduler.account == "required" else None)  # fmt: skip
either("placeholder-left", lambda t: directive(t, "#SBATCH --comment=<your_project>"),
       lambda t: swap(t, r"^#PBS -A .*", "#PBS -A YOUR_PROJECT"))  # fmt: skip
add("queue-unknown", lambda t, s: swap(t, r"^(#SBATCH --partition=|#PBS -q ).*", r"\1nosuchqueue"))
add("account-is-queue", lambda t, s: swap(t, r"^(#SBATCH --account=).*", rf"\g<1>{s.queues.entry[0].name}")
    if s.queues else None)  # fmt: skip
add("queue-default", lambda t, s: without(t, r"(?:#SBATCH --partition=|#PBS -q )"))
add("queue-as-other-option", lambda t, s: swap(t, r"^#SBATCH --qos=", "#SBATCH --partition="))
add("account-form", lambda t, s: swap(t, r"^#SBATCH --account=.*", "#SBATCH --account=wrong account")
    if s.name in ("delta", "deltaai") else None)  # fmt: skip

# --- Limits
either("queue-limit", lambda t: swap(t, r"^#SBATCH --time=.*", "#SBATCH --time=400:00:00"),
       lambda t: swap(t, r"^#PBS -l walltime=.*", "#PBS -l walltime=400:00:00"))  # fmt: skip
add("walltime-too-short", lambda t, s: swap(t, r"^(#SBATCH --time=|#PBS -l walltime=).*", r"\g<1>00:00:30")
    if s.scheduler.min_walltime else None)  # fmt: skip
add("nodes-not-there", lambda t, s: swap(t, r"^(#SBATCH --nodes=)2", r"\g<1>90000")
    if all(k.nodes for k in s.kinds.values()) else None)  # fmt: skip


# --- GPUs, memory, cores
on_slurm("gpus-asked-twice", lambda t: directive(t, "#SBATCH --gpus-per-node=4\n#SBATCH --gpus=4"))
on_slurm("gpus-total-below-nodes", lambda t: swap(t, r"^#SBATCH --gpus=\d+", "#SBATCH --gpus=1"))
on_slurm("gpu-request-form", lambda t: directive(t, "#SBATCH --gres=gpu=4"))
on_slurm("gpu-mappings-exclusive", lambda t: directive(t, "#SBATCH --gpus-per-task=1\n#SBATCH --ntasks-per-gpu=1"))
on_slurm("gpus-against-comment", lambda t: swap(t, r"^(#SBATCH --gpus-per-node=\d+)$", r"\1  # a node has 1"))
on_slurm("gpus-more-than-node", lambda t: swap(t, r"^#SBATCH --gpus-per-node=\S*", "#SBATCH --gpus-per-node=32"))
on_slurm("gpus-not-asked", lambda t: without(t, "#SBATCH --gpus-per-node=") if "--gpus-per-task" not in t else None)
on_slurm(
    "tasks-per-gpu-with-launcher", lambda t: node_step(directive(t, "#SBATCH --ntasks-per-gpu=1") or t, torchrun())
)
on_slurm("copies-per-gpu", lambda t: directive(t, "#SBATCH --ntasks-per-gpu=1"))
on_both("visible-devices-shared", lambda t: device_step(before_launch(t, "export CUDA_VISIBLE_DEVICES=0"), "python train.py")
        .replace("maple_finish", "maple_finish"))  # fmt: skip
on_slurm("device-isolated", lambda t: device_step(t, "--gpus-per-task=1 python train.py --device cuda")
         if "ROCR" not in t and "gpus-per-task" not in t else None)  # fmt: skip
on_slurm("memory-forms-exclusive", lambda t: directive(t, "#SBATCH --mem=8G\n#SBATCH --mem-per-cpu=2G"))
on_slurm("memory-unit", lambda t: directive(without(t, "#SBATCH --mem") or t, "#SBATCH --mem=64"))
add("memory-more-than-node", lambda t, s: directive(without(t, "#SBATCH --mem") or t, "#SBATCH --mem=90000G")
    if slurm(t) and all(k.memory_gib for k in s.kinds.values()) else None)  # fmt: skip
on_both("address-space-limited", lambda t: before_launch(t, "ulimit -v 8000000"))
add("memory-not-taken", lambda t, s: directive(t, "#SBATCH --mem=8G") if s.directives.memory == "forbidden" else None)
add("memory-not-asked", lambda t, s: without(t.replace("#SBATCH --exclusive\n", ""), "#SBATCH --mem"))
on_slurm("step-cores-exceed-job", lambda t: swap(t, r"--cpus-per-task=\d+ \\$", r"--cpus-per-task=900 \\")
         if "#SBATCH --exclusive" not in t else None)  # fmt: skip
on_both("threads-exceed-cores", lambda t: swap(t, r"^export OMP_NUM_THREADS=.*", "export OMP_NUM_THREADS=4096")
        if slurm(t) and "--cpus-per-task" in t else None)  # fmt: skip
on_pbs("binding-list-commas", lambda t: swap(t, r"--cpu-bind list:\S+", "--cpu-bind list:0-7,8-15,16-23,24-31"))
on_pbs("binding-overlaps", lambda t: swap(t, r"--cpu-bind list:\S+", "--cpu-bind list:0-7:0-7:8-15:16-23"))
on_slurm("cpus-per-task-not-inherited", lambda t: swap(t, r" --cpus-per-task=\d+( \\)$", r"\1"))

# --- Launchers
on_both("framework-launcher-per-task", lambda t: device_step(t, torchrun()))
on_both("launcher-nodes-missing", lambda t: node_step(t, torchrun(nodes="")))
on_both("launcher-nodes-differ", lambda t: node_step(t, torchrun(nodes="--nnodes=4")))
on_slurm("step-larger-than-job", lambda t: launch(t, "srun --nodes=8 --ntasks-per-node=1 " + torchrun()))
on_both("world-size-differs", lambda t: device_step(before_launch(t, "export WORLD_SIZE=3"), "python train.py"))
on_both("accelerate-total-processes", lambda t: node_step(
    t, "accelerate launch --num_machines 2 --num_processes 4 --main_process_ip $MASTER_ADDR"
    " --main_process_port $MASTER_PORT train.py"))  # fmt: skip
on_both(
    "runner-on-every-node", lambda t: node_step(t, "deepspeed --num_nodes 2 --num_gpus 4 --hostfile hosts train.py")
)
on_both("trainer-devices-differ", lambda t: device_step(t, "python train.py --devices 7 --num_nodes 2"))
on_both("spawn-strategy-under-launcher", lambda t: device_step(t, "python train.py --strategy ddp_spawn"))
on_both("first-node-only", lambda t: launch(t, "python train.py"))
on_both("node-loop-in-foreground", lambda t: launch(
    t, "i=0\nfor h in " + ("$(scontrol show hostnames)" if slurm(t) else "$(sort -u $PBS_NODEFILE)") + "; do\n  ssh $h torchrun"
    " --nnodes=2 --node-rank=$i --nproc-per-node=4 --master-addr=$MASTER_ADDR t.py\n  i=$((i+1))\ndone"))  # fmt: skip

on_slurm("step-inside-step", lambda t: launch(t, "srun bash -c 'srun python train.py'"))
on_slurm("steps-side-by-side", lambda t: launch(t, "srun python a.py &\nsrun python b.py &\nwait"))
either(
    "launcher-flags-foreign", lambda t: None, lambda t: option(t, "--mca btl tcp") if starts(t) == "mpiexec" else None
)
either("rank-of-other-launcher", lambda t: device_step(t, "bash -c 'RANK=$OMPI_COMM_WORLD_RANK python train.py'"),
       lambda t: device_step(t, "bash -c 'RANK=$SLURM_PROCID python train.py'"))  # fmt: skip

# --- Rendezvous, ranks, ports
on_both("endpoint-loopback", lambda t: node_step(t, torchrun(endpoint="localhost:$MASTER_PORT")))
on_both("endpoint-per-process", lambda t: node_step(
    t, "bash -c 'torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=1"
    " --rdzv-endpoint=$(hostname):2345 train.py'"))  # fmt: skip
on_both("endpoint-empty", lambda t: node_step(t, "env MASTER_ADDR= python train.py")
        .replace("maple_port\n", "maple_port\nMASTER_ADDR=\n"))  # fmt: skip
on_both("endpoint-missing", lambda t: node_step(t, "torchrun --nnodes=2 --nproc-per-node=4 train.py"))
on_slurm("endpoint-submit-host", lambda t: node_step(t, torchrun(endpoint="$SLURM_SUBMIT_HOST:$MASTER_PORT")))
either("endpoint-last-host", lambda t: swap(t, r"^MASTER_ADDR=\$\(.*", "MASTER_ADDR=$(scontrol show hostnames | tail -n 1)"),
       lambda t: swap(t, r"^MASTER_ADDR=\$\(.*", 'MASTER_ADDR=$(tail -n 1 "$PBS_NODEFILE")'))  # fmt: skip
on_both("endpoint-literal-host", lambda t: node_step(t, torchrun(endpoint="gpu0042:$MASTER_PORT")))
on_both("endpoint-without-port", lambda t: node_step(t, torchrun(endpoint="$MASTER_ADDR")))
on_both("static-node-rank", lambda t: node_step(
    t, "torchrun --nnodes=2 --nproc-per-node=4 --node-rank=0 --master-addr=$MASTER_ADDR"
    " --master-port=$MASTER_PORT train.py"))  # fmt: skip
on_slurm("rank-expanded-early", lambda t: node_step(
    t, "torchrun --nnodes=2 --nproc-per-node=4 --node-rank=$SLURM_NODEID --master-addr=$MASTER_ADDR train.py"))  # fmt: skip
on_slurm("rank-in-heredoc", lambda t: device_step(
    before_launch(t, "cat > w.sh <<END\nexport RANK=$SLURM_PROCID\npython train.py\nEND"), "sh w.sh"))  # fmt: skip
on_slurm("rank-in-batch-shell", lambda t: before_launch(t, 'if [ "$SLURM_PROCID" -eq 0 ]; then mkdir out; fi'))
on_slurm("escaped-in-single-quotes", lambda t: node_step(
    t, "bash -c 'torchrun --nnodes=2 --rdzv_id=\\$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:2345 t.py'"))  # fmt: skip
on_slurm("rank-passed-literally", lambda t: device_step(t, "env RANK='$SLURM_PROCID' python train.py"))
on_both("variable-not-exported", lambda t: device_step(
    before_launch(t, "LR=3"), "bash -c 'python train.py --lr $LR'"))  # fmt: skip
on_both("fixed-port", lambda t: swap(t, r"^maple_port$", "MASTER_PORT=29500"))
either(
    "port-in-ephemeral-range",
    lambda t: swap(t, r"^maple_port$", "MASTER_PORT=$((40000 + SLURM_JOB_ID % 9999))"),
    lambda t: None,
)
on_both("port-out-of-range", lambda t: swap(t, r"^maple_port$", "MASTER_PORT=99999"))
on_both("port-per-process", lambda t: device_step(t, "bash -c 'MASTER_PORT=$RANDOM python train.py'"))

# --- Scheduler variables
on_slurm("gpu-variable-typed", lambda t: node_step(t.replace("--gpus-per-node=", "--gpus-per-node=a100:"), torchrun().replace(
    "--nproc-per-node=4", "--nproc-per-node=$SLURM_GPUS_PER_NODE")))  # fmt: skip
on_slurm("count-variable-shortened", lambda t: before_launch(t, "export N=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))"))
on_slurm("nodelist-unexpanded", lambda t: swap(t, r"^MASTER_ADDR=\$\(.*", "MASTER_ADDR=${SLURM_JOB_NODELIST%%,*}"))
on_pbs("node-file-lines", lambda t: launch(
    t.replace("#PBS -l select=2", "#PBS -l select=2:mpiprocs=4"), "N=$(wc -l < $PBS_NODEFILE)\nmpiexec -n $N --ppn 1 python t.py"))  # fmt: skip
on_slurm("submission-in-job", lambda t: before_launch(t, "sbatch --export=ALL next.sh"))
on_slurm("submission-in-step", lambda t: device_step(t, "bash -c 'sbatch next.sh'"))
on_pbs("whole-environment", lambda t: directive(t, "#PBS -V"))
on_slurm("export-none-inherited", lambda t: directive(t, "#SBATCH --export=NONE") if starts(t) == "srun" else None)
on_slurm("scheduler-variable-set", lambda t: before_launch(t, "export SLURM_NTASKS=99"))

# --- Environment
on_slurm("export-without-all", lambda t: option(t, "--export=A=1") if starts(t) == "srun" else None)
on_both("conda-sourced", lambda t: before_launch(t, "source conda activate env"))
on_both("setting-not-exported", lambda t: before_launch(t, "NCCL_DEBUG=INFO"))
on_both("environment-not-remote", lambda t: launch(t, "ssh node2 'python train.py' &\nwait"))

# --- Network, files, hosts
on_both("gloo-interface-form", lambda t: before_launch(t, "export GLOO_SOCKET_IFNAME=^lo,docker0"))
on_both("loopback-interface", lambda t: before_launch(t, "export NCCL_SOCKET_IFNAME=lo"))
add("infiniband-disabled", lambda t, s: before_launch(t, "export NCCL_IB_DISABLE=1")
    if (slurm(t) or pbs(t)) and not any("slingshot" in (k.nic or "").lower() for k in s.kinds.values()) else None)  # fmt: skip
add("interface-of-other-site", lambda t, s: before_launch(t, "export NCCL_SOCKET_IFNAME=wlan7")
    if s.rendezvous.interface else None)  # fmt: skip
add("interface-missing", lambda t, s: without(bare(t), "export NCCL_SOCKET_IFNAME=hsn"))
on_both(
    "written-on-first-node",
    lambda t: device_step(before_launch(t, "cp -r data /tmp/data"), "python train.py --data /tmp/data"),
)
on_both("results-on-one-node", lambda t: program(t, "--init-method file:///tmp/sync"))
on_both("cache-variable-misspelt", lambda t: before_launch(t, "export MIOPEN_USER_DB=/tmp/x"))
on_both("home-on-node", lambda t: before_launch(t, "export HOME=/tmp/home"))
on_both("hostfile-literal-hosts", lambda t: launch(
    t, "cat > hosts <<E\nnode1 slots=4\nnode2 slots=4\nE\ndeepspeed --hostfile hosts train.py"))  # fmt: skip
on_both("hostfile-not-written", lambda t: launch(t, "deepspeed --hostfile nodes.txt train.py"))
on_both("login-as-address", lambda t: node_step(t, torchrun(endpoint="me@10.0.0.1:2345")))

# --- Devices of Intel
add("nccl-on-intel", lambda t, s: program(t, "--backend nccl") if "MAPLE_DEVICE=xpu" in t else None)
add("ccl-launcher-none", lambda t, s: before_launch(t, "export CCL_PROCESS_LAUNCHER=none")
    if "MAPLE_DEVICE=xpu" in t and starts(t) == "mpiexec" else None)  # fmt: skip
add("composite-process-count", lambda t, s: before_launch(t, "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE")
    if "MAPLE_DEVICE=xpu" in t and s.name == "aurora" else None)  # fmt: skip
add("tile-mask-with-flat", lambda t, s: before_launch(t, "export ZE_AFFINITY_MASK=0.0,0.1")
    if "HIERARCHY=FLAT" in t else None)  # fmt: skip

# --- Parallelism, containers, executors, secrets, injection, internet
on_both("degrees-differ-from-world", lambda t: program(t, "--tensor-model-parallel-size 7"))
on_both("shape-not-divisible", lambda t: program(t, "--num-attention-heads 30 --tensor-model-parallel-size 4"))
on_both("batch-not-divisible", lambda t: program(t, "--global-batch-size 101 --micro-batch-size 8"))
add(
    "container-gpu-option",
    lambda t, _: (
        device_step(t, "apptainer exec image.sif python train.py")
        if "MAPLE_DEVICE=cuda" in t and (slurm(t) or pbs(t))
        else None
    ),
)
on_both("image-reference", lambda t: device_step(t, "apptainer exec --nv docker://docker://a/b python train.py"))
on_both("secret-in-script", lambda t: before_launch(t, "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"))
on_both("download-run-unseen", lambda t: before_launch(t, "curl -s https://example.org/x.sh | bash"))
on_both("eval-of-outside", lambda t: before_launch(t, 'eval "$1"'))
on_both("argument-in-shell-text", lambda t: device_step(t, 'bash -c "python train.py $1"'))
add("download-in-job", lambda t, s: before_launch(t, "pip install x") if offline(t, s) else None)
add("online-service", lambda t, s: device_step(t, "python train.py --report-to wandb") if offline(t, s) else None)
on_both("workers-started-per-task", lambda t: device_step(t, "globus-compute-endpoint start mine"))
on_both("worker-address-loopback", lambda t: before_launch(t, "cat > config.py <<'E'\n"
        "c = Config(executors=[HighThroughputExecutor(address='127.0.0.1', provider=SlurmProvider(worker_init='. e'))])\nE"))  # fmt: skip
on_both("worker-environment-missing", lambda t: before_launch(
    t, "cat > config.py <<'E'\nc = Config(executors=[HighThroughputExecutor(provider=SlurmProvider())])\nE"))  # fmt: skip

# --- More of the same families
on_slurm("tasks-not-placed", lambda t: launch(
    directive(without(t, "#SBATCH --ntasks-per-node") or t, "#SBATCH --ntasks=8") or t, "srun python train.py"))  # fmt: skip
on_both("processes-differ-from-devices", lambda t: node_step(t, torchrun().replace("node=4", "node=31")))
on_slurm("one-task-for-all-devices", lambda t: node_step(t, "bash -c 'LOCAL_RANK=$SLURM_LOCALID python train.py'")
         if "--gpus-per-node=1" not in t else None)  # fmt: skip
on_slurm("mpirun-lacks-slots", lambda t: launch(t, "mpirun -np 999 python train.py"))
on_both("hosts-without-slots", lambda t: launch(t, "horovodrun -np 8 -H localhost python train.py"))
on_both("endpoint-from-nowhere", lambda t: swap(t, r"^MASTER_ADDR=\$\(.*", "MASTER_ADDR=$NO_SUCH_HOST"))
on_slurm("master-addr-missing", lambda t: device_step(
    re.sub(r"^(?:unset RANK|MASTER_ADDR=|\[ -n \"\$MASTER_ADDR|export MASTER_ADDR).*\n", "", t, flags=re.M),
    "bash -c 'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS python train.py'"))  # fmt: skip
add("endpoint-address-command", lambda t, s: swap(t, r"^MASTER_ADDR=\$\(.*", "MASTER_ADDR=$(hostname -I)")
    if s.rendezvous.address != "any" else None)  # fmt: skip
on_both("machine-rank-shared", lambda t: node_step(
    t, "accelerate launch --num_machines 2 --num_processes 8 --machine_rank 0 --main_process_ip $MASTER_ADDR"
    " --main_process_port $MASTER_PORT train.py"))  # fmt: skip
on_both("rendezvous-id-missing", lambda t: node_step(t, torchrun().replace(" --rdzv-id=$MAPLE_JOB_ID", "")))
on_slurm("node-rank-unused", lambda t: node_step(
    t, "bash -c '" + torchrun(" --node-rank=$SLURM_NODEID").replace("$MAPLE_JOB_ID", "7") + "'"))  # fmt: skip
on_both(
    "rendezvous-id-differs", lambda t: node_step(t, "bash -c '" + torchrun().replace("$MAPLE_JOB_ID", "$RANDOM") + "'")
)
on_both("one-port-for-two-launches", lambda t: launch(
    t, "torchrun --nproc-per-node=2 --master-port=12345 a.py &\ntorchrun --nproc-per-node=2 --master-port=12345 b.py &\nwait"))  # fmt: skip
on_slurm("driver-inside-step", lambda t: launch(t, "srun -n1 python driver.py"))
on_slurm("two-mpi-libraries", lambda t: launch(t, "module load openmpi\nmpirun -np 8 -ppn 4 python train.py"))
_DS = "deepspeed --hostfile hosts.$MAPLE_JOB_ID train.py"
on_slurm("hostfile-without-slots", lambda t: launch(t, f"scontrol show hostnames > hosts.$MAPLE_JOB_ID\n{_DS}"))
on_slurm("hostfile-slots-differ", lambda t: launch(
    t, f"scontrol show hostnames | sed 's/$/ slots=99/' > hosts.$MAPLE_JOB_ID\n{_DS}"))  # fmt: skip
on_slurm("hostfile-fixed-name", lambda t: launch(
    directive(t, "#SBATCH --array=0-3") or t,
    "scontrol show hostnames | sed 's/$/ slots=4/' > hosts\ndeepspeed --launcher=slurm --hostfile hosts train.py"))  # fmt: skip
on_slurm("runner-needs-ssh", lambda t: launch(
    t, f"scontrol show hostnames | sed 's/$/ slots=4/' > hosts.$MAPLE_JOB_ID\n{_DS}"))  # fmt: skip
on_both("ssh-in-job", lambda t: launch(t, "ssh node2 'python train.py' &\nwait"))
on_slurm("scheduler-variable-unset", lambda t: before_launch(
    without(t, "#SBATCH --cpus-per-task") or t, "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK"))  # fmt: skip
on_pbs("uniq-without-sort", lambda t: before_launch(
    t.replace("#PBS -l select=2", "#PBS -l select=1+1", 1), "N=$(uniq $PBS_NODEFILE | wc -l)"))  # fmt: skip
on_slurm("cores-exceed-node", lambda t: swap(t, r"^#SBATCH --cpus-per-task=\d+", "#SBATCH --cpus-per-task=5000"))
add("binding-order", lambda t, s: launch(
    t, "mpiexec -n 8 --ppn 4 --cpu-bind list:0-7:8-15:16-23:24-31 python train.py")
    if s.name == "polaris" else None)  # fmt: skip
on_both("started-from-node-local", lambda t: device_step(before_launch(t, "cd /tmp"), "python train.py"))
on_both("cache-on-shared-home", lambda t: before_launch(t, "export MIOPEN_USER_DB_PATH=$HOME/.miopen"))
on_both("worker-launcher-single-node", lambda t: config(
    t, "provider=SlurmProvider(nodes_per_block=2, launcher=SimpleLauncher(), worker_init='. env')"))  # fmt: skip
on_both("workers-differ-from-accelerators", lambda t: config(
    t, "max_workers_per_node=2, available_accelerators=4, provider=SlurmProvider(worker_init='. env')"))  # fmt: skip
either("directive-in-document", lambda t: swap(t, r"\A(.*)\n", "\\1\ncat <<E\n#SBATCH --exclusive\nE\n"),
       lambda t: swap(t, r"\A(.*)\n", "\\1\ncat <<E\n#PBS -k doe\nE\n"))  # fmt: skip
add("constraint-missing", lambda t, s: without(t, "#SBATCH --constraint"))
add("option-site-forbids", lambda t, s: directive(t, f"#SBATCH {forbidden(s)}") if slurm(t) and forbidden(s) else None)
add("launcher-of-other-site", lambda t, s: launch(t, "ibrun python train.py") if starts(t) == "srun" else None)
on_slurm("gpus-per-task-without-tasks", lambda t: directive(
    re.sub(r"^#SBATCH --(?:ntasks|gpus|gres).*\n", "", t, flags=re.M), "#SBATCH --gpus-per-task=1"))  # fmt: skip
add("gpu-request-of-other-site", lambda t, s: swap(t, r"^#SBATCH --gpus-per-node=(\d+)", r"#SBATCH --gres=gpu:\1")
    if s.name == "perlmutter" else None)  # fmt: skip
add(
    "devices-left-idle", lambda t, s: launch(t, "mpiexec -n 12 --ppn 6 python train.py") if s.name == "aurora" else None
)
on_slurm("visible-devices-twice", lambda t: device_step(before_launch(
    t, "export ROCR_VISIBLE_DEVICES=2,3\nexport HIP_VISIBLE_DEVICES=2,3"), "python train.py"))  # fmt: skip
on_slurm("more-processes-than-gpus", lambda t: launch(t, "srun --nodes=2 --ntasks-per-node=64 python train.py")
         if "--gpus-per-node" in t else None)  # fmt: skip
on_slurm("conda-without-hook", lambda t: before_launch(bare(t), "conda activate env"))
on_both("environment-missing", lambda t: launch(
    bare(t).replace("#!/bin/bash -l", "#!/bin/bash"), "srun " + torchrun() if slurm(t) else "mpiexec -n 2 --ppn 1 " + torchrun())
    if not re.search(r"^export PATH=", t, re.M) else None)  # fmt: skip
on_pbs("module-without-login-shell", lambda t: swap(
    t, r"\A#!/bin/bash -l((?:\n#PBS.*)+)$", r"#!/bin/bash\1\nmodule load frameworks"))  # fmt: skip
add("interface-literal", lambda t, s: before_launch(t, "export NCCL_SOCKET_IFNAME=eth2")
    if (slurm(t) or pbs(t)) and s.rendezvous.interface is None else None)  # fmt: skip
add("fabric-of-other-site", lambda t, s: before_launch(t, "export NCCL_IB_HCA=mlx5_0")
    if s.name in ("perlmutter", "frontier", "polaris") else None)  # fmt: skip
on_both("proxy-for-internal", lambda t: before_launch(
    without(t, "export (?:no_proxy|NO_PROXY)") or t, "export http_proxy=http://proxy.example:3128"))  # fmt: skip
add(
    "ccl-backend-old", lambda t, s: device_step(t, "python train.py --backend ccl") if "MAPLE_DEVICE=xpu" in t else None
)
add("ccl-without-mpi-launcher", lambda t, s: launch(t, "torchrun --nproc-per-node=4 train.py --backend xccl")
    if "MAPLE_DEVICE=xpu" in t else None)  # fmt: skip
add("container-gpu-vendor", lambda t, s: device_step(t, "apptainer exec --rocm image.sif python train.py")
    if s.name in ("perlmutter", "polaris") else None)  # fmt: skip
add("image-architecture", lambda t, s: device_step(t, "apptainer exec --nv docker://a/b-x86_64:1 python train.py")
    if s.name in ("vista", "deltaai") else None)  # fmt: skip
on_both("docker-gpu-option", lambda t: launch(t, "docker run image python train.py")
        if "MAPLE_DEVICE=cuda" in t else None)  # fmt: skip
on_slurm("time-units", lambda t: swap(t, r"^#SBATCH --time=.*", "#SBATCH --time=1:30"))
on_slurm("value-unreadable", lambda t: directive(without(t, "#SBATCH --mem") or t, "#SBATCH --mem=lots"))
