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


def add_site(name: str, scheduler: str | None, folder: Path | None, force: bool, as_json: bool) -> None:
    """Write the file and say what to do with it."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name) or name.lower().endswith(".toml"):
        raise RequestError(f"{name!r} is no name for a site: use letters, digits and . _ + - without blanks")
    catalogue = Catalogue.load()
    target = expanded(str(folder), "--path") if folder else user_folder(catalogue.environ)
    if target is None:
        raise ConfigurationError("there is no home folder to write to; name a folder with --path")
    path = target / f"{name}.toml"
    known = _known(catalogue, name, path)
    text = own_changes(known) if known else new_site(name, _scheduler(scheduler))
    write(path, text, force)
    now = Catalogue.load(catalogue.environ, catalogue.cwd, catalogue.shipped)
    read = path.absolute() in (file.absolute() for file in now.files(known or name))
    if as_json:
        emit_json({"name": known or name, "file": path, "new": not known, "read": read})
        return
    use = known or name if read else str(path)
    lines = [f"written: {path}"]
    if known:
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
