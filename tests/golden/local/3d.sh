#!/bin/bash

# gpt 3d on 1 node x 2 at This machine
# Written by Maple 0.1.0.
# shellcheck disable=SC2317,SC2329 # functions called from traps
# shellcheck disable=SC1090,SC1091,SC2016 # files of the site; what is in single quotes is meant so

# --- This run
MAPLE_JOB_ID="${MAPLE_LOCAL_ID:-local-$$}"
MAPLE_RUN_ID="$MAPLE_JOB_ID"
MAPLE_RUN_DIR="${MAPLE_RUN_DIR:-$PWD/maple-runs/$MAPLE_JOB_ID}"
MAPLE_WORK_DIR="$PWD"
MAPLE_HOSTS="$(uname -n)"
MAPLE_REQUEUE=0 MAPLE_LEAD=0 MAPLE_TIMER=0 MAPLE_FORWARD_USR1=1
export MAPLE_JOB_ID MAPLE_RUN_ID MAPLE_RUN_DIR MAPLE_WORK_DIR

# --- Bookkeeping: who owns this run, how it ended, signals
<batch.sh>

<local.sh>

maple_claim
cd "$MAPLE_WORK_DIR" || maple_stop 66 setup "no folder $MAPLE_WORK_DIR"

# --- Environment
unset RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT
# device type
export MAPLE_DEVICE=cpu
# collective backend
export MAPLE_BACKEND=gloo

# --- Rendezvous: where rank 0 listens, the same on every node
MASTER_ADDR=127.0.0.1
[ -n "$MASTER_ADDR" ] || maple_stop 65 allocation "the first node of this job cannot be told"
maple_port
export MASTER_ADDR MASTER_PORT

# --- What each started process runs
export MAPLE_MINIAPP="$MAPLE_RUN_DIR/miniapps/train.py"
export MAPLE_TASKS=1 MAPLE_LOCAL_SIZE=1 MAPLE_ONE_DEVICE=0 MAPLE_POLL_LIMIT=0
export MAPLE_RANK_VARS="MAPLE_LOCAL_INDEX" MAPLE_LOCAL_VARS=""
export MAPLE_SIZE_VARS="" MAPLE_NODE_VARS=""
export MAPLE_VISIBLE_NAME="" MAPLE_VISIBLE_DEVICES=""
maple_put "$MAPLE_RUN_DIR/bin/task.sh" <<'MAPLE_END_OF_TASK'
<task.sh>
MAPLE_END_OF_TASK
maple_put "$MAPLE_RUN_DIR/bin/start.sh" <<'MAPLE_END_OF_START'
exec python3 -m torch.distributed.run --nnodes=1 --nproc-per-node=2 --node-rank="$NODE_RANK" \
  --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" --no-python sh "$MAPLE_TASK" worker \
  python3 -u "$MAPLE_MINIAPP" --model gpt --paradigm 3d --dp 1 --pp 1 --tp 2
MAPLE_END_OF_START

# --- Launch
export MAPLE_TASK="$MAPLE_RUN_DIR/bin/task.sh"
maple_launch maple_local 1 \
  sh "$MAPLE_TASK" node sh "$MAPLE_RUN_DIR"/bin/start.sh
maple_finish
