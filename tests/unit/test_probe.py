"""Drafting a site file: from recorded answers of schedulers, and from a script that works."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.cli import main
from maple_parsl.here.probe import draft_of, probed, text, whole
from maple_parsl.here.probe.gpus import vendor_of
from maple_parsl.here.probe.node import topology
from maple_parsl.here.probe.slurm import expanded, pairs
from maple_parsl.script import read
from maple_parsl.site import Site

PBS = Path(__file__).parents[1] / "data" / "pbs"
DAY = date(2026, 12, 1)
SLURM = {
    "scontrol show config": """\
AccountingStorageEnforce = associations,limits,qos
AccountingStorageType   = accounting_storage/slurmdbd
ClusterName             = plover
JobRequeue              = 1
MaxArraySize            = 1001
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SLURM_VERSION           = 23.11.8
""",
    "scontrol --oneliner show partition": """\
PartitionName=day AllowAccounts=ALL Default=YES Hidden=NO MaxNodes=8 MaxTime=1-00:00:00 MinNodes=0 Nodes=g[01-02],c1 \
OverSubscribe=NO State=UP TotalNodes=3 DefMemPerCPU=2000
PartitionName=whole AllowAccounts=ops Default=NO Hidden=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=2 \
Nodes=g[01-02] OverSubscribe=EXCLUSIVE State=DOWN TotalNodes=2
PartitionName=secret Hidden=YES Nodes=g01 TotalNodes=1
""",
    "scontrol --oneliner show node": """\
NodeName=g01 Arch=x86_64 CoresPerSocket=16 CPUTot=64 ActiveFeatures=ib,a100 Gres=gpu:a100:4(S:0-1) OS=Linux 6.1 #1 SMP \
RealMemory=512000 Sockets=2 ThreadsPerCore=2 Partitions=day,whole
NodeName=g02 Arch=x86_64 CoresPerSocket=16 CPUTot=64 ActiveFeatures=ib,a100 Gres=gpu:a100:4(S:0-1) OS=Linux 6.1 #1 SMP \
RealMemory=511000 Sockets=2 ThreadsPerCore=2 Partitions=day,whole
NodeName=c1 Arch=x86_64 CoresPerSocket=32 CPUTot=64 ActiveFeatures=(null) Gres=(null) RealMemory=256000 Sockets=2
""",
    "srun --version": "slurm 23.11.8\n",
    "bash -lc module -t avail 2>&1": "/opt/modules:\ngcc/12.2\npytorch/2.5.1\ncuda/12.4(default)\n",
    "apptainer --version": "apptainer version 1.3.4\n",
}
TOPO = (
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\t24-31,56-63\t3\t\tN/A\nGPU1\tNV4\t X \t16-23\t2\t\tN/A\n\nLegend:\n"
)


def answers(table: dict[str, str]) -> Any:
    def run(words: Sequence[str]) -> str | None:
        if words[0] == "sacctmgr" and "assoc" in words and "sacctmgr" in table:
            return table["sacctmgr"]
        return table.get(" ".join(words))

    return run


def drafted(table: dict[str, str], kind: str, **more: Any) -> tuple[Site, str]:
    draft, _ = probed("plover", kind, run=answers(table), environ={}, host="login1", day=DAY, **more)
    written = text(draft)
    return Site.model_validate_json(json.dumps(tomllib.loads(written), default=str)), written


def test_slurm_answers_become_facts_and_nothing_else() -> None:
    table = {**SLURM, "sacctmgr": "plover|proj1|normal,high\nother|else|normal\n"}
    site, written = drafted(table, "slurm")
    assert (site.scheduler.max_array, site.scheduler.requeue, site.scheduler.account) == (1001, True, "required")
    assert site.defaults.account == "proj1"
    assert site.detect
    assert site.detect.slurm_cluster == "plover"
    gpu = site.kinds["a100"]
    assert (gpu.vendor, gpu.gpus, gpu.cores, gpu.hw_threads, gpu.memory_gib) == ("nvidia", 4, 32, 64, 499.0)
    assert (site.kinds["cpu"].vendor, site.kinds["cpu"].backend) == ("none", "gloo")
    assert site.queues
    day, whole_nodes = site.queues.entry
    assert (day.kinds, day.default, day.shared, day.max_nodes) == (("a100", "cpu"), True, True, 8)
    assert (whole_nodes.exclusive, whole_nodes.batch, whole_nodes.min_nodes) == (True, False, 2)
    assert whole_nodes.max_walltime is None
    assert whole_nodes.note == "only accounts ops"
    assert site.directives.gpu_request == "gpus-per-node"
    assert site.directives.memory == "whole-node"
    assert site.environments["default"].container_engine == "apptainer"
    assert "pytorch/2.5.1" in written
    assert site.environments["default"].framework == ()
    assert "on login1: scontrol show config" in site.scheduler.source
    assert site.scheduler.checked_on == DAY
    for line in written.splitlines():
        fact = line and not line.startswith(("#", "[", "format", 'name = "plover"', "title", "source", "checked_on"))
        assert not fact or "    # " in line, line


def test_several_accounts_are_named_and_none_is_chosen() -> None:
    site, written = drafted({**SLURM, "sacctmgr": "plover|a|q\nplover|b|q\n"}, "slurm")
    assert site.defaults.account is None
    assert "choose one of yours: a, b" in written


def test_a_silent_scheduler_leaves_a_file_of_placeholders_that_says_so() -> None:
    for kind in ("slurm", "pbs"):
        site, written = drafted({}, kind)
        assert site.queues is None
        assert site.kinds["default"].source.startswith("EDIT")
        assert "# EDIT: no command told anything of the nodes" in written


def test_a_gpu_of_unknown_make_stays_unknown() -> None:
    table = {**SLURM, "scontrol --oneliner show node": SLURM["scontrol --oneliner show node"].replace("a100", "fancy")}
    site, _ = drafted(table, "slurm")
    assert site.kinds["fancy"].source.startswith("EDIT")
    assert (vendor_of("nvidia_h100_80gb_hbm3"), vendor_of("mi250x"), vendor_of("fancy")) == ("nvidia", "amd", None)


def recorded(name: str) -> str:
    return "\n".join((PBS / name).read_text().splitlines()[1:-1])


def test_recorded_answers_of_openpbs() -> None:
    table = {
        "qstat -Bf -F json": recorded("qstat_Bf_json.txt"),
        "qstat -Qf -F json": recorded("qstat_Qf_json.txt"),
        "pbsnodes -av -F json": recorded("pbsnodes_json.txt"),
        "mpiexec --version": "HYDRA build details:\n    Version: 4.2\n",
    }
    site, written = drafted(table, "pbs")
    assert (site.scheduler.kind, site.scheduler.version, site.scheduler.max_array) == ("pbs", "23.06.06", 10000)
    assert site.detect
    assert site.detect.pbs_server == "pbsserver"
    kind = site.kinds["gpu"]
    assert (kind.nodes, kind.gpus, kind.memory_gib) == (3, 4, 64.0)
    assert kind.select == "ncpus=16:ngpus={devices}:mpiprocs={tasks}"
    assert kind.source.startswith("EDIT")  # PBS does not tell whose GPUs they are
    assert site.queues
    assert [(queue.name, queue.default, str(queue.max_walltime)) for queue in site.queues.entry] == [
        ("workq", True, "None"),
        ("gpuq", False, "02:00:00"),
    ]
    assert (site.launchers["default"].dialect, site.directives.gpu_request) == ("hydra", "select-ngpus")
    assert "# max_nodes =    # unknown: qstat -Qf -F json: resources_max.nodect is not set" in written


def test_the_parts_of_answers() -> None:
    assert expanded("g[01-02,5],login1,x[1-2]-[a]") == ["g01", "g02", "g5", "login1"]
    assert pairs("A=1 OS=Linux 6.1 #1 SMP B=(null)") == {"A": "1", "OS": "Linux 6.1 #1 SMP", "B": "(null)"}
    assert topology(TOPO) == [{"cores": "24-31,56-63", "numa": 3}, {"cores": "16-23", "numa": 2}]


def test_network_file_systems_are_shared_by_their_type(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("server:/home /home nfs4 rw 0 0\n/dev/sda / ext4 rw 0 0\n")
    draft, _ = probed("p", "slurm", run=answers({}), environ={"HOME": "/home/me", "SCRATCH": "/opt"}, mounts=mounts)
    assert draft.tables["storage"]["shared"].value == ["$HOME"]


SCRIPT = """\
#!/bin/bash -l
#SBATCH --account=proj1
#SBATCH --partition=day
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --time=1:00:00
module load cuda/12.4 pytorch/2.5.1
source ~/venv/bin/activate
export NCCL_SOCKET_IFNAME=hsn
export http_proxy=http://proxy:3128
srun --cpus-per-task=8 python train.py
"""


def test_a_script_that_works_tells_its_site() -> None:
    draft = whole(draft_of(read(SCRIPT, "job.sh"), "plover", "login1", DAY))
    site = Site.model_validate_json(json.dumps(tomllib.loads(text(draft)), default=str))
    assert site.scheduler.shebang == "#!/bin/bash -l"
    assert (site.defaults.account, site.defaults.queue) == ("proj1", "day")
    environment = site.environments["default"]
    assert environment.base == ("module load cuda/12.4 pytorch/2.5.1",)
    assert environment.network == {"NCCL_SOCKET_IFNAME": "hsn"}
    assert environment.proxy == {"http_proxy": "http://proxy:3128"}
    assert (site.launchers["default"].command, site.launchers["default"].preferred_style) == ("srun", "per-device")
    assert site.directives.gpu_request == "gpus-per-node"
    assert any("venv/bin/activate" in note for note in draft.notes)


def test_probe_and_script_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_HOME", str(tmp_path / "conf"))
    monkeypatch.setattr("maple_parsl.here.probe.asking._patient", answers(SLURM))
    (tmp_path / "job.sh").write_text(SCRIPT)
    words = ["sites", "add", "plover", "--probe", "--scheduler", "slurm", "--from-script", str(tmp_path / "job.sh")]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    data = tomllib.loads(Path(said["file"]).read_text())
    assert said["read"]
    assert data["environments"]["default"]["base"] == ["module load cuda/12.4 pytorch/2.5.1"]
    assert data["scheduler"]["account"] == "required"
    assert main(words) == 3  # the file stays
    assert main(["sites", "add", "polaris", "--probe", "--scheduler", "pbs"]) == 2
