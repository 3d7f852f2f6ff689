#!/bin/bash -l
#PBS -N maple
#PBS -l select=2
#PBS -A demo
#PBS -q by-node
#PBS -l walltime=00:30:00
#PBS -r n
#PBS -j oe
#PBS -l filesystems=home:eagle
#PBS -l place=scatter

# gpt tp on 2 nodes x 8 at ALCF Sophia
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
module use /soft/modulefiles
maple_check $? 'module use /soft/modulefiles'
module load conda
maple_check $? 'module load conda'
eval "$(conda shell.bash hook)"
maple_check $? 'eval "$(conda shell.bash hook)"'
conda activate base
maple_check $? 'conda activate base'
set +eu # a set-up line may have asked for it
# compute nodes have no other way out
export HTTP_PROXY=http://proxy.alcf.anl.gov:3128
export HTTPS_PROXY=http://proxy.alcf.anl.gov:3128
export http_proxy=http://proxy.alcf.anl.gov:3128
export https_proxy=http://proxy.alcf.anl.gov:3128
export ftp_proxy=http://proxy.alcf.anl.gov:3128
# device type
export MAPLE_DEVICE=cuda
# collective backend
export MAPLE_BACKEND=nccl
# one thread pool per process, not one per core of the node for each
export OMP_NUM_THREADS=16

# --- Rendezvous: where rank 0 listens, the same on every node
MAPLE_GRANTED=$(sort -u "$PBS_NODEFILE" | wc -l)
[ "$MAPLE_GRANTED" -eq 2 ] || maple_stop 65 allocation "this launch needs 2 nodes and has $MAPLE_GRANTED"
MASTER_ADDR=$(head -n 1 "$PBS_NODEFILE")
[ -n "$MASTER_ADDR" ] || maple_stop 65 allocation "the first node of this job cannot be told"
maple_port
export MASTER_ADDR MASTER_PORT

# --- What each started process runs
export MAPLE_MINIAPP="$MAPLE_RUN_DIR/miniapps/train.py"
export MAPLE_TASKS=2 MAPLE_LOCAL_SIZE=1 MAPLE_ONE_DEVICE=0 MAPLE_POLL_LIMIT=0
export MAPLE_RANK_VARS="OMPI_COMM_WORLD_RANK" MAPLE_LOCAL_VARS=""
export MAPLE_SIZE_VARS="OMPI_COMM_WORLD_SIZE" MAPLE_NODE_VARS=""
export MAPLE_VISIBLE_NAME="" MAPLE_VISIBLE_DEVICES=""
maple_put "$MAPLE_RUN_DIR/bin/task.sh" <<'MAPLE_END_OF_TASK'
<task.sh>
MAPLE_END_OF_TASK
maple_put "$MAPLE_RUN_DIR/bin/preflight.py" <<'MAPLE_END_OF_PREFLIGHT'
<preflight.py>
MAPLE_END_OF_PREFLIGHT
maple_put "$MAPLE_RUN_DIR/bin/preflight.sh" <<'MAPLE_END_OF_START'
exec python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=8 --node-rank="$NODE_RANK" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" --no-python sh "$MAPLE_TASK" worker \
  python3 -u "$MAPLE_RUN_DIR"/bin/preflight.py --nodes 2 --per-node 8 --paradigm tp --seconds 60
MAPLE_END_OF_START
maple_put "$MAPLE_RUN_DIR/bin/start.sh" <<'MAPLE_END_OF_START'
exec python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=8 --node-rank="$NODE_RANK" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" --no-python sh "$MAPLE_TASK" worker \
  python3 -u "$MAPLE_MINIAPP" --model gpt --paradigm tp
MAPLE_END_OF_START

# --- Launch
export MAPLE_TASK="$MAPLE_RUN_DIR/bin/task.sh"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}" PYTHONPATH="${PYTHONPATH-}" # -x complains of unset ones
maple_preflight stop 60 mpirun -np 2 --map-by ppr:1:node --bind-to none --hostfile "$PBS_NODEFILE" \
  -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x MAPLE_MINIAPP -x MASTER_ADDR -x MASTER_PORT -x MAPLE_RUN_ID \
  -x MAPLE_RUN_DIR -x MAPLE_JOB_ID -x MAPLE_ATTEMPT -x MAPLE_ATTEMPT_DIR -x MAPLE_RESUME -x MAPLE_TASK \
  -x MAPLE_TASKS -x MAPLE_LOCAL_SIZE -x MAPLE_RANK_VARS -x MAPLE_LOCAL_VARS -x MAPLE_SIZE_VARS \
  -x MAPLE_NODE_VARS -x MAPLE_ONE_DEVICE -x MAPLE_VISIBLE_NAME -x MAPLE_VISIBLE_DEVICES -x MAPLE_POLL_LIMIT \
  -x HTTP_PROXY -x HTTPS_PROXY -x http_proxy -x https_proxy -x ftp_proxy -x MAPLE_DEVICE -x MAPLE_BACKEND \
  -x OMP_NUM_THREADS \
  sh "$MAPLE_TASK" node sh "$MAPLE_RUN_DIR"/bin/preflight.sh
maple_launch mpirun -np 2 --map-by ppr:1:node --bind-to none --hostfile "$PBS_NODEFILE" -x PATH \
  -x LD_LIBRARY_PATH -x PYTHONPATH -x MAPLE_MINIAPP -x MASTER_ADDR -x MASTER_PORT -x MAPLE_RUN_ID \
  -x MAPLE_RUN_DIR -x MAPLE_JOB_ID -x MAPLE_ATTEMPT -x MAPLE_ATTEMPT_DIR -x MAPLE_RESUME -x MAPLE_TASK \
  -x MAPLE_TASKS -x MAPLE_LOCAL_SIZE -x MAPLE_RANK_VARS -x MAPLE_LOCAL_VARS -x MAPLE_SIZE_VARS \
  -x MAPLE_NODE_VARS -x MAPLE_ONE_DEVICE -x MAPLE_VISIBLE_NAME -x MAPLE_VISIBLE_DEVICES -x MAPLE_POLL_LIMIT \
  -x HTTP_PROXY -x HTTPS_PROXY -x http_proxy -x https_proxy -x ftp_proxy -x MAPLE_DEVICE -x MAPLE_BACKEND \
  -x OMP_NUM_THREADS \
  sh "$MAPLE_TASK" node sh "$MAPLE_RUN_DIR"/bin/start.sh
maple_finish
