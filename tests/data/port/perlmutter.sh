#!/bin/bash
#SBATCH -A m0000_g
#SBATCH -C gpu
#SBATCH -q regular
#SBATCH -t 01:30:00
#SBATCH -N 2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH -c 32
#SBATCH --mail-type=END

set -euo pipefail
module load pytorch/2.6.0
export HF_HOME=$SCRATCH/hf
export FI_MR_CACHE_MONITOR=userfaultfd
export SLURM_CPU_BIND="cores"
export OMP_NUM_THREADS=16
LR=0.1
ARGS=(--lr "$LR" --batch 64)

export MASTER_ADDR=$(hostname)
export MASTER_PORT=29507
srun -u bash -c '
  export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
  python -u main.py --config cfg/base.yaml --epochs 3
'
