"""Fragments of scripts, completed to whole ones: a shebang, directives of their scheduler, a launch around options."""

from __future__ import annotations

import re

_HEADS = {
    "slurm": "#SBATCH --nodes=2\n#SBATCH --time=00:30:00\n",
    "pbs": "#PBS -l select=2:ncpus=32:ngpus=4\n#PBS -l walltime=00:30:00\n",
    "lsf": "#BSUB -nnodes 2\n#BSUB -W 30\n",
}
_DIRECTIVE = re.compile(r"#(?:SBATCH|PBS|BSUB)\b")
_LAUNCH = re.compile(
    r"^\s*(?:\w+=\S+\s+)*(?:srun|mpiexec|mpirun|ibrun|jsrun|torchrun|accelerate|deepspeed|horovodrun|python3?|ssh|pdsh)\b",
    re.M,
)
_START = {"slurm": "srun ", "pbs": "mpiexec -n 8 --ppn 4 ", "lsf": "jsrun -r 4 -a 1 -g 1 "}


def complete(fragment: str, scheduler: str) -> str:
    """A whole script. Directives of the fragment replace those of the same kind; nothing of the fragment changes."""
    rows = fragment.split("\n")
    own = [row for row in rows if _DIRECTIVE.match(row)]
    body = [row for row in rows if not _DIRECTIVE.match(row)]
    head = _HEADS.get(scheduler, "")
    if any(re.search(r"--nodes|-N\s*\d|--ntasks=|-n\s*\d|-l (?:select|nodes)", row) for row in own):
        head = "\n".join(row for row in head.split("\n") if "nodes" not in row and "select" not in row)
    text = "\n".join(body)
    plain = text.lstrip()
    if plain.startswith("--"):
        text = _START.get(scheduler, "") + "torchrun " + text.replace("\n", " ") + " train.py"
    elif re.match(r"[\w.-]+ slots=\d+", plain):
        text = f"cat > hostfile <<'END'\n{text}\nEND\ndeepspeed --hostfile=hostfile train.py"
    elif re.match(r"[\w.-]+: \S", plain):
        text = f"cat > config.yaml <<'END'\n{text}\nEND\naccelerate launch --config_file config.yaml train.py"
    elif not _LAUNCH.search(text):
        text += f"\n{_START.get(scheduler, '')}python train.py"
    return "#!/bin/bash\n" + head + "".join(f"{row}\n" for row in own) + "\n" + text + "\n"


def whole(fragment: str, scheduler: str) -> str:
    """A fragment with a #! line is a script already, whose order matters: only a launch is added."""
    if not any(line.startswith("#!") for line in fragment.split("\n")):
        return complete(fragment, scheduler)
    return fragment + ("\n" if "srun" in fragment else "\nsrun python train.py\n")
