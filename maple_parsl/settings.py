"""The agents' settings: ``agents/<agent>/agent.toml``, its prompt and examples."""

from __future__ import annotations

import json
import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maple_parsl.data import data_folder
from maple_parsl.errors import ConfigurationError
from maple_parsl.folders import expanded
from maple_parsl.request import explain

AGENTS = ("extraction", "retrieval", "verification", "correction")
BackendName = Literal["none", "transformers", "openai", "globus"]


class ModelSettings(BaseModel):
    """Which language model answers, and within which limits.

    Attributes:
        backend: ``none``, ``transformers`` (on this machine), ``openai`` (any compatible server) or ``globus``
            (endpoints that your site files name for inference).
        name: path or name of the model; with ``globus`` a site, or ``any``.
        url: the server's, ending in ``/v1``. key_env: the variable with its key.
        device: cuda, xpu or cpu; absent: the accelerator that is there.
        max_prompt, max_answer: tokens. timeout: seconds for one answer. max_bytes: of a server's answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    backend: BackendName = "none"
    name: str = ""
    url: str = ""
    key_env: str = "OPENAI_API_KEY"
    device: str | None = None
    max_prompt: int = Field(default=1500, ge=64, le=100_000)
    max_answer: int = Field(default=120, ge=16, le=4096)
    timeout: float = Field(default=20.0, gt=0, le=600)
    max_bytes: int = Field(default=65_536, ge=256)


class AgentSettings(BaseModel):
    """One agent.

    Attributes:
        model: its language model. rounds: at most so many proposals.
        fills: fields that a model may fill, each with words of which one must stand near the value.
        edits: fields of a request that a model may propose to change. examples: how many are shown to it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1] = 1
    name: str
    title: str
    model: ModelSettings = ModelSettings()
    rounds: int = Field(default=3, ge=0, le=3)
    fills: dict[str, tuple[str, ...]] = {}
    edits: tuple[str, ...] = ()
    examples: int = Field(default=2, ge=0, le=20)
    prompt: str = ""
    shown: tuple[dict[str, Any], ...] = ()


def agent(name: str) -> AgentSettings:
    """Settings of an agent; those in the folder MAPLE_AGENTS, laid out alike, come before the shipped ones.

    ``MAPLE_MODEL`` (such as ``transformers:/path/to/model``, ``openai:name@http://host:8000/v1`` or ``globus:any``)
    chooses the model of the agents that use one.

    Raises:
        ConfigurationError: a file cannot be read, or the model is not written in that form.
    """
    own = os.environ.get("MAPLE_AGENTS", "")
    folder = (expanded(own, "MAPLE_AGENTS") if own else data_folder("agents")) / name
    if own and not (folder / "agent.toml").is_file():
        folder = data_folder("agents") / name
    settings = _read(folder)
    chosen = os.environ.get("MAPLE_MODEL", "")
    if chosen and (settings.fills or settings.edits):
        return settings.model_copy(update={"model": settings.model.model_copy(update=_chosen(chosen))})
    return settings


@cache
def _read(folder: Path) -> AgentSettings:
    file = folder / "agent.toml"
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
        prompt = folder / "prompt.md.j2"
        raw["prompt"] = prompt.read_text(encoding="utf-8") if prompt.is_file() else ""
        examples = folder / "examples.jsonl"
        rows = examples.read_text(encoding="utf-8").splitlines() if examples.is_file() else []
        raw["shown"] = [json.loads(row) for row in rows if row.strip()]
        return AgentSettings.model_validate(raw)
    except ValidationError as error:
        raise ConfigurationError(f"agent {file}: {explain(error)}") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"agent {file}: {error}") from None


def _chosen(text: str) -> dict[str, str | float]:
    backend, _, rest = text.partition(":")
    if backend == "none":
        return {"backend": "none"}
    if backend == "transformers" and rest:
        return {"backend": backend, "name": rest}
    if backend == "globus" and rest:  # a worker that starts loads its model first
        return {"backend": backend, "name": rest, "timeout": 120.0}
    name, at, url = rest.rpartition("@")
    if backend == "openai" and at and name and url.startswith(("http://", "https://")):
        return {"backend": backend, "name": name, "url": url.rstrip("/")}
    raise ConfigurationError(
        f"MAPLE_MODEL {text!r}: write none, transformers:PATH, openai:NAME@http://HOST:PORT/v1, globus:SITE"
        " or globus:any"
    )
