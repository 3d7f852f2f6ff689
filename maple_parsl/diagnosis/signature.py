"""The signatures of failures: data of ``agents/correction/failures.toml`` and of the user's own files."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maple_parsl.data import data_folder
from maple_parsl.diagnosis.model import Where
from maple_parsl.errors import ConfigurationError


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class TextEdit(_Part):
    """A change of one line of the script: what ``find`` matches becomes ``put``."""

    find: str
    put: str


class When(_Part):
    """Values that replace those of the signature where every stated condition holds."""

    script: str | None = None
    no_script: str | None = None
    logs: str | None = None
    no_logs: str | None = None
    value: str | None = None
    site: str | None = None
    many_nodes: bool | None = None
    progress: bool | None = None

    fault_class: str | None = Field(None, alias="class")
    script_classes: tuple[str, ...] | None = None
    where: Where | None = None
    cause: str | None = None
    do: tuple[str, ...] | None = None
    sure: float | None = None
    edit: TextEdit | None = None


class Signature(_Part):
    """What a kind of failure prints; the keys are described in the file."""

    id: str
    fault_class: str = Field(alias="class")
    script: tuple[str, ...] = ()
    where: Where
    weight: int = Field(50, ge=0, le=100)
    any: tuple[str, ...] = Field(min_length=1)
    not_: tuple[str, ...] = Field((), alias="not")
    unless: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    count: int = 1
    accounting: bool = False
    cause: str
    do: tuple[str, ...]
    sure: float = Field(ge=0, le=1)
    source: str
    seen: tuple[str, ...] = ()
    when: tuple[When, ...] = ()


class Frames(_Part):
    """The class of exceptions of which one of the ``depth`` innermost frames is in a file that ``file`` matches."""

    fault_class: str = Field(alias="class")
    file: str
    depth: int = Field(6, ge=1)
    where: Where | None = None
    over: tuple[str, ...] = ()


class Signatures(_Part):
    """All signatures, and which classes of script checks each class of failure maps to."""

    classes: dict[str, tuple[str, ...]] = {}
    failure: tuple[Signature, ...] = ()
    frames: tuple[Frames, ...] = ()

    def __hash__(self) -> int:
        return hash(tuple((entry.id, len(entry.any)) for entry in self.failure))

    def script_classes(self, fault_class: str) -> tuple[str, ...]:
        return self.classes.get(fault_class, ())


def load_signatures(environ: Mapping[str, str] | None = None) -> Signatures:
    """The shipped signatures, with the user's added; entries of a later file replace earlier ones by id."""
    environ = os.environ if environ is None else environ
    files = [data_folder("agents") / "correction" / "failures.toml"]
    if (own := _user_file(environ)) and own.is_file():
        files.append(own)
    files += [Path(name).expanduser() for name in environ.get("MAPLE_FAILURES", "").split(":") if name.strip()]
    return _merged(tuple((path, _state(path)) for path in files))


def _state(path: Path) -> tuple[int, int]:
    """Changes when the file does."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


@cache
def _merged(files: tuple[tuple[Path, tuple[int, int]], ...]) -> Signatures:
    classes: dict[str, tuple[str, ...]] = {}
    entries: dict[str, Signature] = {}
    frames: tuple[Frames, ...] = ()
    for path, _ in files:
        read = _read(path)
        classes |= read.classes
        frames += read.frames
        entries |= {entry.id: entry for entry in read.failure}
    for entry in entries.values():
        if entry.fault_class not in classes:
            raise ConfigurationError(f"failure {entry.id!r}: the class {entry.fault_class!r} is not in [classes]")
    return Signatures(classes=classes, failure=tuple(entries.values()), frames=frames)


def _read(path: Path) -> Signatures:
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return Signatures.model_validate(data)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{path}: {place}: {first['msg']}") from None


def _user_file(environ: Mapping[str, str]) -> Path | None:
    if home := environ.get("MAPLE_CONFIG_HOME"):
        return Path(home).expanduser() / "failures.toml"
    base = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        if not environ.get("HOME"):
            return None
        base = os.path.join(environ["HOME"], ".config")
    return Path(base) / "maple" / "failures.toml"
