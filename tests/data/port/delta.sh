#!/bin/bash
#SBATCH --job-name=llm
#SBATCH --account=abcd-delta-gpu
#SBATCH --partition=gpuA100x4
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=64
#SBATCH --mem=0
#SBATCH --time=04:00:00

source ~/envs/llm/bin/activate
export TOKENIZERS_PARALLELISM=false
STEPS=1000
EXTRA=(--warmup 100 --name "run one")
head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --cpus-per-task=64 torchrun --nnodes=$SLURM_NNODES --nproc-per-node=4 --rdzv-id=$SLURM_JOB_ID --rdzv-backend=c10d \
  --rdzv-endpoint=$head_node:29500 pretrain.py --steps $STEPS "${EXTRA[@]}" --nodes $SLURM_NNODES
