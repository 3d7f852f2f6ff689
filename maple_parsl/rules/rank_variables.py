"""Rank variables expanded on the first node, or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import mending, parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Heredoc, Launch, Place
from maple_parsl.script.rankmap import LaunchRanks
from maple_parsl.script.values import Value
from maple_parsl.script.variables import PER_TASK, SIZES

_RANKS = (PER_TASK | SIZES) - {"HOSTNAME", "SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR", "SLURM_TASK_PID", "SLURM_GTIDS"}
_ESCAPED = re.compile(r"\\\$\{?([A-Za-z_]\w*)")
_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n"


def _early(value: Value) -> str | None:
    """The rank variable that was expanded in the batch shell."""
    for symbol in value.symbols:
        if symbol.kind == "batch_zero" or (symbol.kind == "unset" and symbol.detail in _RANKS):
            return symbol.detail
    return None


def _processes(ranks: LaunchRanks, name: str) -> int | None:
    if "NODE" in name:
        return ranks.nodes
    if ranks.nodes is None or ranks.outer_per_node is None:
        return None
    return ranks.outer_per_node if "LOCAL" in name else ranks.nodes * ranks.outer_per_node


def _values(launch: Launch) -> Iterator[tuple[Value, Place, str]]:
    """Options, words and environment of a launch and those inside."""
    for part in launch.all:
        for option in part.options:
            yield option.value, option.place, option.flag
        shell = any(w.kind == "shell" for w in part.wrappers)
        for word in part.program:
            if not (shell and part.children):
                yield word.value, word.place, "the program"
    for variable in launch.leaf.environment.values():
        yield variable.value, variable.place, variable.name


def _expanded_early(subject: Subject) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    inside = {line for document in subject.script.heredocs for line in document_lines(document)}
    for ranks in subject.launches:
        launch = ranks.launch
        if not parts.stepped(launch) or parts.is_tool(launch):
            continue
        for value, place, what in _values(launch):
            name = _early(value)
            if name is None or place.line in inside or _processes(ranks, name) == 1 or not parts.once(seen, place):
                continue
            known = _processes(ranks, name) is not None
            number = "0" if value.has("batch_zero") else "empty"
            yield Found(
                f"{what} takes {name} in the batch shell, where it is {number}; every process gets the same",
                place,
                severity="error" if known or value.has("batch_zero") else "warning",
                fix=f"expand it in each process: {launch.launcher} … bash -c '… ${name} …' in single quotes",
                edits=mending.in_each_process(subject, launch, place),
            )


def document_lines(document: Heredoc) -> range:
    """Lines of a here-document's body."""
    return range(document.place.line, document.place.line + document.text.count("\n") + 1)


def _in_heredoc(subject: Subject) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    named = [r for r in subject.script.all_references if r.name in _RANKS and r.context == "batch"]
    for document in subject.script.heredocs:
        if not document.expands or not (document.run_by or document.submitted or document.file is not None):
            continue
        lines = document_lines(document)
        for reference in named:
            if reference.place.line in lines and parts.once(seen, reference.place):
                yield Found(
                    f"{reference.name} is expanded while the file is written, not where it runs:"
                    " the end mark of the here-document is not quoted",
                    reference.place,
                    fix=f"quote the end mark: <<'{document.delimiter}', or write \\${reference.name}",
                )


def _in_batch(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if not parts.has_directives(subject) or parts.fewest_nodes(subject) < 2:
        return
    inside = {line for document in script.heredocs for line in document_lines(document)}
    seen: set[int] = set()
    for name in ("SLURM_LOCALID", "SLURM_NODEID", "SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK"):
        for reference in script.references(name, "batch"):
            line = reference.place.line
            if reference.launcher or line in seen or line in inside:
                continue
            if reference.operator.startswith((":-", "-", ":+", "+")):
                continue
            if reference.command in ("echo", "printf") and not _passed_on(subject.lines[line - 1 : line]):
                continue  # only shown
            seen.add(line)
            yield Found(
                f"{name} is read by the batch shell, which runs once, on the first node",
                reference.place,
                fix="what should happen on every node or in every process belongs behind srun or mpiexec",
            )


def _passed_on(rows: tuple[str, ...]) -> bool:
    return any(re.search(r"[>|]|(?:\$\(|`)\s*(?:echo|printf)\b", row) for row in rows)


def _escaped(subject: Subject) -> Iterator[Found]:
    for launch in subject.script.all_launches:
        for part in launch.wrappers:
            if part.kind != "shell":
                continue
            index = len(part.words)
            words = launch.program
            body = next((w for w in words if w.quote == "'" and w.place > part.words[-1].place), None)
            if body is None or index == 0 or body.value.text is None:
                continue
            for match in _ESCAPED.finditer(body.value.text):
                before = body.value.text[: match.start()]
                if before.count('"') % 2 or before.count("`") % 2:
                    continue
                yield Found(
                    f"inside single quotes the backslash stays, so the inner shell passes on the characters"
                    f" ${match[1]} instead of its value",
                    body.place,
                    fix=f"${match[1]} without the backslash",
                    edits=parts.replace_text(subject, body.place, match[0], match[0][1:], safe=True),
                )
                break


def _literally(subject: Subject) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    shells = {
        word.place.line
        for command in subject.script.commands
        if any(w.value.text in ("bash", "sh", "/bin/bash", "/bin/sh", "eval") for w in command.words)
        for word in command.words
    }
    for reference in subject.script.all_references:
        if reference.context != "never" or not reference.launcher or reference.place.line in shells:
            continue
        if (reference.name in _RANKS or reference.name.startswith(("SLURM_", "PBS_", "MASTER_"))) and parts.once(
            seen, reference.place
        ):
            yield Found(
                f"{reference.command} gets the characters ${reference.name}: no shell stands between to expand them",
                reference.place,
                fix="start a shell in each process: bash -c '…'"
                if reference.name in _RANKS
                else "leave out the quotes or the backslash",
            )


def _not_exported(subject: Subject) -> Iterator[Found]:
    seen: set[tuple[int, int]] = set()
    for reference in subject.script.all_references:
        if reference.context != "task" or not reference.assigned or reference.exported or reference.operator:
            continue
        if not reference.value.has("unset") or not parts.once(seen, reference.place):
            continue
        first = next((a for a in subject.script.assigned(reference.name) if a.context == "batch"), None)
        if first is None or not (reference.launcher or reference.command):
            continue
        yield Found(
            f"{reference.name} is set in the batch shell but not exported, so it is empty in the processes",
            reference.place,
            fix=f"export {reference.name}",
            edits=parts.replace_text(
                subject,
                first.place,
                subject.lines[first.place.line - 1],
                f"export {subject.lines[first.place.line - 1]}",
            )
            if subject.lines[first.place.line - 1].startswith(f"{reference.name}=")
            else (),
        )


RULES = (
    Rule(
        id="rank-expanded-early", fault_class="RANK_EXPANSION_QUOTING", severity="error",
        title="a rank variable is expanded before the processes exist",
        why="Unquoted or in double quotes, $SLURM_PROCID, $SLURM_NODEID and their like are expanded by the batch shell,"
        " where they are 0 or empty; every process then has the same rank.",
        source="https://www.gnu.org/software/bash/manual/html_node/Double-Quotes.html",
        fix="Expand them in each process, behind bash -c in single quotes.",
        bad=_HEAD + "export RANK=$SLURM_PROCID\nexport WORLD_SIZE=$SLURM_NTASKS\nsrun python train.py\n",
        good=_HEAD + "export WORLD_SIZE=$SLURM_NTASKS\nsrun bash -c 'RANK=$SLURM_PROCID python train.py'\n",
        check=_expanded_early,
    ),
    Rule(
        id="rank-in-heredoc", fault_class="RANK_EXPANSION_QUOTING", severity="error",
        title="a rank variable in a here-document that is expanded at once",
        why="Without quotes around the end mark, variables are expanded when the file is written.",
        source="https://www.gnu.org/software/bash/manual/html_node/Redirections.html#Here-Documents",
        fix="Quote the end mark.",
        bad=_HEAD + "cat > run.sh <<EOF\nexport RANK=$SLURM_PROCID\npython train.py\nEOF\nsrun bash run.sh\n",
        good=_HEAD + "cat > run.sh <<'EOF'\nexport RANK=$SLURM_PROCID\npython train.py\nEOF\nsrun bash run.sh\n",
        check=_in_heredoc,
    ),
    Rule(
        id="rank-in-batch-shell", fault_class="RANK_EXPANSION_QUOTING", severity="warning",
        title="a rank variable in the batch shell of a multi-node job",
        why="The batch shell runs once; per-node preparation written there happens on the first node only.",
        source="https://slurm.schedmd.com/sbatch.html (SLURM_NODEID, SLURM_LOCALID, SLURM_PROCID)",
        fix="Move it behind the launcher.",
        bad=_HEAD + "mkdir -p /tmp/cache-$SLURM_NODEID\nsrun python train.py\n",
        good=_HEAD + "srun bash -c 'mkdir -p /tmp/cache-$SLURM_NODEID'\nsrun python train.py\n",
        check=_in_batch,
    ),
    Rule(
        id="escaped-in-single-quotes", fault_class="RANK_EXPANSION_QUOTING", severity="error",
        title="a backslash before $ inside single quotes",
        why="Single quotes keep the backslash; the inner shell then takes \\$ for a dollar sign and expands nothing.",
        source="https://github.com/Lumi-supercomputer/LUMI-AI-Guide/pull/115",
        fix="Inside single quotes write $NAME.",
        bad=_HEAD + "srun bash -c 'RANK=\\$SLURM_PROCID python train.py'\n",
        good=_HEAD + "srun bash -c 'RANK=$SLURM_PROCID python train.py'\n", check=_escaped,
    ),
    Rule(
        id="rank-passed-literally", fault_class="RANK_EXPANSION_QUOTING", severity="error",
        title="a variable reaches the program unexpanded",
        why="A launcher starts the program itself, without a shell: quoted or escaped variables stay characters.",
        source="https://slurm.schedmd.com/srun.html (executable and args)",
        fix="Put bash -c '…' between.",
        bad=_HEAD + "srun torchrun --nnodes=2 --node-rank=\\$SLURM_NODEID train.py\n",
        good=_HEAD + "srun bash -c 'torchrun --nnodes=2 --node-rank=$SLURM_NODEID train.py'\n", check=_literally,
    ),
    Rule(
        id="variable-not-exported", fault_class="RANK_EXPANSION_QUOTING", severity="error",
        title="a variable of the batch shell is not exported",
        why="The shell that a launcher starts sees exported variables only.",
        source="https://www.gnu.org/software/bash/manual/html_node/Environment.html",
        fix="export it.",
        bad=_HEAD + "HEAD=$(hostname)\nsrun bash -c 'python train.py --master $HEAD'\n",
        good=_HEAD + "export HEAD=$(hostname)\nsrun bash -c 'python train.py --master $HEAD'\n", check=_not_exported,
    ),
)  # fmt: skip
