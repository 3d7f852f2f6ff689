"""``maple sites add``: a site file to fill in, which can be read as it stands and invents no fact."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from maple_parsl.catalogue import Catalogue, user_folder
from maple_parsl.cli.output import clean, console, emit_json
from maple_parsl.cli.sites.template import new_site, own_changes
from maple_parsl.errors import ConfigurationError, RequestError, UnknownNameError
from maple_parsl.folders import expanded

_COMMANDS = {"slurm": "sbatch", "pbs": "qsub"}


def add_site(
    name: str,
    scheduler: str | None,
    folder: Path | None,
    force: bool,
    as_json: bool,
    probe: bool = False,
    from_script: Path | None = None,
) -> None:
    """Write the file and say what to do with it.

    Args:
        probe: ask this machine's commands. from_script: a job script that works at the site.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name) or name.lower().endswith(".toml"):
        raise RequestError(f"{name!r} is no name for a site: use letters, digits and . _ + - without blanks")
    catalogue = Catalogue.load()
    target = expanded(str(folder), "--path") if folder else user_folder(catalogue.environ)
    if target is None:
        raise ConfigurationError("there is no home folder to write to; name a folder with --path")
    path = target / f"{name}.toml"
    known = _known(catalogue, name, path)
    if known and (probe or from_script):
        raise RequestError(f"{name} is known already; a draft is for a new site, so choose another name")
    said: list[str] = []
    if probe or from_script:
        text, said = _drafted(name, scheduler, probe, from_script)
    else:
        text = own_changes(known) if known else new_site(name, _scheduler(scheduler))
    write(path, text, force)
    now = Catalogue.load(catalogue.environ, catalogue.cwd, catalogue.shipped)
    read = path.absolute() in (file.absolute() for file in now.files(known or name))
    if as_json:
        emit_json({"name": known or name, "file": path, "new": not known, "read": read, "notes": said})
        return
    use = known or name if read else str(path)
    lines = [f"written: {path}", *said]
    if probe or from_script:
        lines += [
            "1. read it: what is commented out is unknown, EDIT marks what must be filled in",
            f"2. maple sites check {use}",
            f"3. maple sites test {use}       # two nodes for a few minutes, after showing what they cost",
        ]
    elif known:
        lines.append(f"{known} is known; the file is for your own changes. The result: maple sites show {use}")
    else:
        lines += [
            "1. fill in what is marked EDIT",
            f"2. maple sites check {use}",
            f"3. maple sites show {use}",
        ]
    if not read:
        lines.append(f"to use the site by name: export MAPLE_SITE_PATH={target.absolute()}")
    console().print(clean("\n".join(lines)), overflow="fold")


def _drafted(name: str, scheduler: str | None, probe: bool, script: Path | None) -> tuple[str, list[str]]:
    """The draft's text, and what a person should hear of it."""
    from maple_parsl.here import probe as probing

    shown: list[str] = []
    draft = None
    if script is not None:
        from datetime import date

        from maple_parsl.script import read

        try:
            content = script.read_bytes()
        except OSError as error:
            raise RequestError(
                f"the script {script} cannot be read: {(error.strerror or str(error)).lower()}"
            ) from None
        draft = probing.draft_of(read(content, script.name), name, os.uname().nodename, date.today())
        if "kind" not in draft.tables.get("scheduler", {}) and not probe and scheduler is None:
            raise RequestError(f"{script} is for neither Slurm nor PBS; say --scheduler slurm or --scheduler pbs")
    if probe:
        found, ask = probing.probed(name, _scheduler(scheduler))
        if draft is not None:
            found.lay_over(draft)
        draft = found
        silent = [command for command, answered in ask.asked.items() if not answered]
        shown.append(f"{len(ask.asked) - len(silent)} of {len(ask.asked)} commands answered; nothing was submitted")
        shown += [f"no answer: {', '.join(silent)}"] if silent else []
    assert draft is not None
    if scheduler is not None:
        draft.put("scheduler", "kind", _scheduler(scheduler), "stated with --scheduler")
    draft = probing.whole(draft)
    missing = draft.placeholders
    left = f"to fill in: {', '.join(missing)}" if missing else "nothing is left to fill in"
    shown.append(f"{draft.known} facts found; {left}")
    return probing.text(draft), shown


def write(path: Path, text: str, force: bool) -> None:
    """Write the file in one step; an existing one stays, unless ``force``."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigurationError(f"{path.parent} is not a folder; name another with --path") from None
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".new")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        if force and not path.is_dir():
            os.replace(temporary, path)
        else:
            _place(temporary, path, text)
    except FileExistsError:
        raise ConfigurationError(f"{path} exists; edit it, or replace it with --force") from None
    finally:
        Path(temporary).unlink(missing_ok=True)


def _place(temporary: str, path: Path, text: str) -> None:
    try:
        os.link(temporary, path)  # fails when the file exists, unlike a rename
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)


def _known(catalogue: Catalogue, name: str, path: Path) -> str | None:
    """The site's own name when another file than ``path`` already describes it."""
    files = catalogue.files(name)
    if not files or files[0].absolute() == path.absolute():
        return None
    return catalogue.get(name).site.name


def _scheduler(stated: str | None) -> str:
    if stated is not None:
        if stated.lower() not in _COMMANDS:
            raise UnknownNameError("scheduler", stated, _COMMANDS)
        return stated.lower()
    found = [kind for kind, command in _COMMANDS.items() if shutil.which(command)]
    if len(found) != 1:
        seen = "both sbatch and qsub are" if found else "neither sbatch nor qsub is"
        raise RequestError(f"{seen} on this machine; say --scheduler slurm or --scheduler pbs")
    return found[0]
