"""Fill a run directory: the script, what it was made from, and the programs it starts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from maple_parsl.errors import RequestError, StoreError
from maple_parsl.plan import Plan
from maple_parsl.runs import files
from maple_parsl.runs.snapshot import snapshot

SCRIPT = "script.sh"


def check_script(plan: Plan, cwd: Path) -> None:
    """The user's program must be there before anything queues for it.

    With a container its path may be inside the image, so only paths on this machine are looked at.

    Raises:
        RequestError: it does not exist, is a folder, or cannot be read.
    """
    request = plan.request
    if request.script is None:
        return
    path = cwd / os.path.expanduser(request.script)
    if path.is_dir():
        raise RequestError(f"the script {request.script} is a folder; name the program in it")
    if not path.exists():
        if request.environment.container and os.path.isabs(request.script):
            return
        hint = _nearby(path)
        raise RequestError(f"there is no script {request.script} in {cwd}{hint}")
    if not path.is_file():
        raise RequestError(f"the script {request.script} is not a regular file, so reading it might never end")
    if not os.access(path, os.R_OK):
        raise RequestError(f"the script {path} cannot be read: permission denied")


def _nearby(path: Path) -> str:
    import difflib

    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=2)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def prepare(plan: Plan, cwd: Path) -> Path:
    """Create and fill the run directory of a plan with a place; the path of its script (0755).

    Raises:
        StoreError: the folder cannot be written, or another run is in it.
        RequestError: the working tree is too large for ``--snapshot``.
    """
    assert plan.place is not None
    check_script(plan, cwd)
    folder = Path(plan.place.run_dir)
    _claim_folder(folder)
    if plan.request.snapshot:
        snapshot(cwd, folder / "snapshot")
    fill(plan, folder)
    return folder / SCRIPT


def fill(plan: Plan, folder: Path, script: str = SCRIPT) -> None:
    """Put the script, the request, the plan and the mini-apps into a folder.

    Raises:
        StoreError: a file cannot be written.
    """
    files.write(folder / script, plan.script)
    files.write(folder / "request.json", plan.request.model_dump(mode="json", exclude_defaults=True))
    files.write(folder / "plan.json", plan.to_json())
    try:
        os.chmod(folder / script, 0o755)
        if plan.miniapp:
            copy_miniapps(folder / "miniapps")
    except OSError as error:
        raise files.explained(error.filename or folder, error, "written") from None


def copy_miniapps(target: Path) -> None:
    """Copy the training programs; they import nothing of Maple."""
    source = Path(__file__).resolve().parent.parent / "miniapps"
    if not source.is_dir():
        raise StoreError("this installation of maple-parsl lacks its mini-apps; install it again")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"), dirs_exist_ok=True)


def _claim_folder(folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.explained(folder.parent, error, "created") from None
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise StoreError(f"{folder} exists already and belongs to another run; nothing was submitted") from None
    except OSError as error:
        raise files.explained(folder, error, "created") from None
