"""Scripts carried to another site: the user's own stays, the site's is written anew, nothing is invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.cli import main
from maple_parsl.errors import ComposeError, RequestError
from maple_parsl.port import Ported, port
from maple_parsl.rules.parts import trains
from maple_parsl.script import read
from tests.cases import SITES, plan, site, templates

DATA = Path(__file__).parents[1] / "data" / "port"
SIX = ("polaris", "aurora", "perlmutter", "vista", "frontier", "delta")
LINE = '"$MAPLE_MINIAPP" --model gpt --paradigm ddp'


def carried(text: str, to: str, source: str | None, **stated: Any) -> Ported:
    """To the site of a case, with that case's account and queue unless others are stated."""
    fields = {key: value for key, value in SITES[to].items() if key != "site"}
    old = site(source) if source else None
    return port(text, site(SITES[to]["site"]), templates(), old, **{**fields, **stated})


def data(name: str) -> str:
    return (DATA / f"{name}.sh").read_text()


def launched(made: Ported) -> list[str]:
    """The words of what trains, as the reader finds them in the new script."""
    launch = next(one for one in reversed(read(made.text).launches) if trains(one))
    return [word.value.text or "?" for word in launch.leaf.program]


def assert_sound(made: Ported) -> None:
    assert made.correct, [f.message for f in made.findings if f.severity == "error"]
    assert "MAPLE_CARRIED" not in made.text


@pytest.mark.parametrize(("source", "to"), [(a, b) for a in SIX for b in SIX if a != b])
def test_a_script_of_any_site_goes_to_any_other(source: str, to: str) -> None:
    made = carried(plan(source).script, to, source)
    assert_sound(made)
    assert made.program == LINE
    assert LINE in made.text
    assert launched(made)[-4:] == ["--model", "gpt", "--paradigm", "ddp"]
    assert 'export MAPLE_MINIAPP="$MAPLE_RUN_DIR/miniapps/train.py"' in made.text


def test_pbs_to_slurm() -> None:
    made = carried(data("polaris"), "perlmutter", "polaris", queue="regular")
    assert_sound(made)
    assert made.program == (
        'train.py --data "$DATA" --out "$OUT" --lr 3e-4 --world $NTOTRANKS --tag \'a b\' --epochs 90'
    )
    rows = made.text.split("\n")
    for line in ("DATA=/eagle/MyProject/imagenet", "export WANDB_MODE=offline", "export NCCL_DEBUG=WARN"):
        assert line in rows
    assert "OUT=$HOME/runs/$MAPLE_JOB_ID" in rows
    assert "NTOTRANKS=16" in rows
    assert "#SBATCH --nodes=4" in rows
    assert "#SBATCH --time=02:00:00" in rows
    assert not [row for row in rows if row.startswith("#PBS") or "proxy.alcf" in row or "MyProject " in row]
    assert "PBS_" not in made.text.replace("#PBS", "")
    said = " ".join(made.todo)
    assert "/eagle/MyProject/imagenet" in said
    assert "set_affinity_gpu_polaris.sh" in said
    assert "#PBS -m ae" in said
    assert 'cp "$OUT/best.pt" .' in said


def test_slurm_to_pbs() -> None:
    made = carried(data("perlmutter"), "aurora", "perlmutter", queue="capacity")
    assert_sound(made)
    assert made.program == "main.py --config cfg/base.yaml --epochs 3"
    assert launched(made)[-5:] == ["main.py", "--config", "cfg/base.yaml", "--epochs", "3"]
    rows = made.text.split("\n")
    assert "export HF_HOME=$SCRATCH/hf" in rows
    assert "export OMP_NUM_THREADS=16" in rows
    assert "#PBS -l select=2:system=aurora" in rows
    assert "SLURM" not in made.text
    said = " ".join(made.todo)
    assert "module load pytorch/2.6.0" in said
    assert "8 processes became 24" in said
    assert "$SCRATCH comes from outside" in said


def test_slurm_to_an_ibrun_site() -> None:
    made = carried(data("delta"), "vista", "delta", queue="gh")
    assert_sound(made)
    assert made.program == 'pretrain.py --steps $STEPS "${EXTRA[@]}" --nodes 2'
    rows = made.text.split("\n")
    assert 'EXTRA=(--warmup 100 --name "run one")' in rows
    assert "#SBATCH --job-name=llm" in rows
    assert any(row.startswith("maple_launch ibrun") for row in rows)
    assert [w for w in launched(made) if w != "?"][-2:] == ["--nodes", "2"]


def test_what_is_missing_is_asked_for_with_its_flag() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\nsrun python t.py\n"
    with pytest.raises(ComposeError) as error:
        port(text, site("polaris"), templates(), None)
    assert [p.rpartition("(")[2] for p in error.value.problems] == ["--walltime)", "--account)", "--queue)"]


def test_account_and_queue_of_the_old_site_are_not_carried() -> None:
    made = carried(data("delta"), "perlmutter", "delta", queue="regular")
    assert "abcd-delta-gpu" not in made.text
    assert "gpuA100x4" not in made.text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("for i in 1 2; do\n  srun python t.py $i\ndone\n", "inside a loop"),
        ("srun python a.py\nsrun python b.py\n", "2 launches"),
        ("srun ./start_all.sh\n", "could not be read"),
        ("echo nothing\n", "nothing to carry over"),
        ("srun bash -c 'python t.py --rank $SLURM_PROCID'\n", "SLURM_PROCID"),
    ],
)
def test_what_cannot_be_carried_is_said(body: str, words: str) -> None:
    with pytest.raises(ComposeError, match=words):
        carried(f"#!/bin/bash\n#SBATCH -N 2\n#SBATCH -t 10\n{body}", "perlmutter", "delta", queue="regular")


def test_a_script_of_another_scheduler_is_refused() -> None:
    with pytest.raises(RequestError, match="polaris has pbs"):
        carried(data("delta"), "perlmutter", "polaris")


def test_environment_on_the_launch_line_is_kept() -> None:
    text = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH -t 10\nA=1 srun --export=ALL,B=2 env C='x y' python t.py\n"
    made = carried(text, "polaris", "delta")
    assert_sound(made)
    assert {"export A=1", "export B=2", "export C='x y'"} <= set(made.text.split("\n"))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.sh"
    file.write_text(data("polaris"))
    out = tmp_path / "new.sh"
    words = ["port", str(file), "--to", "perlmutter", "--account", "m0000", "--queue", "regular"]
    assert main([*words, "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["target"], told["correct"]) == ("polaris", "perlmutter", True)
    assert out.read_text() == told["text"]
    assert told["diff"].startswith("--- a/")
    assert file.read_text() == data("polaris")
    assert {part["fate"] for part in told["parts"]} == {"kept", "replaced", "left"}
    assert main([*words, "--diff"]) == 0
    shown = capsys.readouterr()
    assert "-#PBS -q prod" in shown.out
    assert "note: NTOTRANKS is 16" in shown.err


def test_the_command_line_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.sh"
    file.write_text(data("polaris"))
    assert main(["port", str(file), "--to", "perlmutter", "--account", "m0000"]) == 4
    assert "(--queue)" in capsys.readouterr().err
