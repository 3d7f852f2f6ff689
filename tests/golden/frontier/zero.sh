#!/bin/bash
#SBATCH --job-name=maple
#SBATCH --output=maple-%j.log
#SBATCH --open-mode=append
#SBATCH --account=demo
#SBATCH --partition=batch
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=7
#SBATCH --signal=B:USR1@180
#SBATCH --no-requeue
#SBATCH --network=disable_rdzv_get

# gpt zero on 2 nodes x 8 at OLCF Frontier
# At most 00:30:00 x 2 = 1.00 node-hours.
# Written by Maple 0.1.0.
# shellcheck disable=SC2317,SC2329 # functions called from traps
# shellcheck disable=SC1090,SC1091,SC2016 # files of the site; what is in single quotes is meant so

# --- This run
MAPLE_JOB_ID="${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}"
MAPLE_JOB_ID=${MAPLE_JOB_ID:-${SLURM_JOB_ID-}}
[ -n "$MAPLE_JOB_ID" ] || { echo "maple: not inside a job; submit this with sbatch" >&2; exit 64; }
MAPLE_RUN_ID="$MAPLE_JOB_ID"
MAPLE_RUN_DIR="${MAPLE_RUN_DIR:-${SLURM_SUBMIT_DIR:-$PWD}/maple-runs/$MAPLE_JOB_ID}"
MAPLE_WORK_DIR="${SLURM_SUBMIT_DIR:-$PWD}"
MAPLE_HOSTS="${SLURM_JOB_NODELIST-}"
MAPLE_REQUEUE=0 MAPLE_LEAD=180 MAPLE_TIMER=0 MAPLE_FORWARD_USR1=1
export MAPLE_JOB_ID MAPLE_RUN_ID MAPLE_RUN_DIR MAPLE_WORK_DIR

# --- Bookkeeping: who owns this run, how it ended, signals
<batch.sh>

maple_claim
cd "$MAPLE_WORK_DIR" || maple_stop 66 setup "no folder $MAPLE_WORK_DIR"

# --- Environment
unset RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT
command -v module >/dev/null 2>&1 || . /etc/profile
maple_check $? 'command -v module >/dev/null 2>&1 || . /etc/profile'
module load PrgEnv-gnu/8.7.0
maple_check $? 'module load PrgEnv-gnu/8.7.0'
module load cpe/26.03
maple_check $? 'module load cpe/26.03'
module load miniforge3/23.11.0-0
maple_check $? 'module load miniforge3/23.11.0-0'
module load rocm/7.1.1
maple_check $? 'module load rocm/7.1.1'
module load rccl-net-plugin
maple_check $? 'module load rccl-net-plugin'
module load craype-accel-amd-gfx90a
maple_check $? 'module load craype-accel-amd-gfx90a'
export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH
maple_check $? 'export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH:$LD_LIBRARY_PATH'
export MIOPEN_USER_DB_PATH=/tmp/$USER-miopen-$SLURM_JOB_ID
maple_check $? 'export MIOPEN_USER_DB_PATH=/tmp/$USER-miopen-$SLURM_JOB_ID'
export MIOPEN_CUSTOM_CACHE_DIR=$MIOPEN_USER_DB_PATH
maple_check $? 'export MIOPEN_CUSTOM_CACHE_DIR=$MIOPEN_USER_DB_PATH'
set +eu # a set-up line may have asked for it
# compute nodes have no other way out
export all_proxy=socks://proxy.ccs.ornl.gov:3128/
export ftp_proxy=ftp://proxy.ccs.ornl.gov:3128/
export http_proxy=http://proxy.ccs.ornl.gov:3128/
export https_proxy=http://proxy.ccs.ornl.gov:3128/
export no_proxy='localhost,127.0.0.0/8,*.ccs.ornl.gov'
# network of jobs on several nodes
export NCCL_CROSS_NIC=1
export NCCL_NET_GDR_LEVEL=PHB
export HSA_FORCE_FINE_GRAIN_PCIE=1
export FI_MR_CACHE_MONITOR=kdreg2
export FI_CXI_DISABLE_HOST_REGISTER=1
export FI_CXI_DEFAULT_CQ_SIZE=131072
export FI_CXI_DEFAULT_TX_SIZE=2048
export FI_CXI_RX_MATCH_MODE=hybrid
export FI_CXI_RDZV_PROTO=alt_read
export FI_CXI_RDZV_EAGER_SIZE=0
export FI_CXI_RDZV_THRESHOLD=0
export FI_CXI_RDZV_GET_MIN=0
# the network between nodes
export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3
export GLOO_SOCKET_IFNAME=hsn0
# device type
export MAPLE_DEVICE=cuda
# collective backend
export MAPLE_BACKEND=nccl
# one thread pool per process, not one per core of the node for each
export OMP_NUM_THREADS=7

# --- Rendezvous: where rank 0 listens, the same on every node
MAPLE_GRANTED=${SLURM_JOB_NUM_NODES:-0}
[ "$MAPLE_GRANTED" -eq 2 ] || maple_stop 65 allocation "this launch needs 2 nodes and has $MAPLE_GRANTED"
MASTER_ADDR=$(hostname -i | awk '{print $1}')
[ -n "$MASTER_ADDR" ] || maple_stop 65 allocation "the first node of this job cannot be told"
maple_port
export MASTER_ADDR MASTER_PORT

# --- What each started process runs
export MAPLE_MINIAPP="$MAPLE_RUN_DIR/miniapps/train.py"
export MAPLE_TASKS=16 MAPLE_LOCAL_SIZE=8 MAPLE_ONE_DEVICE=1 MAPLE_POLL_LIMIT=0
export MAPLE_RANK_VARS="SLURM_PROCID" MAPLE_LOCAL_VARS="SLURM_LOCALID"
export MAPLE_SIZE_VARS="SLURM_NTASKS" MAPLE_NODE_VARS="SLURM_NODEID"
export MAPLE_VISIBLE_NAME="" MAPLE_VISIBLE_DEVICES=""
maple_put "$MAPLE_RUN_DIR/bin/task.sh" <<'MAPLE_END_OF_TASK'
<task.sh>
MAPLE_END_OF_TASK
maple_put "$MAPLE_RUN_DIR/bin/preflight.py" <<'MAPLE_END_OF_PREFLIGHT'
<preflight.py>
MAPLE_END_OF_PREFLIGHT

# --- Launch
export MAPLE_TASK="$MAPLE_RUN_DIR/bin/task.sh"
maple_preflight stop 60 srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 \
  --kill-on-bad-exit=1 --gpus-per-task=1 --gpu-bind=closest \
  sh "$MAPLE_TASK" device python3 -u "$MAPLE_RUN_DIR"/bin/preflight.py --nodes 2 --per-node 8 \
    --paradigm zero --seconds 60 --cores 1-7,65-71/9-15,73-79/17-23,81-87/25-31,89-95/33-39,97-103/41-47,105-111/49-55,113-119/57-63,121-127
maple_launch srun --nodes=2 --ntasks=16 --ntasks-per-node=8 --cpus-per-task=7 \
  --kill-on-bad-exit=1 --gpus-per-task=1 --gpu-bind=closest \
  sh "$MAPLE_TASK" device python3 -u "$MAPLE_MINIAPP" --model gpt --paradigm zero --zero-stage 1
maple_finish
