#!/bin/bash
#SBATCH --job-name=maple
#SBATCH --output=maple-%j.log
#SBATCH --open-mode=append
#SBATCH --account=demo
#SBATCH --partition=GPU
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=40
#SBATCH --gpus=v100-32:16
#SBATCH --signal=B:USR1@180
#SBATCH --no-requeue

# gpt pp on 2 nodes x 8 at PSC Bridges-2 (GPU nodes)
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
module load anaconda3
maple_check $? 'module load anaconda3'
set +eu # a set-up line may have asked for it
# device type
export MAPLE_DEVICE=cuda
# collective backend
export MAPLE_BACKEND=nccl
# one thread pool per process, not one per core of the node for each
export OMP_NUM_THREADS=5

# --- Rendezvous: where rank 0 listens, the same on every node
MAPLE_GRANTED=${SLURM_JOB_NUM_NODES:-0}
[ "$MAPLE_GRANTED" -eq 2 ] || maple_stop 65 allocation "this launch needs 2 nodes and has $MAPLE_GRANTED"
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
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
  python3 -u "$MAPLE_RUN_DIR"/bin/preflight.py --nodes 2 --per-node 8 --paradigm pp --seconds 60
MAPLE_END_OF_START
maple_put "$MAPLE_RUN_DIR/bin/start.sh" <<'MAPLE_END_OF_START'
exec python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=8 --node-rank="$NODE_RANK" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" --no-python sh "$MAPLE_TASK" worker \
  python3 -u "$MAPLE_MINIAPP" --model gpt --paradigm pp
MAPLE_END_OF_START

# --- Launch
export MAPLE_TASK="$MAPLE_RUN_DIR/bin/task.sh"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}" PYTHONPATH="${PYTHONPATH-}" # -x complains of unset ones
maple_preflight stop 60 mpirun -np 2 --map-by ppr:1:node --bind-to none -x PATH -x LD_LIBRARY_PATH \
  -x PYTHONPATH -x MAPLE_MINIAPP -x MASTER_ADDR -x MASTER_PORT -x MAPLE_RUN_ID -x MAPLE_RUN_DIR \
  -x MAPLE_JOB_ID -x MAPLE_ATTEMPT -x MAPLE_ATTEMPT_DIR -x MAPLE_RESUME -x MAPLE_TASK -x MAPLE_TASKS \
  -x MAPLE_LOCAL_SIZE -x MAPLE_RANK_VARS -x MAPLE_LOCAL_VARS -x MAPLE_SIZE_VARS -x MAPLE_NODE_VARS \
  -x MAPLE_ONE_DEVICE -x MAPLE_VISIBLE_NAME -x MAPLE_VISIBLE_DEVICES -x MAPLE_POLL_LIMIT -x MAPLE_DEVICE \
  -x MAPLE_BACKEND -x OMP_NUM_THREADS \
  sh "$MAPLE_TASK" node sh "$MAPLE_RUN_DIR"/bin/preflight.sh
maple_launch mpirun -np 2 --map-by ppr:1:node --bind-to none -x PATH -x LD_LIBRARY_PATH -x PYTHONPATH \
  -x MAPLE_MINIAPP -x MASTER_ADDR -x MASTER_PORT -x MAPLE_RUN_ID -x MAPLE_RUN_DIR -x MAPLE_JOB_ID \
  -x MAPLE_ATTEMPT -x MAPLE_ATTEMPT_DIR -x MAPLE_RESUME -x MAPLE_TASK -x MAPLE_TASKS -x MAPLE_LOCAL_SIZE \
  -x MAPLE_RANK_VARS -x MAPLE_LOCAL_VARS -x MAPLE_SIZE_VARS -x MAPLE_NODE_VARS -x MAPLE_ONE_DEVICE \
  -x MAPLE_VISIBLE_NAME -x MAPLE_VISIBLE_DEVICES -x MAPLE_POLL_LIMIT -x MAPLE_DEVICE -x MAPLE_BACKEND \
  -x OMP_NUM_THREADS \
  sh "$MAPLE_TASK" node sh "$MAPLE_RUN_DIR"/bin/start.sh
maple_finish
