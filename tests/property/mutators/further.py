"""Further faults of every family."""

from __future__ import annotations

import re

from tests.property.mutators.base import (
    add,
    bare,
    before_launch,
    config,
    device_step,
    directive,
    either,
    forbidden,
    launch,
    node_step,
    on_both,
    on_pbs,
    on_slurm,
    pbs,
    slurm,
    starts,
    swap,
    torchrun,
    without,
)

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
on_slurm("container-without-devices", lambda t: device_step(
    before_launch(t, "export NVIDIA_VISIBLE_DEVICES=void"), "--container-image=i.sqsh python train.py"))  # fmt: skip
