"""Case: the world a script has to make true, said without a word about how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maple_parsl.errors import RequestError


class Program(BaseModel):
    """What has to run once per device.

    Attributes:
        script: the program as the user named it; relative to the folder of submission.
        args: its arguments. exact: these and no others; otherwise each, in this order, may stand among others.
        anywhere: the script may lie in any folder, only its name counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    script: str
    args: tuple[str, ...] = ()
    exact: bool = True
    anywhere: bool = False


class Case(BaseModel):
    """What was asked for.

    Attributes:
        site: a site of the judge's table. nodes, devices_per_node: shape; one process per device.
        minutes: walltime. account, queue: as stated. kind: kind of node, where the queue has several.
        env: variables every process must have. modules, conda, venv, container: environment of the program.
        ranks: where the program reads its place: torch's variables, or those of the launcher itself.
        exclusive: whole nodes were asked for. backend: another collective backend than the device's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    site: str
    nodes: int = Field(ge=1, le=64)
    devices_per_node: int = Field(ge=1, le=16)
    minutes: float | None = None
    account: str | None = None
    queue: str | None = None
    kind: str | None = None
    program: Program
    env: dict[str, str] = {}
    modules: tuple[str, ...] = ()
    conda: str | None = None
    venv: str | None = None
    container: str | None = None
    ranks: Literal["torch", "launcher"] = "torch"
    exclusive: bool = False
    backend: str | None = None

    @property
    def world_size(self) -> int:
        return self.nodes * self.devices_per_node


def read_case(path: Path) -> Case:
    """Read a case from a JSON file; raises :class:`RequestError`."""
    try:
        return Case.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise RequestError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, item['loc'])) or 'case'}: {item['msg']}" for item in error.errors()]
        raise RequestError(f"{path} is not a case: {'; '.join(lines)}") from None
    except ValueError as error:
        raise RequestError(f"{path} is not JSON: {error}") from None
