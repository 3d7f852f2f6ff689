"""Scripts written by hand as the sites' guides show them, each with the case it answers."""

from __future__ import annotations

from maple_parsl.judge.case import Case, Program

TRAIN = Program(script="train.py", args=("--epochs", "3", "--name", "two words", "--glob", "*.csv", "--cost", "$5"))
ARGS = """--epochs 3 --name "two words" --glob '*.csv' --cost '$5'"""
BATCH = """#!/bin/bash
#SBATCH -A {account}
#SBATCH {queue}
#SBATCH -t 00:30:00
#SBATCH -N 2
#SBATCH --ntasks-per-node={tasks}
"""
HEAD = """
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29517
"""

PERLMUTTER = Case(
    site="perlmutter", nodes=2, devices_per_node=4, minutes=30, account="m1234", queue="regular", program=TRAIN
)
PER_DEVICE = (
    BATCH.format(account="m1234", queue="-q regular", tasks=4)
    + f"""#SBATCH -C gpu
#SBATCH -c 32
#SBATCH --gpus-per-node=4

module load pytorch
export SLURM_CPU_BIND=cores
{HEAD}
export WORLD_SIZE=$SLURM_NNODES
cat > rank.sh <<'EOF'
#!/bin/bash
export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS CUDA_VISIBLE_DEVICES=3,2,1,0
exec "$@"
EOF
chmod +x rank.sh
srun -u -c 32 --cpu-bind=cores ./rank.sh python -u train.py {ARGS}
"""
)
ELASTIC = (
    BATCH.format(account="m1234", queue="-q regular", tasks=1)
    + f"""#SBATCH -C gpu
#SBATCH --cpus-per-task=128
#SBATCH --gpus-per-node=4

module load pytorch
{HEAD}
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
srun torchrun --nnodes=$SLURM_JOB_NUM_NODES --nproc-per-node=4 --rdzv-id=$SLURM_JOB_ID \\
  --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT" train.py {ARGS}
"""
)

POLARIS = Case(site="polaris", nodes=2, devices_per_node=4, minutes=30, account="abc", queue="debug", program=TRAIN)
PALS = f"""#!/bin/bash -l
#PBS -A abc
#PBS -q debug
#PBS -l select=2:system=polaris
#PBS -l walltime=0:30:00
#PBS -l filesystems=home:eagle
#PBS -l place=scatter

cd $PBS_O_WORKDIR
module use /soft/modulefiles
module load conda
conda activate base
export http_proxy=http://proxy.alcf.anl.gov:3128 https_proxy=http://proxy.alcf.anl.gov:3128
NODES=$(wc -l < $PBS_NODEFILE)
export MASTER_ADDR=$(hostname -i) MASTER_PORT=29517
mpiexec -n $((NODES * 4)) --ppn 4 --depth=8 --cpu-bind depth bash -c '
  export RANK=$PMI_RANK LOCAL_RANK=$PMI_LOCAL_RANK WORLD_SIZE=$PMI_SIZE
  export CUDA_VISIBLE_DEVICES=3,2,1,0
  exec python train.py "$@"' _ {ARGS}
"""

VISTA = Case(site="vista", nodes=2, devices_per_node=1, minutes=30, queue="gh", program=TRAIN)
OPENMPI = (
    BATCH.format(account="abc", queue="-p gh", tasks=1)
    + f"""
module load gcc cuda python3
cat > run.sh <<'EOF'
#!/bin/bash
head=$1 nodes=$2
shift 2
torchrun --nproc_per_node=1 --nnodes=$nodes --node_rank=$OMPI_COMM_WORLD_RANK --master_addr=$head \\
  --master_port=29517 train.py "$@"
EOF
chmod +x run.sh
mpirun -np 2 --map-by ppr:1:node ./run.sh $(hostname) 2 {ARGS}
"""
)

LONESTAR = Case(site="lonestar6", nodes=2, devices_per_node=3, minutes=30, queue="gpu-a100", program=TRAIN)
IBRUN = (
    BATCH.format(account="abc", queue="-p gpu-a100", tasks=1)
    + f"""
module load python3/3.9.7
cat > run.sh <<'EOF'
#!/bin/bash
head=$1 nodes=$2
shift 2
torchrun --nproc_per_node=3 --nnodes=$nodes --node_rank=$PMI_RANK --master_addr=$head --master_port=29517 \\
  train.py "$@"
EOF
chmod +x run.sh
ibrun -np 2 ./run.sh $(hostname) 2 {ARGS}
"""
)

DELTA = Case(
    site="delta", nodes=2, devices_per_node=4, minutes=30, account="demo-delta-gpu", queue="gpuA100x4", program=TRAIN
)
ACCELERATE = (
    BATCH.format(account="demo-delta-gpu", queue="-p gpuA100x4", tasks=1)
    + f"""#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --gpus-per-node=4

module load anaconda3_gpu
export NCCL_SOCKET_IFNAME=hsn
{HEAD}
srun --ntasks-per-node=1 --cpus-per-task=64 bash -c 'accelerate launch --num_processes 8 --num_machines 2 \\
  --machine_rank $SLURM_PROCID --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT \\
  train.py "$@"' _ {ARGS}
"""
)
DEEPSPEED = (
    BATCH.format(account="demo-delta-gpu", queue="-p gpuA100x4", tasks=1)
    + f"""#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --gpus-per-node=4

module load anaconda3_gpu
export NCCL_SOCKET_IFNAME=hsn
{HEAD}
scontrol show hostnames "$SLURM_JOB_NODELIST" | sed 's/$/ slots=4/' > hostfile
deepspeed --hostfile hostfile --master_addr $MASTER_ADDR --master_port $MASTER_PORT train.py {ARGS}
"""
)

GOOD: dict[str, tuple[str, Case]] = {
    "per device": (PER_DEVICE, PERLMUTTER),
    "elastic": (ELASTIC, PERLMUTTER),
    "pals": (PALS, POLARIS),
    "open mpi": (OPENMPI, VISTA),
    "ibrun": (IBRUN, LONESTAR),
    "accelerate": (ACCELERATE, DELTA),
    "deepspeed": (DEEPSPEED, DELTA),
}
