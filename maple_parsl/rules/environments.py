"""The software environment of the job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import change, commands, login_shell, row, submitted, texts
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.model import Launch, Step

_HOOK = re.compile(
    r"conda\.sh|conda\b.*\bhook|conda\b.*\bshell|(?:\.|/)(?:bashrc|bash_profile|profile|zshrc|bash_login)\b|/etc/profile"
    r"|mamba\.sh|micromamba"
)
_PROGRAMS = re.compile(r"(?:.*/)?(python[\d.]*|torchrun|accelerate|accelerate-launch|deepspeed|composer|horovodrun)\Z")
# What only processes read, so that a value the shell keeps to itself has no use.
_FOR_PROCESSES = re.compile(
    r"(?:NCCL|RCCL|CCL|FI|UCX|GLOO|TORCH|PYTORCH|OMP|MKL|HF|HUGGINGFACE|TRANSFORMERS|CUDA|HIP|ROCR|HSA|ZE|MPICH|OMPI|WANDB"
    r"|TOKENIZERS|TRITON|MIOPEN)_[A-Z0-9_]+\Z|(?:MASTER_ADDR|MASTER_PORT|WORLD_SIZE|PYTHONPATH|LD_LIBRARY_PATH"
    r"|PYTHONUNBUFFERED|PYTHONFAULTHANDLER)\Z"
)
_ACTIVATE = frozenset("module ml conda mamba micromamba source . eval spack".split())
_INHERITED = frozenset(["LD_LIBRARY_PATH", "PYTHONPATH"])


def _hooked(subject: Subject, before: Step) -> bool:
    """Something ran before that may define conda's shell function."""
    for command in subject.script.commands:
        if command.place == before.place:
            break  # commands are in the order they run
        if command.context != before.context:
            continue  # in a process of its own
        text = " ".join(texts(command)) + row(subject, command.place)
        if command.name in ("source", ".", "eval") and ("source conda activate" not in text):
            return True
        if _HOOK.search(text):
            return True
    return False


def _no_hook(subject: Subject) -> Iterator[Found]:
    if not submitted(subject) or login_shell(subject):
        return
    for step in subject.script.steps_of("conda"):
        words = [w.value.text or "" for w in step.words]
        if words[:2] not in (["conda", "activate"], ["mamba", "activate"], ["micromamba", "activate"]):
            continue
        if step.context != "batch" or _hooked(subject, step):
            continue
        modules = [str(s) for s in subject.script.steps_of("module") if s.place < step.place]
        loads = [m for m in modules if re.search(r"\b(?:load|add)\b|^ml\s", m)]
        if subject.site is not None and _sites_own(subject, loads):
            continue
        tool = words[0]
        yield Found(
            f"{step} in a shell that does not know it"
            + (": a module may define it, or not" if loads else f"; {tool} is set up in interactive shells only"),
            step.place,
            severity="warning" if loads else None,
            fix=f'Put eval "$({tool} shell.bash hook)" or source …/etc/profile.d/conda.sh before it.',
        )
        return


def _sites_own(subject: Subject, loads: list[str]) -> bool:
    """The modules are those by which the site's documents bring conda."""
    assert subject.site is not None
    known = {n for e in subject.site.environments.values() for row in (*e.conda, *e.framework) for n in row.split()[2:]}
    return any(
        name.partition("/")[0] in {k.partition("/")[0] for k in known} for load in loads for name in load.split()[1:]
    )


def _source_conda(subject: Subject) -> Iterator[Found]:
    for command in commands(subject, "source", "."):
        words = texts(command)[1:]
        if words[:1] == ["conda"]:
            rest = " ".join(words)
            yield Found(
                f"source {rest} reads a file named conda; there is none",
                command.place,
                fix=f"Write {rest}.",
                edits=change(subject, command.place, f"{command.words[0]} {rest}", rest),
            )
        elif words[:1] == ["activate"]:
            yield Found(
                f"source {' '.join(words)} finds its file only where conda's bin is on PATH",
                command.place,
                severity="warning",
                fix=f'Write eval "$(conda shell.bash hook)" and conda {" ".join(words)}.',
            )


def _export_list(subject: Subject) -> Iterator[Found]:
    for launch in subject.script.all_launches:
        option = launch.option("export") if launch.launcher == "srun" else None
        text = option.value.parts[0] if option and option.value.parts else None
        if option is None or not isinstance(text, str):
            continue
        names = [piece.partition("=")[0].strip() for piece in text.split(",")]
        if "ALL" in (n.upper() for n in names) or text.upper() == "NIL":
            continue
        bare = text.upper().startswith("NONE")
        yield Found(
            f"{option.flag}={text if option.value.is_const else text + '…'}: the processes get nothing else of the"
            " environment, not even PATH",
            option.place,
            fix="Write --export=ALL." if bare else f"Write --export=ALL,{text}.",
            edits=change(subject, option.place, f"--export={text}", "--export=ALL" if bare else f"--export=ALL,{text}"),
        )


def _brings(subject: Subject, launch: Launch) -> bool:
    """Something brings an environment before or within the launch."""
    script = subject.script
    if login_shell(subject) or launch.leaf.opaque or launch.opaque or script.format.shebang is None:
        return True
    if any(s.context != "batch" for s in script.steps_of("module", "conda", "venv", "source")):
        return True
    for command in script.commands:  # in the order they run
        if command.place == launch.command.place:
            break
        if command.name in _ACTIVATE:
            return True
    if any(w.kind in ("container", "conda", "script", "affinity") for part in launch.all for w in part.wrappers):
        return True
    if any(part.option("container_image") for part in launch.all if part.launcher == "srun"):
        return True
    if any(script.directive(n) for n in ("--container-image", "--container", "--image", "--get-user-env", "-V")):
        return True
    return any(a.name in ("PATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX") for a in script.assignments)


def _none(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if not submitted(subject):
        return
    for ranks in subject.launches:
        launch = ranks.launch
        if not (launch.launcher or ranks.framework) or _brings(subject, launch):
            continue
        for part in launch.all:
            words = part.program if not part.launcher else part.command.words
            names = [w.value.text or "" for w in (*part.command.words, *part.program)]
            found = next((n for n in names if _PROGRAMS.match(n) and "/" not in n), None)
            if found and words:
                if found.startswith("python") and script.scheduler == "slurm":
                    return  # the system's python may be meant
                yield Found(
                    f"{found} is started and nothing before it brings an environment (module, conda, venv)",
                    launch.place,
                )
                return


def _remote(subject: Subject) -> Iterator[Found]:
    if not any(s.context == "batch" for s in subject.script.steps_of("module", "conda", "venv", "source")):
        return
    for launch in subject.script.all_launches:
        if launch.launcher not in ("ssh", "pdsh", "pbsdsh"):
            continue
        text = " ".join(str(w) for w in launch.command.words)
        if re.search(r"activate|module\b|source\b|\bexport\b|/bin/python|bash -l|--login|PATH=", text):
            continue
        if any((w.value.text or "") and _PROGRAMS.match(w.value.text or "") and "/" not in (w.value.text or "")
               for part in launch.all for w in (*part.program, *part.command.words)):  # fmt: skip
            yield Found(
                f"{launch.launcher} starts a fresh shell on the other node, without what was activated here",
                launch.place,
            )


def _not_exported(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if not script.launches:
        return
    for name, variable in script.variables.items():
        if variable.exported or name in _INHERITED or not _FOR_PROCESSES.match(name) or variable.place.file:
            continue
        made = [a for a in script.assigned(name) if a.how == "assign"]
        if not made or any(a.exported or a.how not in ("assign", "append") for a in script.assigned(name)):
            continue
        if script.references(name) or made[-1].context != "batch":
            continue
        text = row(subject, made[-1].place)
        simple = re.match(rf"\s*{name}=\S+\s*(?:#.*)?\Z", text)
        edits: tuple[Edit, ...] = ()
        if simple:
            line = made[-1].place.line
            edits = (Edit(first=line, last=line, text=text.replace(f"{name}=", f"export {name}=", 1), safe=True),)
        yield Found(f"{name} is set and not exported, so no process gets it", made[-1].place, edits=edits)


def _module_shell(subject: Subject) -> Iterator[Found]:
    script = subject.script
    modules = [s for s in script.steps_of("module") if s.context == "batch" and s.words[0].value.text != "spack"]
    if not submitted(subject) or script.scheduler != "pbs" or not modules or login_shell(subject):
        return
    if script.format.shebang is None or any(
        c.place < modules[0].place for c in commands(subject, "source", ".", "eval")
    ):
        return
    required = subject.site is not None and subject.site.scheduler.shebang.endswith("-l")
    shebang = script.format.shebang
    yield Found(
        f"module is a function of login shells, and {shebang.text} is none",
        modules[0].place,
        severity="error" if required and "bash" not in shebang.text else "warning",
        edits=(Edit(first=shebang.place.line, last=shebang.place.line, text="#!/bin/bash -l", safe=True),),
    )


_S = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_P = "#PBS -l select=1:ncpus=8\n#PBS -l walltime=00:10:00\nmodule load conda\nmpiexec -n 4 python t.py\n"
_CONDA = "https://docs.conda.io/projects/conda/en/latest/dev-guide/deep-dives/activation.html"
_SRUN = "https://slurm.schedmd.com/srun.html#OPT_export"
_HOSTS = 'source ~/env/bin/activate\nssh node2 "python t.py --rank 1" &\npython t.py --rank 0\n'


_FAMILY = Family("ENV_NOT_ACTIVATED")


RULES = (
    _FAMILY.rule(
        "conda-without-hook",
        "error",
        "conda activate in a shell without conda's function",
        "Batch shells do not read the interactive profile; conda says that the shell has not been configured.",
        "Source conda's set-up first.",
        _S + "conda activate env\nsrun python t.py\n",
        _S + 'eval "$(conda shell.bash hook)"\nconda activate env\nsrun python t.py\n',
        _no_hook,
        source=_CONDA,
    ),
    _FAMILY.rule(
        "conda-sourced",
        "error",
        "conda as the file of source",
        "source reads a file; activate is a word of the conda command.",
        "Write conda activate ENV.",
        _S + "source conda activate env\nsrun python t.py\n",
        _S + "source ~/conda/etc/profile.d/conda.sh\nconda activate env\nsrun python t.py\n",
        _source_conda,
        source=_CONDA,
    ),
    _FAMILY.rule(
        "export-without-all",
        "error",
        "srun --export without ALL",
        "The list replaces the environment: PATH, the activated environment and the rendezvous are gone.",
        "Begin the list with ALL.",
        _S + "srun --export=A=1 python t.py\n",
        _S + "srun --export=ALL,A=1 python t.py\n",
        _export_list,
        source=_SRUN,
    ),
    _FAMILY.rule(
        "environment-missing",
        "warning",
        "no environment is activated",
        "The job runs with what the submitting shell happened to have, or the program is not found.",
        "Load modules or activate the environment in the script, before the launch.",
        _S + "srun accelerate launch t.py\n",
        _S + "source env/bin/activate\nsrun accelerate launch t.py\n",
        _none,
        source="https://slurm.schedmd.com/sbatch.html#OPT_export",
    ),
    _FAMILY.rule(
        "environment-not-remote",
        "warning",
        "an environment that stays on the first node",
        "ssh starts a new shell on the other node; what this shell loaded and exported does not travel.",
        "Activate it in the remote command, or call the environment's python by path.",
        _S + _HOSTS,
        _S + _HOSTS.replace('"python', '"source ~/env/bin/activate && python'),
        _remote,
        source="https://man.openbsd.org/ssh",
    ),
    _FAMILY.rule(
        "setting-not-exported",
        "warning",
        "a variable that processes read is not exported",
        "A plain assignment stays in the batch shell.",
        "Write export before it.",
        _S + "NCCL_DEBUG=INFO\nsrun python t.py\n",
        _S + "export NCCL_DEBUG=INFO\nsrun python t.py\n",
        _not_exported,
        source="https://www.gnu.org/software/bash/manual/bash.html#Environment",
    ),
    _FAMILY.rule(
        "module-without-login-shell",
        "warning",
        "module in a shell that has none",
        "PBS starts the script without the profile that defines module.",
        "Make the first line #!/bin/bash -l, or source /etc/profile.",
        "#!/bin/sh\n" + _P,
        "#!/bin/bash -l\n" + _P,
        _module_shell,
        source="https://docs.alcf.anl.gov/running-jobs/ (#!/bin/bash -l)",
    ),
)
