"""What people write, and what it means before it runs."""

from __future__ import annotations

import pytest

from maple_parsl.script import rank_map, read

HEAD = "#!/bin/bash\n#SBATCH -N2\n#SBATCH --ntasks-per-node=1 --gpus-per-node=8\n"


@pytest.mark.parametrize(
    "text,kind",
    [
        ("$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)", "first_host"),
        ("$(scontrol show hostname $SLURM_NODELIST | head -n1)", "first_host"),
        ("`scontrol show hostnames $SLURM_JOB_NODELIST | sed -n 1p`", "first_host"),
        ("$(head -1 $PBS_NODEFILE)", "first_host"),
        ("$(cat $PBS_NODEFILE | head -n 1)", "first_host"),
        ("$(hostname)", "batch_host"),
        ("$(hostname -I | awk '{print $1}')", "batch_host_ip"),
        ("$(srun --nodes=1 --ntasks=1 -w $head hostname --ip-address)", "first_host_ip"),
        ("$(sort -u $PBS_NODEFILE)", "host_list"),
        ("$(nvidia-smi -L | wc -l)", "gpu_count"),
        ("$(wc -l < $PBS_NODEFILE)", "task_slots"),
    ],
)
def test_commands_that_tell_something(text: str, kind: str) -> None:
    head = "head=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)\n"
    assert read(f"{HEAD}{head}X={text}\n").variables["X"].value.is_a(kind)


@pytest.mark.parametrize(
    "text,low,high",
    [
        ("$((10000 + $SLURM_JOBID % 20000))", 10000, 29999),
        ("$(shuf -i 20000-29999 -n1)", 20000, 29999),
        ("$(( RANDOM + 10000 ))", 10000, 42767),
        ("$((10000 + ${SLURM_JOB_ID: -4}))", 10000, 19999),
        ("$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))", 10000, 19999),
        ("$((SLURM_NNODES * 8))", 16, 16),
        ("$((49152 + SLURM_JOB_ID % 16384))", 49152, 65535),
    ],
)
def test_numbers_and_their_bounds(text: str, low: int, high: int) -> None:
    value = read(f"{HEAD}X={text}\n").variables["X"].value
    assert (value.low, value.high) == (low, high)


def test_where_a_rank_variable_is_expanded() -> None:
    script = read(
        HEAD
        + "srun torchrun --node_rank=$SLURM_NODEID t.py\n"
        + "srun bash -c 'torchrun --node_rank=$SLURM_NODEID t.py'\n"
        + 'srun bash -c "torchrun --node_rank=\\$SLURM_NODEID t.py"\n'
        + 'srun bash -c "torchrun --node_rank=$SLURM_NODEID t.py"\n'
        + "srun torchrun --node_rank='$SLURM_NODEID' t.py\n"
        + "srun bash -c 'torchrun --rdzv_id=\\$SLURM_JOB_ID t.py'\n"
    )
    found = {r.place.line: (r.context, r.place.column) for r in script.references("SLURM_NODEID")}
    contexts = [found[line][0] for line in range(4, 9)]
    assert contexts == ["batch", "task", "task", "batch", "never"]
    assert [r.context for r in script.references("SLURM_JOB_ID")] == ["never"]
    ranks = [launch.leaf.value("node_rank") for launch in script.launches[:4]]
    kinds = [value.symbol.kind for value in ranks if value is not None and value.symbol is not None]
    assert kinds == ["batch_zero", "per_task", "per_task", "batch_zero"]


def test_scripts_written_above_are_followed() -> None:
    script = read(
        HEAD
        + "cat > run.sh <<'EOF'\nexport RANK=$SLURM_PROCID\npython train.py\nEOF\n"
        + "cat <<EOF > run2.sh\nexport RANK=$SLURM_PROCID\npython train.py\nEOF\n"
        + "srun -n 16 ./run.sh\nsrun -n 16 bash run2.sh\n"
    )
    kinds = [launch.leaf.variable("RANK") for launch in script.launches]
    assert [str(k) for k in kinds] == ["<per_task:SLURM_PROCID>", "<batch_zero:SLURM_PROCID>"]
    assert [h.run_by for h in script.heredocs] == [("run.sh",), ("bash",)]


def test_directives_and_their_states() -> None:
    script = read(
        "#!/bin/bash\n#SBATCH -N2 -n 8 # two\n##SBATCH --mem=3\n#sbatch --time=1\n#SBATCH --account=$proj\n"
        "#SBATCH --nodes 4\necho\n#SBATCH -p gpu\ncat <<EOF\n#SBATCH -A other\nEOF\n"
    )
    nodes = script.directive("-N")
    assert nodes is not None
    assert (nodes.value, nodes.place.line, nodes.overrides is not None) == ("4", 6, True)
    assert [(d.name, d.state) for d in script.directives if d.state != "effective"] == [
        ("--mem", "commented"), ("--time", "commented"), ("--partition", "too_late"), ("--account", "in_heredoc"),
    ]  # fmt: skip
    assert script.references("proj", "directive")


def test_pbs_lines_hold_several() -> None:
    script = read("#!/bin/bash -l\n#PBS -l select=2:ncpus=64:ngpus=4,walltime=1:00:00 -A x\n#PBS -l filesystems=home\n")
    assert [(d.name, d.value) for d in script.directives] == [
        ("-l select", "2:ncpus=64:ngpus=4"), ("-l walltime", "1:00:00"), ("-A", "x"), ("-l filesystems", "home"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body,nodes,processes,world",
    [
        ("srun torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 t.py", 2, 16, 16),
        ("srun --ntasks-per-node=8 python t.py", 2, 16, 16),
        ("srun --ntasks-per-node=8 torchrun --nnodes 2 --nproc_per_node 8 t.py", 2, 128, 16),
        ("torchrun --nnodes=2 --nproc_per_node=8 t.py", 1, 8, 16),
        ("python t.py", 1, 1, 1),
        ("mpirun -np 4 --map-by ppr:2:node python t.py", 2, 4, 4),
        ("srun accelerate launch --num_processes 16 --num_machines 2 --machine_rank 0 t.py", 2, 16, 16),
        ("for h in $(scontrol show hostnames $SLURM_JOB_NODELIST); do\n"
         'ssh $h "torchrun --nnodes 2 --nproc_per_node 4 t.py" &\ndone', 2, 8, 8),
    ],
)  # fmt: skip
def test_who_runs_where(body: str, nodes: int, processes: int, world: int) -> None:
    found = rank_map(read(f"{HEAD}{body}\n")).main
    assert found is not None
    assert (found.nodes, found.processes, found.world_size) == (nodes, processes, world)


def test_a_full_machine_is_a_block() -> None:
    text = "#!/bin/bash\n#PBS -l select=10624\nmpiexec -n 127488 --ppn 12 python t.py\n"
    found = rank_map(read(text)).main
    assert found is not None
    assert found.processes == 127488
    assert len(found.blocks) == 1
    assert found.place_of(127487) == (10623, 11)


def test_an_option_in_a_variable_that_may_be_empty() -> None:
    script = read(
        "#!/bin/bash\n#SBATCH --nodes=2\nR=\nif [ -d /opt/x ]; then R=--auto-resume=1; fi\n"
        'declare -a A=(--container-image $(realpath i.sqsh) -l)\nsrun $R "${A[@]}" torchrun --nnodes=2 t.py\n'
    )
    launch = script.launches[0]
    assert [option.name for option in launch.options] == ["container_image", "l"]
    assert launch.leaf.launcher == "torchrun"


def test_a_command_substitution_that_begins_like_arithmetic() -> None:
    script = read("#!/bin/bash\nsrun bash -c 'echo $(((SLURM_NODEID)) && echo 0 || echo 1)'\n")
    assert script.faults == ()


@pytest.mark.parametrize("words", ["${EXTRA}", "$SRUN_ARGS", "${SRUN_OPTS:-}"])
def test_a_variable_of_options_in_front_of_options(words: str) -> None:
    launch = read(f"#!/bin/bash\n#SBATCH --nodes=2\nsrun {words} -n 8 -l python t.py\n").launches[0]
    assert [str(w) for w in launch.program] == ["python", "t.py"]
    assert launch.value("ntasks") is not None


def test_a_variable_that_is_the_program_stays_the_program() -> None:
    launch = read("#!/bin/bash\n#SBATCH --nodes=2\nsrun $PYTHON -u t.py\n").launches[0]
    assert len(launch.program) == 3


def test_several_programs_in_one_launch_count_together() -> None:
    text = "#!/bin/bash\n#PBS -l select=2:ncpus=32:mpiprocs=4\nmpiexec {} python a.py : {} python b.py\n"
    script = read(text.format("-n 1", "-n 7"))
    assert [str(w) for w in script.launches[0].program] == ["python", "a.py"]
    assert rank_map(script).launches[0].world_size == 8
    assert rank_map(read(text.format("-n 1", ""))).launches[0].world_size is None
