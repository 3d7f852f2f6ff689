"""Small JSON files on file systems shared by many machines: rename and O_EXCL only, no locks.

Every failure is a :class:`StoreError` that names the file and says what to do.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import os
import socket
import stat
from pathlib import Path
from typing import Any, BinaryIO

from maple_parsl.errors import StoreError

LARGEST = 16 << 20
"""More bytes than this is no file of ours."""

_ELSEWHERE = "name another folder (MAPLE_HOME for Maple's records, --run-root for run directories)"
_REASONS = {
    errno.ENOSPC: f"the disk is full; free some space, or {_ELSEWHERE}",
    errno.EDQUOT: f"your disk quota is used up; free some space, or {_ELSEWHERE}",
    errno.EACCES: f"permission denied; {_ELSEWHERE}",
    errno.EPERM: f"permission denied; {_ELSEWHERE}",
    errno.EROFS: f"the file system is read-only; {_ELSEWHERE}",
    errno.EEXIST: "something that is not a folder is in its place; move it away",
    errno.ENOENT: "there is no such folder",
    errno.ENOTDIR: "a part of this path is a file, not a folder; move it away",
    errno.ELOOP: "its symbolic links lead in a circle",
    errno.ENAMETOOLONG: "its name is too long for this file system",
    errno.ESTALE: "the network file system lost it; try again",
    errno.EIO: "the file system reports an error; try again, or ask its administrators",
}
_counter = itertools.count()


def explained(path: Path | str, error: OSError, doing: str) -> StoreError:
    """An operating system's error as a :class:`StoreError` in plain words."""
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    return StoreError(f"{path} cannot be {doing}: {reason}")


def make_folder(path: Path) -> None:
    """Create a private folder (0700) and its parents; fine when it is there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise StoreError(f"{path} is in the way: it should be a folder; move it away") from None
    except OSError as error:
        raise explained(path, error, "created") from None


def write(path: Path, value: Any) -> None:
    """Put a file in place at once and whole (0600); an older one is replaced."""
    temporary = _temporary(path)
    try:
        _fill(temporary, value)
        os.replace(temporary, path)
    except OSError as error:
        raise explained(path, error, "written") from None
    finally:
        _forget(temporary)


def create(path: Path, value: Any) -> bool:
    """Create a file that must not exist yet; False when another process was first.

    A hard link appears whole or not at all; where a file system has no hard links, O_EXCL decides.
    """
    temporary = _temporary(path)
    try:
        _fill(temporary, value)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return os.stat(temporary).st_nlink == 2  # NFS may report a retried success as failure
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES):
                raise
            return _exclusive(path, value)
        return True
    except OSError as error:
        raise explained(path, error, "written") from None
    finally:
        _forget(temporary)


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; OSError for a pipe or a device, whose reading might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(code, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file", str(path))


def read(path: Path) -> dict[str, Any] | None:
    """The object in a file, or None when there is no such file; StoreError for anything else."""
    try:
        with open_regular(path) as file:
            raw = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder, where a file of Maple's should be; move it away") from None
    except OSError as error:
        raise explained(path, error, "read") from None
    if not raw.strip():
        raise damaged(path, "it is empty")
    if len(raw) > LARGEST:
        raise damaged(path, "it is far too large")
    try:
        value = json.loads(raw, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is not JSON ({str(error)[:80]})") from None
    if not isinstance(value, dict):
        raise damaged(path, "it is not a JSON object")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


def damaged(path: Path, why: str) -> StoreError:
    """What to say of a file that was written by something else, or cut short."""
    return StoreError(
        f"{path} is damaged: {why}. The job itself is not affected; look into the run directory for its"
        f" log and exit record, and move {path.parent} away to be rid of this message"
    )


def _temporary(path: Path) -> Path:
    # Unique across the machines that share the folder.
    return path.with_name(f".{path.name}.{socket.gethostname()[:40]}.{os.getpid()}.{next(_counter)}.tmp")


def _fill(path: Path, value: Any) -> None:
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=True) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())  # a full disk or quota may only be reported here


def _exclusive(path: Path, value: Any) -> bool:
    try:
        _fill(path, value)
    except FileExistsError:
        return False
    return True


def _forget(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
