#!/bin/bash
#PBS -N maple
#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4
#PBS -A demo
#PBS -q main
#PBS -l walltime=00:30:00
#PBS -r n
#PBS -j oe

# gpt 3d on 2 nodes x 4 at NCAR Derecho (GPU nodes)
# At most 00:30:00 x 2 = 1.00 node-hours.
# Written by Maple 0.1.0.
# shellcheck disable=SC2317,SC2329 # functions called from traps
# shellcheck disable=SC1090,SC1091,SC2016 # files of the site; what is in single quotes is meant so

# --- This run
MAPLE_JOB_ID="${PBS_JOBID-}"
[ -n "$MAPLE_JOB_ID" ] || { echo "maple: not inside a job; submit this with qsub" >&2; exit 64; }
MAPLE_RUN_ID="$MAPLE_JOB_ID"
MAPLE_RUN_DIR="${MAPLE_RUN_DIR:-${PBS_O_WORKDIR:-$PWD}/maple-runs/$MAPLE_JOB_ID}"
MAPLE_WORK_DIR="${PBS_O_WORKDIR:-$PWD}"
MAPLE_HOSTS="$(awk '!seen[$1]++ { printf "%s%s", (n++ ? "," : ""), $1 }' "$PBS_NODEFILE")"
MAPLE_REQUEUE=0 MAPLE_LEAD=180 MAPLE_TIMER=1620 MAPLE_FORWARD_USR1=1
export MAPLE_JOB_ID MAPLE_RUN_ID MAPLE_RUN_DIR MAPLE_WORK_DIR

# --- Bookkeeping: who owns this run, how it ended, signals
<batch.sh>

maple_claim
cd "$MAPLE_WORK_DIR" || maple_stop 66 setup "no folder $MAPLE_WORK_DIR"
exec >>"$MAPLE_RUN_DIR/log.txt" 2>&1 # PBS would hold the log back until the end

# --- Environment
unset RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT
command -v module >/dev/null 2>&1 || . /etc/profile
maple_check $? 'command -v module >/dev/null 2>&1 || . /etc/profile'
module load ncarenv/24.12 gcc/12.4.0 ncarcompilers craype cray-mpich/8.1.29 cuda/12.3.2 conda/latest cudnn/9.2.0.82-12 mkl/2025.0.1
maple_check $? 'module load ncarenv/24.12 gcc/12.4.0 ncarcompilers craype cray-mpich/8.1.29 cuda/12.3.2 conda/latest cudnn/9.2.0.82-12 mkl/2025.0.1'
set +eu # a set-up line may have asked for it
# network of jobs on several nodes
export NCCL_IB_DISABLE=1
export NCCL_CROSS_NIC=1
export NCCL_NCHANNELS_PER_NET_PEER=4
export NCCL_SHM_DISABLE=1
export FI_CXI_DISABLE_HOST_REGISTER=1
export FI_CXI_DEFAULT_CQ_SIZE=131072
export FI_MR_CACHE_MONITOR=userfaultfd
export MPICH_GPU_SUPPORT_ENABLED=1
export MPICH_OFI_NIC_POLICY=GPU
# the network between nodes
export NCCL_SOCKET_IFNAME=hsn
# device type
export MAPLE_DEVICE=cuda
# collective backend
export MAPLE_BACKEND=nccl
# one thread pool per process, not one per core of the node for each
export OMP_NUM_THREADS=16

# --- Rendezvous: where rank 0 listens, the same on every node
MAPLE_GRANTED=$(sort -u "$PBS_NODEFILE" | wc -l)
[ "$MAPLE_GRANTED" -eq 2 ] || maple_stop 65 allocation "this launch needs 2 nodes and has $MAPLE_GRANTED"
MASTER_ADDR=$(hostname -i | awk '{print $1}')
[ -n "$MASTER_ADDR" ] || maple_stop 65 allocation "the first node of this job cannot be told"
maple_port
export MASTER_ADDR MASTER_PORT

# --- What each started process runs
export MAPLE_MINIAPP="$MAPLE_RUN_DIR/miniapps/train.py"
export MAPLE_TASKS=8 MAPLE_LOCAL_SIZE=4 MAPLE_ONE_DEVICE=0 MAPLE_POLL_LIMIT=0
export MAPLE_RANK_VARS="PMI_RANK PALS_RANKID" MAPLE_LOCAL_VARS="PMI_LOCAL_RANK PALS_LOCAL_RANKID"
export MAPLE_SIZE_VARS="PMI_SIZE" MAPLE_NODE_VARS=""
export MAPLE_VISIBLE_NAME="" MAPLE_VISIBLE_DEVICES=""
maple_put "$MAPLE_RUN_DIR/bin/task.sh" <<'MAPLE_END_OF_TASK'
<task.sh>
MAPLE_END_OF_TASK
maple_put "$MAPLE_RUN_DIR/bin/preflight.py" <<'MAPLE_END_OF_PREFLIGHT'
<preflight.py>
MAPLE_END_OF_PREFLIGHT

# --- Launch
export MAPLE_TASK="$MAPLE_RUN_DIR/bin/task.sh"
maple_preflight stop 60 mpiexec -n 8 --ppn 4 --cpu-bind none \
  sh "$MAPLE_TASK" device python3 -u "$MAPLE_RUN_DIR"/bin/preflight.py --nodes 2 --per-node 4 \
    --paradigm 3d --seconds 60
maple_launch mpiexec -n 8 --ppn 4 --cpu-bind none \
  sh "$MAPLE_TASK" device python3 -u "$MAPLE_MINIAPP" --model gpt --paradigm 3d --dp 2 --pp 2 --tp 2
maple_finish
