"""Which statements of a script are the user's own, and which belong to the site or the launch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from maple_parsl.port import names
from maple_parsl.port.result import Fate, Part

if TYPE_CHECKING:
    from maple_parsl.port.program import Program
    from maple_parsl.port.statements import Statement
    from maple_parsl.script.model import Launch, Script
    from maple_parsl.site import Site

OURS = "# Written by Maple "
_MAPLE = re.compile(r"\b(?:MAPLE_|maple_)\w")
_STATED = "# stated in the request"
_HOOK = re.compile(r"conda shell\.\w+ hook|profile\.d/(?:conda|modules?|lmod)\.sh|/etc/profile\b|lmod/\S*init")
_SUBMIT_DIR = re.compile(r"cd\s+[\"']?\$\{?(?:SLURM_SUBMIT_DIR|PBS_O_WORKDIR|LS_SUBCWD|PWD)\}?[\"']?\s*(?:\|\|.*)?\Z")
_TALK = re.compile(r"(?:echo|printf|date|env|printenv|hostname|nvidia-smi|rocm-smi|module list|ulimit -a|pwd)\b")
_SOFTWARE = {"module": "a module of the site", "conda": "a conda environment", "venv": "a virtual environment"}
_FLAGS = {"module": "--module", "conda": "--conda", "venv": "--venv"}


@dataclass
class Sorted:
    """Parts in order; ``dropped``: variables that lines left behind had set."""

    parts: list[Part] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)

    def add(self, statement: Statement, fate: Fate, why: str, todo: str | None = None) -> None:
        self.parts.append(Part(line=statement.first, text=statement.text, fate=fate, why=why, todo=todo))


def classify(
    script: Script, rows: Iterable[Statement], launch: Launch, source: Site | None, program: Program
) -> Sorted:
    """Sort the statements of a script.

    Args:
        launch: the one that is carried over. source: the site it was written for, where known.
    """
    done = Sorted()
    ours = OURS in script.text
    comments: list[Statement] = []
    behind = False
    stated = False
    for statement in rows:
        text = statement.text.strip()
        if statement.comment:
            stated = text == _STATED if ours else False
            comments = [] if ours or text.startswith(("#!", "#SBATCH", "#PBS", "#BSUB")) else [*comments, statement]
            continue
        before = len(done.parts)
        if _launches(statement, launch, ours):
            behind = True
            done.add(statement, "replaced", "the launch")
        elif ours and not stated and not text.startswith("export MAPLE_MINIAPP="):
            _maples(done, script, statement, source)
        elif behind:
            _after(done, statement)
        else:
            _one(done, script, statement, source, program)
        if comments and done.parts[-1].fate == "kept" and len(done.parts) > before:
            done.parts[before:before] = [
                Part(line=c.first, text=c.text, fate="kept", why="a comment of the user's") for c in comments
            ]
        comments = []
    _unused(done, script, program)
    return done


def _launches(statement: Statement, launch: Launch, ours: bool) -> bool:
    return statement.text.lstrip().startswith("maple_launch ") if ours else statement.holds(launch.place.line)


def _maples(done: Sorted, script: Script, statement: Statement, source: Site | None) -> None:
    """Of a script of Maple's own, the user's set-up lines are kept; all else is written anew."""
    text = statement.text.strip()
    steps = [s for s in script.steps if statement.holds(s.place.line) and not s.place.file]
    machinery = _MAPLE.search(text) or text.startswith(("unset ", "export ", "set +eu", "MASTER_", "exec "))
    if machinery or statement.compound or text in names.site_lines(source) or _HOOK.search(text) or steps:
        done.add(statement, "replaced", "written anew")
    else:
        done.add(statement, "kept", "a line of the user's")


def _after(done: Sorted, statement: Statement) -> None:
    text = statement.text.strip()
    if _TALK.match(text) or text in ("wait", "exit", "exit $?", "maple_finish"):
        done.add(statement, "replaced", "the end of the job says it")
    else:
        done.add(statement, "left", "it comes after the launch", _look(text))


def _one(done: Sorted, script: Script, statement: Statement, source: Site | None, program: Program) -> None:
    text = statement.text.strip()
    if text in names.site_lines(source) or _HOOK.search(text) or _SUBMIT_DIR.match(text):
        done.add(statement, "replaced", "every job at the target begins with its own")
        return
    if _software(done, script, statement):
        return
    if any(statement.holds(one.place.line) and one.launcher for one in script.all_launches):
        done.add(statement, "left", "another command started on the nodes", _look(text))
        return
    assigned = {a.name for a in script.assignments if statement.holds(a.place.line) and not a.place.file}
    reasons = {name: names.why_of_site(name, source) for name in assigned}
    if assigned and all(reasons.values()) and statement.compound is None:
        done.dropped |= assigned
        done.add(statement, "replaced", next(why for why in reasons.values() if why))
        return
    if re.match(r"(?:trap|exec)\b", text):
        done.add(statement, "left", "it would take the place of the job's own signals or log", _look(text))
        return
    own = names.JOB_ID.sub("$MAPLE_JOB_ID", statement.text)
    scheduler = names.SCHEDULER.search(_bare(own))
    lost = sorted(name for name in done.dropped if _reads(text, name))
    if not scheduler and not lost:
        mixed = sorted(name for name, why in reasons.items() if why)
        also = f"line {statement.first} also sets {', '.join(mixed)}, which the launch or the site sets"
        why = "a line of the user's" if own == statement.text else "the job's id is $MAPLE_JOB_ID now"
        done.add(replace(statement, text=own), "kept", why, also if mixed else None)
        return
    what = scheduler[0] if scheduler else f"${lost[0]}"
    done.dropped |= assigned
    if _TALK.match(text) and statement.compound is None:
        done.add(statement, "replaced", f"a message about {what}")
    elif assigned and statement.compound is None:
        done.add(statement, "replaced", f"worked out from {what}")
    else:
        done.add(statement, "left", f"it uses {what} of the old scheduler", _look(text))


def _software(done: Sorted, script: Script, statement: Statement) -> bool:
    """Modules and environments are the site's; the user names those of the target."""
    text = " ".join(statement.text.split())
    for step in script.steps:
        if step.place.file or step.kind not in _SOFTWARE or not statement.holds(step.place.line):
            continue
        needless = "purge" in text or text.startswith(("module list", "conda deactivate", "deactivate"))
        instead = f"name what takes its place with {_FLAGS[step.kind]}; else the site's own PyTorch runs"
        done.add(statement, "left", _SOFTWARE[step.kind], None if needless else f"{text[:80]!r}: {instead}")
        return True
    return False


def _reads(text: str, name: str) -> bool:
    if re.search(rf"\$\{{?{name}\b", text):
        return True
    return ("((" in text or text.startswith("let ")) and re.search(rf"(?<![\w$]){name}\b(?!=)", text) is not None


def _unused(done: Sorted, script: Script, program: Program) -> None:
    """Plain assignments that only the old launch read go with it."""
    while True:
        kept = [part for part in done.parts if part.fate == "kept"]
        for part in kept:
            names_ = {a.name for a in script.assignments if a.place.line == part.line and a.how == "assign"}
            plain = re.match(r"\w+=\S*\Z", part.text.strip())
            read = any(_reads(other.text, name) for name in names_ for other in kept if other is not part)
            if plain and names_ and not read and not names_ & program.names and not _exported(script, names_):
                at = done.parts.index(part)
                done.parts[at] = part.model_copy(update={"fate": "replaced", "why": "only the old launch used it"})
                break
        else:
            return


def _exported(script: Script, names_: set[str]) -> bool:
    return any(a.exported for a in script.assignments if a.name in names_)


def _bare(text: str) -> str:
    """The text without its comments at the end of lines."""
    return re.sub(r"(?m)(?:^|\s)#.*$", "", text)


def _look(text: str) -> str:
    first = text.split("\n")[0]
    return f"{first[:60]!r} was left out: write it for the target where it is needed"
