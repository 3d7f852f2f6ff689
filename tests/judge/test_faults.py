"""Broken scripts fail, each for its own fault: one change of a right script at a time."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from maple_parsl.judge.judging import judge
from maple_parsl.judge.sandbox import Sandbox
from tests.judge.good import ARGS, GOOD


class Mutant(NamedTuple):
    """A right script, the text replaced, and the fault that has to be found (and no other kind but those allowed)."""

    name: str
    base: str
    old: str
    new: str
    kind: str
    words: str
    allowed: str = ""


MUTANTS = [
    # what the scheduler is told
    Mutant("account left out", "per device", "#SBATCH -A m1234\n", "", "account", "no account"),
    Mutant("account of another", "per device", "-A m1234", "-A m9999", "account", "m9999, not m1234"),
    Mutant("account form", "accelerate", "demo-delta-gpu", "demo", "account", "form"),
    Mutant("queue left out", "per device", "#SBATCH -q regular\n", "", "queue", "no queue"),
    Mutant("queue of another name", "ibrun", "-p gpu-a100", "-p normal", "queue", "no GPU queue normal"),
    Mutant("interactive queue", "per device", "-q regular", "-q interactive", "queue", "no GPU queue interactive"),
    Mutant("walltime over the queue's", "pals", "walltime=0:30:00", "walltime=2:00:00", "walltime", "gives 60"),
    Mutant("walltime as minutes", "per device", "-t 00:30:00", "-t 00:30", "walltime", "0.5 minutes"),
    Mutant("walltime left out", "per device", "#SBATCH -t 00:30:00\n", "", "walltime", "no walltime"),
    Mutant("constraint left out", "per device", "#SBATCH -C gpu\n", "", "constraint", "no -C"),
    Mutant("constraint of CPU nodes", "per device", "-C gpu", "-C cpu", "constraint", "cpu"),
    Mutant("forbidden gres", "ibrun", "#SBATCH -N 2", "#SBATCH -N 2\n#SBATCH --gres=gpu:3", "directive-forbidden", "gres"),
    Mutant("forbidden mem", "ibrun", "#SBATCH -N 2", "#SBATCH -N 2\n#SBATCH --mem=0", "directive-forbidden", "mem"),
    Mutant("forbidden nodelist", "ibrun", "#SBATCH -N 2", "#SBATCH -N 2\n#SBATCH -w c1", "directive-forbidden", "nodelist"),
    Mutant("option unknown", "ibrun", "#SBATCH -N 2", "#SBATCH -N 2\n#SBATCH --gpu=2", "directive-unreadable", "--gpu"),
    Mutant("GPUs not asked for", "elastic", "#SBATCH --gpus-per-node=4\n", "", "gpu-request", "no GPU", "device launcher"),
    Mutant("too few GPUs", "elastic", "--gpus-per-node=4", "--gpus-per-node=2", "gpu-request", "2 GPUs", "device"),
    Mutant("filesystems left out", "pals", "#PBS -l filesystems=home:eagle\n", "", "filesystems", "no -l"),
    Mutant("select of more CPUs than a node", "pals", "system=polaris", "ncpus=256", "node-count", "256 CPUs"),
    Mutant("a node less", "elastic", "-N 2", "-N 1", "node-count", "1 nodes", "world-size rank process-count"),
    Mutant("tasks not told", "ibrun", "#SBATCH --ntasks-per-node=1\n", "", "slots", "--ntasks-per-node"),
    Mutant("no shebang", "per device", "#!/bin/bash\n#SBATCH -A", "\n#SBATCH -A", "script", "#!"),
    Mutant("directives behind a command", "pals", "#!/bin/bash -l\n", "#!/bin/bash -l\nset -e\n", "account", "no account",
           "queue walltime node-count filesystems process-count launcher script world-size rank program"),
    Mutant("carriage returns", "per device", "#!/bin/bash\n", "#!/bin/bash\r\n", "script", "127", "program"),
    # processes
    Mutant("a task too many", "per device", "--ntasks-per-node=4", "--ntasks-per-node=8", "launcher", "128 CPUs",
           "program script"),
    Mutant("a task too few", "per device", "srun -u", "srun -u -n 6", "process-count", "3 processes",
           "rank world-size"),
    Mutant("no launcher", "elastic", "srun torchrun", "torchrun", "launcher", "only 1 came", "program script"),
    Mutant("no launcher, one process", "per device", "srun -u -c 32 --cpu-bind=cores ./rank.sh python -u train.py",
           "python -u train.py", "process-count", "1 processes", "node-count rank world-size local-rank affinity device cores"),
    Mutant("agent on every device", "elastic", "srun torchrun", "srun -n 8 -c 32 torchrun", "process-count",
           "16 processes", "rank world-size device rank-order rendezvous-address"),
    Mutant("workers per node", "elastic", "--nproc-per-node=4", "--nproc-per-node=2", "process-count", "2 processes",
           "rank world-size"),
    Mutant("Open MPI fills the first node", "open mpi", "--map-by ppr:1:node", "--map-by ppr:2:node", "node-count", "on 1 nodes",
           "process-count device"),
    Mutant("launcher of another site", "ibrun", "ibrun -np 2", "srun -n 2", "rank", "believe", "cores rendezvous-address"),
    Mutant("option of another launcher", "pals", "--ppn 4", "--map-by ppr:4:node", "launcher", "--map-by", "program script"),
    Mutant("all processes on one node", "pals", "--ppn 4", "--ppn 8", "node-count", "on 1 nodes",
           "process-count device local-rank affinity cores launcher"),
    # ranks
    Mutant("rank expanded in the batch shell", "per device", "<<'EOF'", "<<EOF", "rank", "8 processes believe to be rank 0",
           "device world-size affinity"),
    Mutant("rank expanded in double quotes", "accelerate", "--machine_rank $SLURM_PROCID", "--machine_rank '$SLURM_PROCID'",
           "rank", "believe"),
    Mutant("node rank the same everywhere", "open mpi", "$OMPI_COMM_WORLD_RANK", "0", "rank", "believe"),
    Mutant("rank of another launcher", "open mpi", "$OMPI_COMM_WORLD_RANK", "${PMI_RANK:-0}", "rank", "believe"),
    Mutant("rank not exported", "per device", "export RANK=$SLURM_PROCID", "export PLACE=$SLURM_PROCID", "rank", "not told"),
    Mutant("world size of nodes", "per device", "WORLD_SIZE=$SLURM_NTASKS", "WORLD_SIZE=$SLURM_NNODES", "world-size", "2"),
    Mutant("ranks dealt out cyclically", "per device", "srun -u", "srun -u -m cyclic", "rank-order", "ranks in order"),
    Mutant("nodes counted from one", "ibrun", "$PMI_RANK", "$((PMI_RANK + 1))", "rank", "not 0 to 5"),
    # devices and cores
    Mutant("same device for all", "per device", "LOCAL_RANK=$SLURM_LOCALID", "LOCAL_RANK=0", "device", "share device 3", "affinity"),
    Mutant("one visible device", "per device", "CUDA_VISIBLE_DEVICES=3,2,1,0", "CUDA_VISIBLE_DEVICES=0", "device", "no device",
           "affinity"),
    Mutant("device hidden twice", "per device", "CUDA_VISIBLE_DEVICES=3,2,1,0", "CUDA_VISIBLE_DEVICES=$SLURM_LOCALID",
           "device", "no device", "affinity"),
    Mutant("reversed affinity", "per device", "CUDA_VISIBLE_DEVICES=3,2,1,0", "CUDA_VISIBLE_DEVICES=0,1,2,3", "affinity", "local rank 0 runs"),
    Mutant("affinity of PALS", "pals", "CUDA_VISIBLE_DEVICES=3,2,1,0", "CUDA_VISIBLE_DEVICES=0,1,2,3", "affinity", "local rank 0 runs"),
    Mutant("one list for every rank", "pals", "--cpu-bind depth", "--cpu-bind list:0,8,16,24", "cores", "bound to core", "affinity"),
    Mutant("one core for an agent", "elastic", "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n", "", "cores", "share"),
    # rendezvous
    Mutant("localhost", "per device", 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
           "MASTER_ADDR=localhost", "rendezvous-address", "localhost"),
    Mutant("each node its own address", "per device", "export RANK=", "export MASTER_ADDR=$(hostname) RANK=",
           "rendezvous-address", "different places"),
    Mutant("last node", "per device", "head -n 1", "tail -n 1", "rendezvous-address", "not the node of rank 0"),
    Mutant("login node", "per device", 'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
           "MASTER_ADDR=$SLURM_SUBMIT_HOST", "rendezvous-address", "none of the job's nodes"),
    Mutant("host list not expanded", "per device", '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
           "$SLURM_JOB_NODELIST", "rendezvous-address", "none of the job's"),
    Mutant("a port per process", "per device", "export RANK=", "export MASTER_PORT=$((29500 + SLURM_LOCALID)) RANK=",
           "rendezvous-port", "different ports"),
    Mutant("a port per node", "per device", "export RANK=", "export MASTER_PORT=$((29500 + SLURM_NODEID)) RANK=",
           "rendezvous-port", "different ports"),
    Mutant("no such port", "per device", "MASTER_PORT=29517", "MASTER_PORT=129517", "rendezvous-port", "129517"),
    Mutant("endpoint on every node", "elastic", "$MASTER_ADDR:$MASTER_PORT", "localhost:$MASTER_PORT", "launcher", "only 1 came",
           "program script"),
    # program and environment
    Mutant("arguments split", "per device", '"$@"', "$@", "arguments", "two"),
    Mutant("arguments lost", "open mpi", 'train.py "$@"', "train.py", "arguments", "[]"),
    Mutant("an argument expanded", "elastic", "'$5'", '"$5"', "arguments", "''"),
    Mutant("another program", "elastic", " train.py", " other.py", "program", "other.py"),
    Mutant("another folder", "pals", "cd $PBS_O_WORKDIR\n", "", "program", "/home/user/train.py"),
    Mutant("another backend", "elastic", "srun torchrun", "DIST_BACKEND=gloo srun torchrun", "backend", "gloo"),
    Mutant("network not named", "accelerate", "export NCCL_SOCKET_IFNAME=hsn\n", "", "environment", "NCCL_SOCKET_IFNAME"),
    Mutant("proxy left out", "pals", "export http_proxy=http://proxy.alcf.anl.gov:3128 https_proxy", "export https_proxy",
           "environment", "http_proxy"),
    Mutant("environment not handed on", "per device", "srun -u", "srun -u --export=NONE", "rendezvous-address", "no MASTER_ADDR",
           "rendezvous-port"),
    Mutant("no PyTorch", "per device", "module load pytorch\n", "", "software", "none of"),
    Mutant("not a login shell", "pals", "#!/bin/bash -l", "#!/bin/bash", "software", "none of conda"),
    Mutant("a job that submits", "per device", "module load", "sbatch next.sh\nmodule load", "submission-in-job", "sbatch", "launcher"),
    Mutant("a script that fails", "per device", "module load", "set -e\nfalse\nmodule load", "script", "code 1", "program"),
    Mutant("half a script", "per device", "cat > rank.sh", "if true; then\ncat > rank.sh", "script", "unexpected end", "program"),
    Mutant("node-local script", "open mpi", "./run.sh", "/tmp/run.sh", "script", "127", "launcher program process-count node-count rank"
           " world-size"),
    Mutant("hostfile without slots", "deepspeed", "sed 's/$/ slots=4/'", "cat", "launcher", "Hostfile", "program script"),
]  # fmt: skip


def test_the_mutants_are_many_and_named_once() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({mutant.kind for mutant in MUTANTS}) >= 20
    assert all(ARGS in script for script, _ in GOOD.values())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_broken_script_fails_for_its_own_fault(sandbox: Sandbox, mutant: Mutant) -> None:
    script, case = GOOD[mutant.base]
    assert mutant.old in script
    broken = script.replace(mutant.old, mutant.new)
    if mutant.name == "rank expanded in the batch shell":
        broken = broken.replace('"$@"', '"\\$@"')
    if mutant.name == "node-local script":
        broken = broken.replace("cat > run.sh", "cat > /tmp/run.sh").replace("chmod +x run.sh", "chmod +x /tmp/run.sh")
    verdict = judge(broken, case, sandbox)
    said = [fault.message for fault in verdict.faults if fault.kind == mutant.kind]
    assert said, verdict
    assert any(mutant.words in words for words in said), said
    assert verdict.kinds <= {mutant.kind, *mutant.allowed.split()}, verdict
