"""Asking a model for what the grammar left open, and for edits of a plan's fields."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from maple_parsl.errors import ConfigurationError
from maple_parsl.inference.base import Answer, Backend
from maple_parsl.settings import AgentSettings

NUMBERS = frozenset({"nodes", "gpus_per_node", "walltime_min", "tp", "pp", "dp", "zero_stage"})


def schema(fields: Sequence[str]) -> dict[str, Any]:
    """The JSON an answer must be: each field a short text or a whole number, or null."""
    number = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 1_000_000}, {"type": "null"}]}
    text = {"anyOf": [{"type": "string", "maxLength": 60}, {"type": "null"}]}
    return {
        "type": "object",
        "properties": {name: number if name in NUMBERS else text for name in fields},
        "required": list(fields),
        "additionalProperties": False,
    }


def ask(model: Backend, settings: AgentSettings, fields: Sequence[str], **given: Any) -> tuple[dict[str, Any], Answer]:
    """The model's values for fields; what is not of the schema is dropped, and reported by its absence.

    Raises:
        InferenceError: no answer. ConfigurationError: the prompt cannot be filled in.
    """
    messages: list[Mapping[str, str]] = [{"role": "system", "content": prompt(settings, fields, **given)}]
    for shown in settings.shown[: settings.examples]:
        wanted = {name: shown["answer"].get(name) for name in fields}
        messages += [
            {"role": "user", "content": str(shown["words"])},
            {"role": "assistant", "content": json.dumps(wanted)},
        ]
    messages.append({"role": "user", "content": str(given.get("words", ""))[:4000]})
    answer = model.answer(messages, schema(fields))
    return read(answer.text, fields), answer


def read(text: str, fields: Sequence[str]) -> dict[str, Any]:
    """The values of an answer, each of the schema's kind; an answer that is no such object has none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict) or set(found) - set(fields):
        return {}
    made = {}
    for name, value in found.items():
        number = name in NUMBERS and isinstance(value, int) and not isinstance(value, bool)
        short = name not in NUMBERS and isinstance(value, str) and 0 < len(value) <= 60
        if number or short:
            made[name] = value
    return made


def prompt(settings: AgentSettings, fields: Sequence[str], **given: Any) -> str:
    """The agent's prompt; ``{{ name }}`` is filled in, and nothing in it is code."""
    values = {"fields": ", ".join(fields), **{name: str(value) for name, value in given.items() if name != "words"}}

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ConfigurationError(f"agent {settings.name}: the prompt asks for {match[1]!r}, which it does not get")
        return values[match[1]]

    return re.sub(r"\{\{\s*(\w+)\s*\}\}", fill, settings.prompt).strip()
