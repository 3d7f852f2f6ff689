"""The file itself: first line, characters, line ends, syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import documents, is_shell, row, submitted
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.model import Place

_UNREADABLE = {
    "binary": "this is not a text file",
    "utf16": "the file is UTF-16; no shell reads that",
    "empty": "the file is empty",
    "nul": "the file has a NUL byte",
}
_SYNTAX = {
    "unterminated_quote": "a quote is opened and not closed",
    "unterminated_heredoc": "a here-document has no end",
    "syntax": "the shell cannot read this",
}


def _no_shebang(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if (
        not submitted(subject)
        or not is_shell(subject)
        or script.format.shebang is not None
        or script.scheduler not in ("slurm", "pbs")
    ):
        return
    refused = script.scheduler == "slurm"
    yield Found(
        "the script has no #! line" + ("; sbatch refuses it" if refused else "; the login shell of the user reads it"),
        Place(1, 1),
        severity="error" if refused else "warning",
        edits=(Edit(first=1, last=1, text="#!/bin/bash", insert=True, safe=True),),
    )


def _late_shebang(subject: Subject) -> Iterator[Found]:
    shebang = subject.script.format.shebang
    if shebang is None or not shebang.late or shebang.place.line == 1 or not submitted(subject):
        return
    line = shebang.place.line
    yield Found(
        f"{shebang.text} stands on line {line}; only the very first line of a file says which shell runs it",
        shebang.place,
        edits=(
            Edit(first=1, last=1, text=shebang.text, insert=True, safe=True),
            Edit(first=line, last=line, text="", safe=True),
        ),
    )


def _env_options(subject: Subject) -> Iterator[Found]:
    shebang = subject.script.format.shebang
    match = re.match(r"#!\s*/usr/bin/env\s+(?!-)(\S+)\s+(\S.*)", shebang.text) if shebang else None
    if shebang and match and not shebang.late:
        yield Found(
            f"env is given one word, {match[1] + ' ' + match[2]!r}, and finds no program of that name",
            shebang.place,
            edits=(Edit(first=1, last=1, text=f"#!/bin/{match[1]} {match[2]}", safe=False),),
        )


def _line_ends(subject: Subject) -> Iterator[Found]:
    crlf = subject.script.format.crlf
    if crlf:
        last = len(subject.lines)
        yield Found(
            f"{len(crlf)} of {last} lines end as in Windows (carriage return, line feed)",
            Place(crlf[0], len(row(subject, crlf[0])) + 1),
            edits=(Edit(first=1, last=last, text="\n".join(subject.lines), safe=True),),
        )


def _byte_order_mark(subject: Subject) -> Iterator[Found]:
    if subject.script.format.bom:
        yield Found(
            "the file begins with a byte order mark, so the #! is not its beginning",
            Place(1, 1),
            edits=(Edit(first=1, last=1, text=row(subject, 1), safe=True),),
        )


def _unreadable(subject: Subject) -> Iterator[Found]:
    for fault in subject.script.faults:
        if fault.kind in _UNREADABLE:
            yield Found(_UNREADABLE[fault.kind], fault.place)
            return


def _odd_characters(subject: Subject) -> Iterator[Found]:
    inside = documents(subject)
    done: set[int] = set()
    for odd in subject.script.format.odd:
        line, column = odd.place.line, odd.place.column
        text = row(subject, odd.place)
        before = text[: column - 1]
        directive = before.startswith(("#SBATCH", "#PBS", "#BSUB", "#!"))
        if odd.in_comment or line in inside or line in done or (directive and " # " in before):
            continue
        if not directive and (before.count('"') % 2 or before.count("'") % 2 or before.lstrip().startswith("#")):
            continue  # part of a text in quotes
        after = text[column : column + 1]
        if not directive and odd.meant == "-" and (before[-1:].strip() or not re.match(r"[\w\u2010-\u2015-]", after)):
            continue
        done.add(line)
        fixed = text
        for other in subject.script.format.odd:
            if other.place.line == line:
                fixed = fixed.replace(other.character, other.meant)
        kind = {"-": "a dash", "'": "a quote", '"': "a quote", " ": "a blank", "": "an invisible character"}
        yield Found(
            f"U+{ord(odd.character):04X} looks like {kind.get(odd.meant, repr(odd.meant))} and is not the ASCII one",
            odd.place,
            edits=(Edit(first=line, last=line, text=fixed, safe=True),),
        )


def _blank_behind_backslash(subject: Subject) -> Iterator[Found]:
    run = {
        n
        for d in subject.script.heredocs
        if not d.run_by and not d.submitted
        for n in range(d.place.line, d.place.line + d.text.count("\n") + 1)
    }
    for place in subject.script.format.blank_after_backslash:
        if place.line not in run:
            text = row(subject, place).rstrip()
            yield Found(
                "a blank follows the backslash, so the command ends here and the next line is a command of its own",
                place,
                edits=(Edit(first=place.line, last=place.line, text=text, safe=True),),
            )


def _open_quote(subject: Subject) -> bool:
    """A plain count of quotes also ends within one."""
    inside = documents(subject)
    state = ""
    for number, text in enumerate(subject.lines, 1):
        if number in inside:
            continue
        skip = False
        for index, c in enumerate(text):
            if skip:
                skip = False
            elif c == "\\" and state != "'":
                skip = True
            elif state:
                state = "" if c == state else state
            elif c in "\"'":
                state = c
            elif c == "#" and (index == 0 or text[index - 1] in " \t;"):
                break
    return bool(state)


def _syntax(subject: Subject) -> Iterator[Found]:
    seen: set[str] = set()
    if not is_shell(subject):
        return
    for fault in subject.script.faults:
        if fault.kind in _SYNTAX and fault.kind not in seen:
            seen.add(fault.kind)
            unsure = fault.kind == "syntax" or (fault.kind == "unterminated_quote" and not _open_quote(subject))
            detail = f": {fault.text}" if fault.text and fault.kind == "syntax" else ""
            yield Found(
                _SYNTAX[fault.kind] + detail,
                fault.place,
                severity="warning" if unsure else "error",
            )


_NUMBERS = frozenset(
    "--nodes --ntasks --ntasks-per-node --cpus-per-task --gpus-per-node --gpus --gpus-per-task --mem"
    " --ntasks-per-gpu --cpus-per-gpu".split()
)
_TIME = re.compile(r"((?:\d+-)?\d+(?::\d+)+)(?=[A-Za-z#])(.*)\Z")
_COUNT = re.compile(r"((?:[A-Za-z]\w*:)?\d+)([A-Za-z_]{3,}.*|#.*)\Z")
_MEMORY = re.compile(r"(\d+(?:[KMGT]B?)?)(?<=[\dKMGTB])([A-Za-z_]{4,}.*|#.*)\Z")


def _lost_line_break(subject: Subject) -> Iterator[Found]:
    for directive in subject.script.directives:
        if directive.state != "effective" or not directive.value or directive.variables:
            continue
        value = directive.value
        match = None
        if directive.name in ("--time", "-l walltime") or (directive.scheduler == "lsf" and directive.name == "-W"):
            match = _TIME.match(value)
        elif directive.name in _NUMBERS:
            match = (_MEMORY if directive.name == "--mem" else _COUNT).match(value)
        stuck = match[2] if match else None
        if stuck is None and (mark := re.search(r"\S(#(?:SBATCH|PBS|BSUB)\b.*)", value)):
            stuck = mark[1]
        if not stuck:
            continue
        text = row(subject, directive.place)
        edits: tuple[Edit, ...] = ()
        if text.count(stuck) == 1:
            split = text.index(stuck)
            edits = (
                Edit(
                    first=directive.place.line,
                    last=directive.place.line,
                    text=text[:split].rstrip() + "\n" + text[split:],
                    safe=False,
                ),
            )
        yield Found(
            f"{stuck.split()[0]!r} is stuck to the value of {directive.flag}; a line break was lost here",
            directive.value_place or directive.place,
            edits=edits,
        )


_HEAD = "#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_DOC = "https://slurm.schedmd.com/sbatch.html"
_POSIX = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html"


_FAMILY = Family("SCRIPT_FORMAT")


_GOOD = "#!/bin/bash\n" + _HEAD + "srun python train.py\n"
RULES = (
    _FAMILY.rule(
        "shebang-missing",
        "error",
        "no #! line",
        "sbatch takes only files that begin with #!; other schedulers run the script with the user's login shell.",
        "Make #!/bin/bash the first line.",
        _HEAD + "srun python train.py\n",
        _GOOD,
        _no_shebang,
        source=_DOC,
    ),
    _FAMILY.rule(
        "shebang-late",
        "error",
        "the #! line is not the first",
        "The #! counts only as the first two bytes of a file. Behind a comment or an empty line it is a comment,"
        " and sbatch says that this does not look like a batch script.",
        "Move the #! line to the top.",
        "# licence\n" + _GOOD,
        _GOOD,
        _late_shebang,
        source=_DOC,
    ),
    _FAMILY.rule(
        "shebang-env-options",
        "error",
        "options behind env in the #! line",
        "Linux hands everything behind the program of a #! line over as one word, so env looks for a program whose"
        " name has blanks.",
        "Name the shell directly, or use env -S.",
        "#!/usr/bin/env bash -l\n" + _HEAD + "srun python train.py\n",
        _GOOD,
        _env_options,
        source="https://www.gnu.org/software/coreutils/manual/html_node/env-invocation.html (-S usage in scripts)",
    ),
    _FAMILY.rule(
        "line-ends-crlf",
        "error",
        "Windows line ends",
        "The carriage return becomes part of every last word; sbatch refuses a script with DOS line breaks.",
        "Convert the line ends (dos2unix).",
        _GOOD.replace("\n", "\r\n"),
        _GOOD,
        _line_ends,
        source=_DOC,
    ),
    _FAMILY.rule(
        "byte-order-mark",
        "error",
        "a byte order mark before the #! line",
        "An editor put three invisible bytes in front of the file, so it does not begin with #!.",
        "Save the file without a byte order mark.",
        "\ufeff" + _GOOD,
        _GOOD,
        _byte_order_mark,
        source=_DOC,
    ),
    _FAMILY.rule(
        "not-a-text",
        "error",
        "the file is no text a shell reads",
        "Shells and schedulers read plain text; NUL bytes and UTF-16 end or garble it.",
        "Write the script as plain UTF-8 text.",
        "#!/bin/bash\n#SBATCH --nodes=1\0\nsrun python train.py\n",
        _GOOD,
        _unreadable,
        source=_POSIX,
    ),
    _FAMILY.rule(
        "look-alike-character",
        "error",
        "a typographic dash, quote or blank in code",
        "Text copied from a document or web page carries dashes, quotes and blanks that the shell and the scheduler"
        " take for ordinary letters.",
        "Type the ASCII character.",
        "#!/bin/bash\n#SBATCH \u2013-nodes=1\nsrun python train.py\n",
        _GOOD,
        _odd_characters,
        source=_POSIX + " (2.2 quoting)",
    ),
    _FAMILY.rule(
        "blank-after-backslash",
        "error",
        "a blank behind the backslash at a line's end",
        "A backslash continues a line only where the line ends right behind it.",
        "Remove the blank.",
        "#!/bin/bash\n" + _HEAD + "srun \\ \n  python train.py\n",
        "#!/bin/bash\n" + _HEAD + "srun \\\n  python train.py\n",
        _blank_behind_backslash,
        source=_POSIX + " (2.2.1 escape character)",
    ),
    _FAMILY.rule(
        "shell-syntax",
        "error",
        "the shell cannot read the script",
        "The shell stops with a syntax error, often only when it comes to that line.",
        "Mend the syntax; bash -n FILE shows where the shell stops.",
        "#!/bin/bash\n" + _HEAD + 'srun python train.py "abc\n',
        _GOOD,
        _syntax,
        source=_POSIX + " (2.10 grammar)",
    ),
    _FAMILY.rule(
        "line-break-lost",
        "error",
        "two lines became one",
        "A copied script lost a line break: what followed is now part of an option's value.",
        "Put the line break back.",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time 00:50:00module purge\nsrun python train.py\n",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time 00:50:00\nmodule purge\nsrun python train.py\n",
        _lost_line_break,
        source=_DOC,
    ),
)
