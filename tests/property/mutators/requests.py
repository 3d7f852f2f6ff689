"""Faults of the file, its directives, requests and limits."""

from __future__ import annotations

from tests.property.mutators.base import (
    add,
    before_launch,
    device_step,
    directive,
    either,
    last_directive,
    launch,
    node_step,
    on_both,
    on_pbs,
    on_slurm,
    pbs,
    slurm,
    swap,
    torchrun,
    without,
)

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
         if 'NAME="ROCR' not in t and "gpus-per-task" not in t else None)  # fmt: skip
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
