"""Run directories at a site: every path stays inside its own, every file appears whole."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
import tempfile
from typing import Any

MARK = ".maple-root"
STORE = ".maple-files"
LARGEST_READ = 4 << 20
_RUN = re.compile(r"[a-z0-9][a-z0-9-]{5,60}\Z")
_SHA = re.compile(r"[0-9a-f]{64}\Z")


class Refused(Exception):
    """An operation that is not done, and why."""


def expanded_root(text: str) -> str:
    """The folder for run directories, with ``~`` and ``$NAME`` as they are here; created when missing."""
    missing = [name for name in re.findall(r"\$\{?(\w+)", text) if name not in os.environ]
    if missing:
        raise Refused(f"the folder {text!r} names the variable {missing[0]}, which is not set at the site")
    root = os.path.expandvars(os.path.expanduser(text))
    if not os.path.isabs(root):
        raise Refused(f"the folder {text!r} is not an absolute path; write one, ~/... or $NAME/...")
    root = os.path.normpath(root)
    if not re.match(r"/[\w./@+:,=-]*\Z", root):
        raise Refused(f"the folder {root!r} has characters that a batch script cannot take")
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        with open(os.path.join(root, MARK), "a"):
            pass
    except OSError as error:
        raise Refused(f"the folder {root} cannot be used: {error.strerror}") from None
    return root


def run_folder(root: str, run_id: str) -> str:
    """The directory of a run below a root that :func:`expanded_root` made."""
    if not _RUN.match(str(run_id)):
        raise Refused(f"{str(run_id)[:100]!r} is not the id of a run")
    if not os.path.isabs(root) or not os.path.exists(os.path.join(root, MARK)):
        raise Refused(f"{str(root)[:300]!r} is no folder for run directories")
    return os.path.join(root, run_id)


def inside(folder: str, name: str) -> str:
    """A file of a run directory; a name, or a link, that leads out of it is refused."""
    path = os.path.normpath(os.path.join(folder, name))
    real = os.path.realpath(path)
    if os.path.isabs(name) or not (real + os.sep).startswith(os.path.realpath(folder) + os.sep):
        raise Refused(f"{str(name)[:300]!r} is not inside the run directory")
    return path


def create(path: str, value: Any) -> bool:
    """Create a JSON file that must not exist yet; False when somebody was first. It appears whole."""
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
            return True
        except FileExistsError:
            return os.stat(temporary).st_nlink == 2  # a network file system may report a retried success as failure
        except OSError:  # no hard links here: O_EXCL decides
            try:
                with open(path, "x") as file:
                    json.dump(value, file)
                return True
            except FileExistsError:
                return False
    finally:
        os.unlink(temporary)


def read_json(path: str) -> Any:
    """A small JSON file, or None."""
    try:
        with open_regular(path) as file:
            found = json.loads(file.read(1 << 20).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def open_regular(path: str) -> Any:
    """Open a file for reading; a pipe or device, whose reading might never end, is an OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(22, "not a regular file", path)
    return os.fdopen(descriptor, "rb")


def stored(root: str, sha: str) -> str:
    """Where a file with this content is kept."""
    if not _SHA.match(str(sha)):
        raise Refused(f"{str(sha)[:100]!r} is not a SHA-256")
    return os.path.join(root, STORE, sha)


def keep(root: str, contents: dict[str, str]) -> None:
    """Keep files (base64) by their SHA-256, which must fit."""
    os.makedirs(os.path.join(root, STORE), mode=0o700, exist_ok=True)
    for sha, text in contents.items():
        path = stored(root, sha)
        if os.path.exists(path):
            continue
        data = base64.b64decode(text)
        if hashlib.sha256(data).hexdigest() != sha:
            raise Refused("a file arrived damaged; send it again")
        put(path, data)


def put(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file so that it appears whole."""
    handle, temporary = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(path))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def missing(root: str, hashes: list[str]) -> list[str]:
    """Which of these contents are not kept here."""
    return [sha for sha in hashes if not os.path.exists(stored(root, sha))]


def lay_out(root: str, folder: str, files: list[list[Any]]) -> None:
    """Fill a run directory from what is kept: ``[path, SHA-256, mode]`` each."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name, sha, mode in files:
        path = inside(folder, name)
        if os.path.exists(path):
            continue
        try:
            with open(stored(root, sha), "rb") as file:
                data = file.read()
        except OSError:
            raise Refused(f"{name} was not staged") from None
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        put(path, data, int(mode) & 0o755)
