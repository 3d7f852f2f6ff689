"""Template: how a framework starts on the nodes of a job.

A template is a file in ``agents/retrieval/templates``; users add their own in the same form. Words in braces
are filled in by the plan: ``{python} {nodes} {devices} {world_size} {node_rank} {master_addr} {master_port}
{run_id} {hostfile} {precision} {dp} {tp} {pp} {zero_stage} {deepspeed_launcher}``.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator

from maple_parsl.errors import ConfigurationError, UnknownNameError
from maple_parsl.request import PARADIGMS, explain
from maple_parsl.site import Model, Name, Variable

Style = Literal["per-node", "per-device", "runner"]
WORDS = frozenset(
    "python nodes devices world_size node_rank master_addr master_port run_id hostfile precision"
    " dp tp pp zero_stage".split()
)
_AT_RUN_TIME = frozenset("python node_rank master_addr master_port run_id hostfile".split())
_BRACE = re.compile(r"\{([^{}]*)\}")


def _fillable(value: tuple[str, ...]) -> tuple[str, ...]:
    for text in value:
        found = _BRACE.findall(text)
        for name in found:
            if name not in WORDS:
                raise ValueError(f"{{{name}}} is not a word a plan fills in")
            word = f"{{{name}}}"
            last = len(found) == 1 and text.endswith(f"={word}")
            if name in _AT_RUN_TIME and text != word and not last:
                raise ValueError(f"{text!r}: {word} is known only when the job runs; write {word} or option={word}")
    return value


class Start(Model):
    """What one paradigm adds: options of the framework's launcher, and arguments of the program."""

    flags: tuple[str, ...] = ()
    program_args: tuple[str, ...] = ()

    @field_validator("flags", "program_args")
    @classmethod
    def _known_words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _fillable(value)


class Template(Model):
    """How a framework starts.

    Attributes:
        style: ``per-node`` starts one framework launcher on each node, which starts one process per device;
            ``per-device`` starts every process by the site's launcher; ``runner`` starts one command on the
            first node, which reaches the others itself (over ssh).
        command: the framework's launcher; empty for ``per-device``.
        wraps_program: whether the command takes any executable (``--no-python``), so that each process can be
            watched; else the program must be Python.
        paradigms: which paradigms it can start, with what each adds.
        exports: variables every process needs.
        backends: collective backends it works with (empty: all).
        needs: Python packages that must be importable.
        source: where the form is documented.
    """

    format: Literal[1] = 1
    name: Name
    title: str
    framework: str
    style: Style
    command: tuple[str, ...] = ()
    wraps_program: bool = True
    paradigms: dict[str, Start] = Field(min_length=1)
    exports: dict[Variable, str] = {}
    backends: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    max_nodes: int | None = None
    source: str
    note: str | None = None

    @field_validator("paradigms")
    @classmethod
    def _known_paradigms(cls, value: dict[str, Start]) -> dict[str, Start]:
        for name in value:
            if name not in PARADIGMS:
                raise ValueError(f"no such paradigm {name!r}; known: {', '.join(PARADIGMS)}")
        return value

    @field_validator("command")
    @classmethod
    def _known_words(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _fillable(value)


def load(folder: Path) -> dict[str, Template]:
    """All templates of a folder by name; raises :class:`ConfigurationError` naming the file and key."""
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder} to read templates from (MAPLE_TEMPLATE_PATH)")
    return {template.name: template for template in map(read, sorted(folder.glob("*.toml")))}


def read(file: Path) -> Template:
    """One template file."""
    try:
        return Template.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise ConfigurationError(f"template {file}: {explain(error)}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"template {file} cannot be read: {error}") from None


def pick(templates: dict[str, Template], name: str) -> Template:
    """The template of that name."""
    if name not in templates:
        raise UnknownNameError("template", name, templates)
    return templates[name]
