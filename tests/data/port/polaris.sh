#!/bin/bash -l
#PBS -N resnet-train
#PBS -l select=4:system=polaris
#PBS -l place=scatter
#PBS -l walltime=02:00:00
#PBS -l filesystems=home:eagle
#PBS -q prod
#PBS -A MyProject
#PBS -m ae

cd $PBS_O_WORKDIR
module use /soft/modulefiles
module load conda
conda activate base

export http_proxy=http://proxy.alcf.anl.gov:3128
export https_proxy=http://proxy.alcf.anl.gov:3128
export NCCL_NET_GDR_LEVEL=PHB
export NCCL_SOCKET_IFNAME=hsn0
export NCCL_DEBUG=WARN

# Where the images are
DATA=/eagle/MyProject/imagenet
export WANDB_MODE=offline
OUT=$HOME/runs/$PBS_JOBID
mkdir -p "$OUT"

NNODES=$(wc -l < $PBS_NODEFILE)
NRANKS_PER_NODE=4
NTOTRANKS=$(( NNODES * NRANKS_PER_NODE ))
export MASTER_ADDR=$(head -n 1 $PBS_NODEFILE)
export MASTER_PORT=29512
echo "nodes $NNODES ranks $NTOTRANKS"

mpiexec -n $NTOTRANKS --ppn $NRANKS_PER_NODE --depth=8 --cpu-bind depth ./set_affinity_gpu_polaris.sh \
    python train.py --data "$DATA" --out "$OUT" --lr 3e-4 --world $NTOTRANKS --tag 'a b' \
    --epochs 90

cp "$OUT/best.pt" .
