"""Files no rule can say much about: what kept them from being read, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maple_parsl.finding import Finding, Severity
from maple_parsl.rules.asking import reads_as_shell
from maple_parsl.script.model import Script

RULE = "unreadable-script"
TITLE = "the file, or a part of it, cannot be read as a script"
WHY = "A file that is binary, empty, cut off or not UTF-8 is refused by the scheduler, or runs as something else."
SOURCE = "POSIX.1-2024, Shell Command Language (text files, quoting, here-documents)"
_ERROR: Severity = "error"
_WARNING: Severity = "warning"
_NOTE: Severity = "note"
# Kind of fault -> severity, message, what to do.
_FAULTS: dict[str, tuple[Severity, str, str]] = {
    "binary": (_ERROR, "this is a binary file, not a script", "name the batch script, not the program it starts"),
    "empty": (_ERROR, "the file is empty", "a batch script starts with a shebang and directives"),
    "utf16": (_ERROR, "the file is UTF-16, which no shell reads", "save it as UTF-8 without a byte order mark"),
    "nul": (_ERROR, "a NUL byte stands here; schedulers and shells cut or drop it", "remove the byte"),
    "bad_utf8": (_WARNING, "this is not valid UTF-8", "save the file as UTF-8"),
    "too_large": (_WARNING, "the file is too large; only its beginning was checked", "keep data out of the script"),
    "unterminated_quote": (_ERROR, "a quote is opened here and never closed", "close the quote"),
    "unterminated_heredoc": (_ERROR, "a here-document starts here and never ends", "end it with its word, alone"),
    "too_deep": (_NOTE, "nesting is too deep to follow; what is inside was not checked", "nest less"),
    "too_complex": (_NOTE, "this is too complex to follow; the rest was not checked", "split the script"),
    "malformed": (_NOTE, "a part of the script could not be followed and was not checked", "simplify this part"),
}
_LANGUAGE = (
    _NOTE,
    "this is a program in another language than the shell's; it was not followed",
    "name the batch script it writes",
)
_SHELL = ("unterminated_quote", "unterminated_heredoc", "malformed")
_WHOLE = ("binary", "empty", "utf16")


def unreadable(script: Script, said: Iterable[Finding]) -> Iterator[Finding]:
    """Findings for the faults of reading that no rule has spoken of."""
    formats = [f for f in said if f.fault_class == "SCRIPT_FORMAT"]
    lines = {f.line for f in formats}
    kinds = {f.kind for f in script.faults}
    done: set[str] = set()
    shell = reads_as_shell(script)
    for fault in script.faults:
        severity, message, fix = _FAULTS.get(fault.kind, (None, "", ""))
        if fault.kind in _SHELL and not shell:
            if done & set(_SHELL):
                continue
            severity, message, fix = _LANGUAGE
        if severity is None or fault.kind in done or fault.place.file:
            continue
        if fault.place.line in lines or (formats and fault.kind in _WHOLE):
            continue
        if fault.kind in ("nul", "bad_utf8") and kinds & {"binary", "utf16"}:
            continue
        done.add(fault.kind)
        yield Finding.model_validate(
            {
                "rule": RULE,
                "class": "SCRIPT_FORMAT",
                "severity": severity,
                "message": message,
                "line": fault.place.line,
                "column": fault.place.column,
                "evidence": fault.text or SOURCE,
                "fix": fix,
            }
        )
