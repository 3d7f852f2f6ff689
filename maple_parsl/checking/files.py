"""Reading script files, and writing mended ones without losing anything."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from maple_parsl.errors import RequestError

MOST = 64 << 20


def read_file(path: Path) -> bytes:
    """All bytes of a regular file or pipe.

    Raises:
        RequestError: it is missing, a folder, a device, larger than 64 MiB, or cannot be read.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise RequestError(f"{path}: this is a folder; name its scripts")
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise RequestError(f"{path}: this is a device or socket, not a script")
        with path.open("rb") as stream:
            data = stream.read(MOST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestError(f"{path}: {reason.lower()}") from None
    if len(data) > MOST:
        raise RequestError(f"{path}: larger than {MOST >> 20} MiB; this is no script")
    return data


def write_file(path: Path, old: bytes, new: bytes) -> None:
    """Replace a file's content in one step, keeping its mode and, for a link, the link.

    Raises:
        RequestError: the file is no longer what was checked, or cannot be written.
    """
    real = Path(os.path.realpath(path))
    name = None
    try:
        if not stat.S_ISREG(real.stat().st_mode):
            raise RequestError(f"{path}: not a regular file; nothing is written")
        handle, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(new)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, stat.S_IMODE(real.stat().st_mode))
        if real.read_bytes() != old:
            raise RequestError(f"{path}: changed while it was checked; nothing was written, try again")
        os.replace(name, real)
        name = None
    except OSError as error:
        raise RequestError(f"{path}: {(error.strerror or str(error)).lower()}; nothing was written") from None
    finally:
        if name is not None and os.path.exists(name):
            os.unlink(name)


def save(out: Path, data: bytes, source: Path) -> None:
    """Write a new file with the mode of the one it was made from.

    Raises:
        RequestError: it cannot be written.
    """
    try:
        out.write_bytes(data)
        out.chmod(source.stat().st_mode & 0o777)
    except OSError as error:
        raise RequestError(f"{out}: {(error.strerror or str(error)).lower()}") from None
