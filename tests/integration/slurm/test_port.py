"""A script of a PBS site, carried over, trains on two nodes under a real Slurm."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from tests.integration.slurm.login import Login
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.torch, pytest.mark.timeout(200)]

OLD = """#!/bin/bash -l
#PBS -N small
#PBS -l select=2:system=polaris
#PBS -l place=scatter
#PBS -l walltime=00:05:00
#PBS -l filesystems=home:eagle
#PBS -q debug
#PBS -A demo
cd $PBS_O_WORKDIR
module use /soft/modulefiles
module load conda; conda activate base
export NCCL_SOCKET_IFNAME=hsn0
NNODES=$(sort -u $PBS_NODEFILE | wc -l)
STEPS=8
export GREETING="good day"
export MASTER_ADDR=$(head -n 1 $PBS_NODEFILE)
mpiexec -n $((NNODES * 4)) --ppn 4 --cpu-bind depth -d 8 python train.py --steps $STEPS --nodes $NNODES --out 'a b.json'
"""
PROGRAM = """
import argparse, json, os, torch, torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int), parser.add_argument("--nodes", type=int), parser.add_argument("--out")
given = parser.parse_args()
dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
best = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())
x = torch.randn(64, 4)
losses = []
for _ in range(given.steps):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    best.zero_grad(), loss.backward(), best.step()
    losses.append(loss.item())
hosts = [None] * dist.get_world_size()
dist.all_gather_object(hosts, os.uname().nodename)
if dist.get_rank() == 0:
    said = {"losses": losses, "hosts": hosts, "nodes": given.nodes, "greeting": os.environ["GREETING"]}
    open(given.out, "w").write(json.dumps(said))
dist.destroy_process_group()
"""


def test_a_polaris_script_trains_on_slurm(slurm: Testbed, tmp_path: Path) -> None:
    login = Login(slurm, tmp_path / "home")
    (login.work / "polaris.sh").write_text(OLD)
    (login.work / "train.py").write_text(PROGRAM)
    made = login.maple(
        "port", "polaris.sh", "--from", "polaris", "--to", "slurm-stand", "--queue", "gpu", "--gpus-per-node", "1",
        "--python", sys.executable, "--out", "job.sh",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    sent = login.bed.run(["sbatch", "job.sh"], cwd=login.work, env=login.env)
    job = re.search(r"(\d+)\s*$", sent.stdout)
    assert job, sent.stdout
    result = login.work / "a b.json"
    deadline = time.monotonic() + 120
    while not result.exists() or not result.read_text():
        logs = "".join(file.read_text() for file in login.work.glob("maple-*.log"))
        assert time.monotonic() < deadline, logs[-3000:]
        assert "maple: failed" not in logs, logs[-3000:]
        time.sleep(0.5)
    said = json.loads(result.read_text())
    assert sorted(said["hosts"]) == ["node1", "node2"]
    assert said["losses"][-1] < 0.9 * said["losses"][0]
    assert (said["nodes"], said["greeting"]) == (2, "good day")
    login.bed.wait_job(int(job[1]), "COMPLETED", timeout=60)
