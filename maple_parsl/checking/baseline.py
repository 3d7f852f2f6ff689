"""Known findings, which are not reported again: told by rule and line text, so that moved lines stay known."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from maple_parsl.checking.report import FileReport
from maple_parsl.errors import ConfigurationError
from maple_parsl.finding import Finding

FORMAT = 1


def fingerprint(finding: Finding, row: str) -> str:
    """The same for the same rule on the same text, wherever it stands and however it is indented."""
    text = " ".join(row.split())
    return hashlib.sha256(f"{finding.rule}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]


def relative(file: str, folder: Path) -> str:
    """The file's name as the baseline holds it."""
    path = Path(file).absolute()
    try:
        return path.relative_to(folder.absolute()).as_posix()
    except ValueError:
        return path.as_posix()


def load(path: Path) -> Counter[tuple[str, str]]:
    """How often each (file, fingerprint) is known.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']!r}")
        return Counter((str(entry["file"]), str(entry["fingerprint"])) for entry in data["findings"])
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such baseline; maple check --write-baseline makes it") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"{path}: this is no baseline of maple check ({error})") from None


def subtract(file: FileReport, known: Counter[tuple[str, str]], folder: Path) -> FileReport:
    """The report without findings the baseline holds; each entry stands for one finding."""
    left = known.copy()
    new: list[Finding] = []
    old: list[Finding] = []
    name = relative(file.file, folder)
    for finding in file.findings:
        key = (name, fingerprint(finding, file.row(finding)))
        (old if left[key] > 0 else new).append(finding)
        left[key] -= 1
    return file.with_findings(new, old)


def dump(files: Iterable[FileReport], folder: Path) -> str:
    """A baseline that holds every finding of these files."""
    entries = [
        {
            "rule": finding.rule,
            "file": relative(file.file, folder),
            "fingerprint": fingerprint(finding, file.row(finding)),
            "text": " ".join(file.row(finding).split())[:200],
        }
        for file in files
        for finding in (*file.findings, *file.known)
    ]
    entries.sort(key=lambda entry: (entry["file"], entry["rule"], entry["fingerprint"]))
    return json.dumps({"format": FORMAT, "findings": entries}, indent=2) + "\n"
