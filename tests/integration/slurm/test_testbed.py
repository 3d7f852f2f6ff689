"""The live testbed behaves as a cluster does: jobs, isolation of nodes, refusals, faults."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Literal

import pytest

from tests.testbeds.slurm import Testbed, TestbedError

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

SLEEP = "#!/bin/bash\nsleep 300\n"


def test_two_nodes_have_names_and_addresses_of_their_own(slurm: Testbed, tmp_path: Path) -> None:
    script = "#!/bin/bash\nsrun sh -c 'echo $(hostname) $(hostname -I) $SLURM_PROCID'\n"
    job = slurm.submit(script, "-N2", "--ntasks-per-node=1", f"--output={tmp_path}/out")
    assert slurm.wait_job(job)["JobState"] == "COMPLETED"
    said = sorted((tmp_path / "out").read_text().splitlines())
    names = slurm.job(job)["NodeList"]
    hosts = slurm.run(["scontrol", "show", "hostnames", names]).stdout.split()
    assert said == [f"{host} {slurm.address(host)} {rank}" for rank, host in enumerate(hosts)]
    assert len(set(hosts)) == 2


def test_the_head_is_not_a_compute_node(slurm: Testbed) -> None:
    assert slurm.run(["hostname"]).stdout.strip() == "head"
    assert slurm.run(["srun", "-w", "node2", "hostname"]).stdout.strip() == "node2"
    assert slurm.run(["hostname"], node="node3").stdout.strip() == "node3"


def test_localhost_is_each_nodes_own(slurm: Testbed) -> None:
    serve = "import socket; s=socket.create_server(('127.0.0.1',4711)); print('up',flush=True); s.accept()"
    ask = "import socket; socket.create_connection(('127.0.0.1',4711),2)"
    command = [*slurm.prefix_command("node1"), sys.executable, "-c", serve]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"
        refused = slurm.run([sys.executable, "-c", ask], node="node2", check=False)
        assert "ConnectionRefusedError" in refused.stderr
        assert slurm.run([sys.executable, "-c", ask], node="node1").returncode == 0
        assert server.wait(10) == 0


def test_shared_memory_is_each_nodes_own(slurm: Testbed) -> None:
    slurm.run(["touch", "/dev/shm/here"], node="node1")
    assert "here" in slurm.run(["ls", "/dev/shm"], node="node1").stdout.split()
    assert "here" not in slurm.run(["ls", "/dev/shm"], node="node2").stdout.split()
    assert not Path("/dev/shm/here").exists()


def test_each_step_gets_devices_of_its_own(slurm: Testbed, tmp_path: Path) -> None:
    script = textwrap.dedent("""\
        #!/bin/bash
        echo "job $CUDA_VISIBLE_DEVICES"
        srun -N1 -n1 --gpus-per-node=1 --mem=100 --exact sh -c 'echo step $CUDA_VISIBLE_DEVICES; sleep 2' &
        srun -N1 -n1 --gpus-per-node=2 --mem=100 --exact sh -c 'echo step $CUDA_VISIBLE_DEVICES; sleep 2' &
        wait
        """)
    job = slurm.submit(script, "-N1", "-n2", "--gpus-per-node=3", f"--output={tmp_path}/out")
    assert slurm.wait_job(job)["JobState"] == "COMPLETED"
    said = sorted((tmp_path / "out").read_text().splitlines())
    assert said[0] == "job 0,1,2"
    devices = [device for line in said[1:] for device in line.removeprefix("step ").split(",")]
    assert sorted(devices) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-p", "nope"], "Invalid partition name specified"),
        (["-t", "11"], "Requested time limit is invalid (missing or exceeds some limit)"),
        (["-N5"], "Node count specification invalid"),
        (["--gpus-per-node=5"], "Requested node configuration is not available"),
        (["--gpus-per-node=h100:1"], "Requested node configuration is not available"),
    ],
)
def test_what_cannot_run_is_refused_at_once(slurm: Testbed, options: list[str], words: str) -> None:
    for only in ([], ["--test-only"]):
        refused = slurm.run(["sbatch", *only, *options], input=SLEEP, check=False)
        assert refused.returncode == 1
        assert words in refused.stderr


def test_test_only_says_where_a_job_would_run(slurm: Testbed) -> None:
    said = slurm.test_only(SLEEP, "-N2")
    assert said.returncode == 0
    assert "using 2 processors on nodes node[1-2] in partition debug" in said.stderr
    assert slurm.run(["squeue", "-h"]).stdout == ""


def test_a_job_keeps_its_exit_code(slurm: Testbed) -> None:
    fields = slurm.wait_job(slurm.submit("#!/bin/bash\nexit 7\n", "--output=/dev/null"))
    assert (fields["JobState"], fields["ExitCode"]) == ("FAILED", "7:0")


def test_the_death_of_a_node_fails_its_job(slurm: Testbed) -> None:
    job = slurm.submit(SLEEP, "-w", "node4", "--no-requeue", "--output=/dev/null")
    slurm.wait_job(job, "RUNNING")
    slurm.kill_node("node4")
    assert slurm.wait_job(job)["JobState"] == "NODE_FAIL"
    with pytest.raises(TestbedError, match="node4 is not up"):
        slurm.run(["true"], node="node4")
    slurm.restart_node("node4")
    assert slurm.run(["srun", "-w", "node4", "hostname"]).stdout.strip() == "node4"


@pytest.mark.parametrize("how", ["stop", "hang"])
def test_the_controller_can_be_away(slurm: Testbed, how: Literal["stop", "hang"]) -> None:
    job = slurm.submit(SLEEP, "--output=/dev/null")
    slurm.wait_job(job, "RUNNING")
    slurm.stop_controller(how)
    if how == "hang":
        with pytest.raises(subprocess.TimeoutExpired):
            slurm.run(["squeue", "-h"], timeout=2)
    if how == "stop":
        assert slurm.run(["squeue", "-h"], check=False, timeout=30).returncode == 1
    assert not slurm.answers()
    slurm.start_controller()
    assert slurm.job_state(job) == "RUNNING"
    slurm.cancel_all()


def test_a_command_gets_the_signals_and_returns_the_status(slurm: Testbed) -> None:
    trap = "trap 'echo caught; exit 9' TERM; echo up; while :; do sleep 0.05; done"
    command = [*slurm.prefix_command(), "bash", "-c", trap]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert process.wait(10) == 9
        assert process.stdout.read() == "caught\n"
    assert slurm.run(["sh", "-c", "kill -9 $$"], check=False).returncode == -9


def test_preempted_jobs_are_requeued(slurm_accounting: Testbed, tmp_path: Path) -> None:
    bed = slurm_accounting
    low = bed.submit(
        "#!/bin/bash\necho start ${SLURM_RESTART_COUNT:-0}\n[ ${SLURM_RESTART_COUNT:-0} = 1 ] || sleep 300\n",
        *("-N4", "--exclusive", "-p", "gpu", "-A", "proj1", "-q", "low", "--requeue", "--open-mode=append"),
        f"--output={tmp_path}/out",
    )
    bed.wait_job(low, "RUNNING")
    high = bed.submit("#!/bin/bash\nexit 0\n", "-N4", "-p", "gpu", "-A", "proj1", "-q", "high", "--output=/dev/null")
    assert bed.wait_job(high)["JobState"] == "COMPLETED"
    bed.wait_job(low, "PENDING")
    begin = time.monotonic()
    bed.release(low)
    assert bed.wait_job(low)["JobState"] == "COMPLETED"
    assert time.monotonic() - begin < 60
    assert (tmp_path / "out").read_text().split("\n")[0] == "start 0"
    assert "start 1" in (tmp_path / "out").read_text()


def test_accounts_and_qos_are_checked(slurm_accounting: Testbed) -> None:
    bed = slurm_accounting
    assert bed.test_only(SLEEP, "-A", "proj2").returncode == 0
    assert "Invalid account" in bed.test_only(SLEEP, "-A", "nobody").stderr
    assert "Invalid qos specification" in bed.test_only(SLEEP, "-A", "proj2", "-q", "low").stderr


def test_sacct_knows_the_past(slurm_accounting: Testbed) -> None:
    bed = slurm_accounting
    job = bed.submit("#!/bin/bash\nexit 3\n", "--output=/dev/null")
    bed.wait_job(job)
    ask = ["sacct", "-nPX", "-j", str(job), "-o", "state,exitcode"]
    end = time.monotonic() + 20
    while bed.run(ask).stdout.strip() != "FAILED|3:0":
        assert time.monotonic() < end
        time.sleep(0.2)


def test_without_accounting_there_is_no_sacct(slurm: Testbed) -> None:
    refused = slurm.run(["sacct"], check=False)
    assert refused.returncode != 0
    assert "accounting storage is disabled" in refused.stderr


def test_the_high_partition_preempts_without_accounting(slurm: Testbed) -> None:
    low = slurm.submit(SLEEP, "-N4", "--exclusive", "--requeue", "--output=/dev/null")
    slurm.wait_job(low, "RUNNING")
    slurm.run(["srun", "-p", "high", "-N4", "true"])
    assert slurm.job(low)["Restarts"] == "1"
    slurm.cancel_all()


@pytest.mark.torch
def test_four_torch_ranks_on_two_nodes_find_each_other(slurm: Testbed, tmp_path: Path) -> None:
    (tmp_path / "ranks.py").write_text(
        textwrap.dedent("""\
            import os, socket
            import torch
            import torch.distributed as dist
            dist.init_process_group("gloo")
            total = torch.tensor([float(dist.get_rank() + 1)])
            dist.all_reduce(total)
            place = f"{socket.gethostname()} {os.environ['LOCAL_RANK']} {total.item():g}"
            with open(f"{os.environ['OUT']}/rank{dist.get_rank()}", "w") as file:
                file.write(place)
            dist.destroy_process_group()
            """)
    )
    script = textwrap.dedent(f"""\
        #!/bin/bash
        export OUT={tmp_path} OMP_NUM_THREADS=1
        head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)
        srun --kill-on-bad-exit=1 {sys.executable} -m torch.distributed.run --nnodes=2 --nproc-per-node=2 \\
          --rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID --rdzv-endpoint=$head:29500 {tmp_path}/ranks.py
        """)
    job = slurm.submit(
        script, "-N2", "--ntasks-per-node=1", "--gpus-per-node=2", f"--output={tmp_path}/out", cwd=tmp_path
    )
    assert slurm.wait_job(job, timeout=150)["JobState"] == "COMPLETED", (tmp_path / "out").read_text()
    places = {(tmp_path / f"rank{rank}").read_text() for rank in range(4)}
    assert places == {f"{node} {local} 10" for node in ("node1", "node2") for local in (0, 1)}
