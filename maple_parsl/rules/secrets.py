"""Secrets in scripts. What is found is never repeated in a message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.rules.required import PLACEHOLDER
from maple_parsl.script.model import Place

_TOKENS = {
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{20,}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})\b",
    "a GitLab token": r"\bglpat-[\w-]{15,}",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "an API key": r"\bsk-(?:[a-z]+-)*[A-Za-z0-9]{20,}",
    "a Slack token": r"\bxox[abprs]-[\w-]{10,}",
    "a private key": r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----",
    "a bearer token": r"(?i:\bbearer\s+)[A-Za-z0-9_\-.=]{20,}",
    "a password in an address": r"\b[a-z][a-z+.-]*://[^\s:/@$'\"]+:(?![$<{])[^\s@/'\"$]{3,}@",
    "a Weights & Biases key": r"(?i:wandb)[\w\s=:\"'-]*?\b[0-9a-f]{40}\b",
}
_ANY = [(name, re.compile(pattern)) for name, pattern in _TOKENS.items()]
_ONE_OF = re.compile("|".join(f"(?:{pattern})" for pattern in _TOKENS.values()))
_NAME = re.compile(
    r"(?:\A|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|CREDENTIALS?)\Z",
    re.I,
)
_FLAG = re.compile(r"--?[\w-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)\Z", re.I)
_HARMLESS = re.compile(
    r"\A(?:true|false|none|null|no|yes|\d{1,5}|/.*|\./.*|~.*|.*\.(?:txt|json|key|pem)|<.*|\*+|\.{3,})\Z", re.I
)
_WORDS = re.compile(r"\A[<\[{].*|.*(?:your|here|xxx|changeme|example|dummy|placeholder|tokenizer|eos|pad|bos).*", re.I)


def _real(text: str | None) -> bool:
    """Looks like the thing itself, not like a path, a switch or something to fill in."""
    return (
        bool(text)
        and len(text or "") >= 6
        and not (_HARMLESS.match(text or "") or _WORDS.match(text or "") or PLACEHOLDER.search(text or ""))
    )


HIDDEN = "(hidden)"
_ASSIGNED = re.compile(r"""\b([A-Za-z_]\w*)(\s*[=:]\s*)("[^"\n]*"|'[^'\n]*'|[^\s;&|"']+)""")


def hide(text: str) -> str:
    """The text with everything that looks like a secret replaced, for what is shown to others."""
    for _, pattern in _ANY:
        text = pattern.sub(HIDDEN, text)
    return _ASSIGNED.sub(lambda found: found[1] + found[2] + HIDDEN if _NAME.search(found[1]) else found[0], text)


def _secrets(subject: Subject) -> Iterator[Found]:
    done: set[int] = set()
    anything = _ONE_OF.search(subject.script.text)
    for number, text in enumerate(subject.lines if anything else (), 1):
        if len(text) > 4000:
            continue
        for name, pattern in _ANY:
            match = pattern.search(text)
            if match and not re.search(r"x{5,}|X{5,}|<", match[0]):
                done.add(number)
                yield Found(f"{name} stands in the script", Place(number, match.start() + 1))
                break
    for made in subject.script.assignments:
        if made.place.line in done or made.place.file or not _NAME.search(made.name):
            continue
        if made.value.is_const and not made.value.assumed and _real(made.value.text):
            done.add(made.place.line)
            yield Found(f"the value of {made.name} stands in the script", made.place)
    for command in subject.script.commands:
        words = command.words
        for index, word in enumerate(words):
            flag, mark, value = (word.value.text or "").partition("=")
            if command.place.line in done or not _FLAG.match(flag):
                continue
            if not mark:
                value = (words[index + 1].value.text or "") if index + 1 < len(words) else ""
            literal = "$" not in word.text and (
                mark or "$" not in (words[index + 1].text if index + 1 < len(words) else "")
            )
            if _real(value) and literal and not value.startswith("-"):
                done.add(command.place.line)
                yield Found(f"the value of {flag} stands in the script", word.place)


_S = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
RULES = (
    Rule(
        id="secret-in-script",
        fault_class="SECRET",
        severity="warning",
        title="a password, token or key in the script",
        why="Scripts are kept by the scheduler, copied into logs and repositories, and command lines are visible to every"
        " user of the node.",
        source="https://cheatsheetseries.owasp.org/cheatsheets/Secrets_Management_Cheat_Sheet.html",
        fix="Keep it in a file only you can read, and read it from there; replace the one that was exposed.",
        bad=_S + "export SERVICE_PASSWORD=correcthorse7\nsrun python t.py\n",
        good=_S + 'export SERVICE_PASSWORD="$(cat ~/.service)"\nsrun python t.py\n',
        check=_secrets,
    ),
)
