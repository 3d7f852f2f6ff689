"""``maple correct``: a script put right, as a diff. Nothing is submitted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.runs.run import Run
    from maple_parsl.site import Site


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE|RUN", help="The script, or the id of a run that failed.")],
    site: Annotated[str | None, typer.Option(help="The site: name, alias, or path of a site file.")] = None,
    log: Annotated[list[Path] | None, typer.Option(help="Log of the failed job; repeat.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the corrected script to this file too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Correct a launch script, or the launch of a failed run, and print the difference. Nothing is submitted.

    Exit code 0: the corrected script has no finding of error severity. 1: something is left. 2: bad input.
    """
    from maple_parsl.checking.difference import unified
    from maple_parsl.checking.files import read_file, save
    from maple_parsl.checking.project import Project
    from maple_parsl.correction import correct
    from maple_parsl.errors import ConfigurationError, RequestError

    if not file.exists() and (run := _run(str(file))) is not None:
        from maple_parsl.cli.correct_run import correct_run

        return correct_run(run, out, json)
    data = read_file(file)
    try:
        project = Project(Path.cwd(), site)
        known = project.check(data, str(file), file).site
        record = project.catalogue.get(known).site if known else None
    except ConfigurationError as error:
        raise RequestError(str(error)) from None
    text = data.decode("utf-8", "surrogateescape")
    diagnosis = _diagnosed(log, text, record) if log else None
    made = correct(text, diagnosis, record, name=str(file))
    new = made.text.encode("utf-8", "surrogateescape")
    changes = unified(data, new, str(file))
    if out is not None:
        save(out, new, file)
    if json:
        from maple_parsl.cli.output import emit_json

        dumped = made.model_dump(mode="json", by_alias=True)
        dumped["text"] = new.decode("utf-8", "replace")
        emit_json({**dumped, "file": str(file), "site": known, "correct": made.correct, "diff": changes})
    else:
        from maple_parsl.terminal import clean

        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(clean(changes).encode(encoding, "replace").decode(encoding))
        for note in made.notes:
            sys.stderr.write(f"note: {' '.join(clean(note).split())}\n")
        if not changes and made.correct:
            sys.stderr.write("nothing to correct\n")
    return 0 if made.correct else 1


def _run(name: str) -> Run | None:
    from maple_parsl.errors import MapleError
    from maple_parsl.runs.run import Run

    try:
        return Run.open(name)
    except MapleError:
        return None


def _diagnosed(logs: list[Path], script: str, site: Site | None) -> Diagnosis:
    from maple_parsl.diagnosis import LogSource, diagnose
    from maple_parsl.errors import RequestError

    for path in logs:
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise RequestError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    sources = [LogSource(str(path), path=path) for path in logs]
    return diagnose(sources, script=script, site=site)
