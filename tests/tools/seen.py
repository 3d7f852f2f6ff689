"""Which signatures of failures match a message in the sources of the programs that print them.

    python -m tests.tools.seen torch=DIR slurm=DIR.git ... [--write]

A DIR is a folder (also an installed package: messages in shared libraries are read too) or a bare git repository.
Each line of a source is tried as it stands and with its gaps (``%d``, ``{name}``) filled by a number and by a name.
With ``--write`` the key ``seen`` of each signature in failures.toml names the files.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from maple_parsl.data import data_folder
from maple_parsl.diagnosis.engine import PatternSet
from maple_parsl.diagnosis.signature import load_signatures

_TEXT = {".py", ".pyx", ".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".lua", ".txt", ".l", ".rs", ".def", ".rst"}
_FORMAT = r"%[-+ #0]*[\d*]*(?:\.\d+)?(?:hh|ll|[hlzjt])?[diouxXsSuvqcpP]"
_GAP = re.compile(_FORMAT + r"|\{[^{}\"]{0,60}\}|\"\s*(?:<<|PRI\w+)[^\"]*\"")
_PRINTED = re.compile(rb"[\x20-\x7e]{8,600}")
_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|testsuite|docs?|examples?|benchmarks?)/|test_|_test\.")
FILES, PROJECTS = 2, 4  # named of one signature
FILLS = ("12", "name", "RANK", "localhost")


def lines(place: Path) -> Iterator[tuple[str, str]]:
    """File and line of all texts of a project."""
    if (place / "HEAD").exists():
        shown = ["git", f"--git-dir={place}", "grep", "-I", "--no-color", "-E", "[\"'`]|^[A-Z#]", "HEAD", "--"]
        found = subprocess.run([*shown, *(f"*{end}" for end in _TEXT)], capture_output=True, check=False).stdout
        for row in found.decode("utf-8", "replace").split("\n"):
            _, _, rest = row.partition(":")
            name, _, text = rest.partition(":")
            yield name, text
        return
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    for path in files:
        name = str(path.relative_to(place)) if place != path else path.name
        if path.suffix in _TEXT:
            for text in path.read_text(encoding="utf-8", errors="replace").split("\n"):
                yield name, text
        elif ".so" in path.name or place == path:
            for found in _PRINTED.findall(path.read_bytes()):
                yield name, found.decode()


def seen(projects: Iterable[tuple[str, Path]]) -> dict[str, dict[str, list[str]]]:
    """Signature -> project -> files in which one of its patterns matches."""
    signatures = load_signatures({}).failure
    owners = [(entry, pattern) for entry in signatures for pattern in entry.any]
    every = PatternSet([pattern for _, pattern in owners])
    result: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for project, place in projects:
        for name, text in lines(place):
            if _TESTS.search(name) or len(text) < 6:
                continue
            text = text[:600]
            forms = {text, *(_GAP.sub(fill, text) for fill in FILLS)} if _GAP.search(text) else {text}
            for index in {index for form in forms for index in every.matches(form.encode())}:
                files = result[owners[index][0].id][project]
                if name not in files:
                    files.append(name)
    return result


def write(found: dict[str, dict[str, list[str]]]) -> None:
    """Put the key ``seen`` behind the key ``source`` of each signature."""
    path = data_folder("agents") / "correction" / "failures.toml"
    rows, current = [], ""
    for row in path.read_text(encoding="utf-8").split("\n"):
        if mark := re.match(r'id = "(.*)"', row):
            current = mark[1]
        if row.startswith("seen = "):
            continue
        rows.append(row)
        if row.startswith("source = ") and current in found:
            said = [f"{project}: {', '.join(files[:FILES])}" for project, files in sorted(found[current].items())]
            rows.append("seen = [" + ", ".join(f'"{one}"' for one in said[:PROJECTS]) + "]")
    path.write_text("\n".join(rows), encoding="utf-8")


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" in word]
    found = seen([(name, Path(place)) for name, _, place in (word.partition("=") for word in words)])
    every = [entry.id for entry in load_signatures({}).failure]
    print(f"{len(found)} of {len(every)} signatures seen; not: {', '.join(x for x in every if x not in found)}")
    if "--write" in sys.argv:
        write(found)


if __name__ == "__main__":
    main()
