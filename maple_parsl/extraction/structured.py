"""Requests that are JSON or YAML: the same fields, by name; a value of the wrong kind is an error, not a guess."""

from __future__ import annotations

import json
import re
from typing import Any

from maple_parsl.extraction.options import time_of
from maple_parsl.extraction.reading import Issue, Value

_NAMES = {
    "model": "model",
    "model_name": "model",
    "network": "model",
    "architecture": "model",
    "paradigm": "paradigm",
    "strategy": "paradigm",
    "parallelism": "paradigm",
    "parallel": "paradigm",
    "parallel_strategy": "paradigm",
    "framework": "framework",
    "launcher": "framework",
    "template": "framework",
    "backend": "backend",
    "site": "site",
    "cluster": "site",
    "machine": "site",
    "system": "site",
    "host": "site",
    "facility": "site",
    "nodes": "nodes",
    "num_nodes": "nodes",
    "nnodes": "nodes",
    "n_nodes": "nodes",
    "node_count": "nodes",
    "number_of_nodes": "nodes",
    "gpus_per_node": "gpus_per_node",
    "gpus": "gpus_plain",
    "devices_per_node": "gpus_per_node",
    "nproc_per_node": "gpus_per_node",
    "num_gpus_per_node": "gpus_per_node",
    "ngpus_per_node": "gpus_per_node",
    "gpu_per_node": "gpus_per_node",
    "total_gpus": "gpus_total",
    "gpus_total": "gpus_total",
    "num_gpus": "gpus_plain",
    "world_size": "gpus_total",
    "walltime": "walltime",
    "walltime_min": "minutes",
    "walltime_minutes": "minutes",
    "minutes": "minutes",
    "time_min": "minutes",
    "time": "walltime",
    "time_limit": "walltime",
    "timelimit": "walltime",
    "duration": "walltime",
    "hours": "hours",
    "walltime_hours": "hours",
    "account": "account",
    "project": "account",
    "allocation": "account",
    "acct": "account",
    "queue": "queue",
    "partition": "queue",
    "qos": "queue",
    "script": "script",
    "file": "script",
    "program": "script",
    "entrypoint": "script",
    "command": "command",
    "args": "args",
    "arguments": "args",
    "script_args": "args",
    "precision": "precision",
    "dtype": "precision",
    "name": "name",
    "job_name": "name",
    "conda": "conda",
    "conda_env": "conda",
    "venv": "venv",
    "container": "container",
    "image": "container",
    "port": "port",
    "master_port": "port",
    "tp": "tp",
    "pp": "pp",
    "dp": "dp",
    "tensor_parallel": "tp",
    "pipeline_parallel": "pp",
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "data_parallel": "dp",
    "zero_stage": "zero_stage",
}
_COUNTS = frozenset(
    {"nodes", "gpus_per_node", "gpus_plain", "gpus_total", "minutes", "port", "tp", "pp", "dp", "zero_stage"}
)
_YAML_LINE = re.compile(r"^[ \t]*(?:- )?[A-Za-z_][\w -]{0,40}:(?:[ \t]|$)")


def structured(text: str) -> tuple[dict[str, Any], str] | None:
    """The mapping a text is, flattened, and its language; None where it is prose."""
    bare = text.strip()
    fenced = re.fullmatch(r"```(?:json|ya?ml)?\s*\n(.*?)\n```", bare, re.S)
    bare = fenced[1].strip() if fenced else bare
    if bare[:1] == "{" and bare[-1:] == "}":
        try:
            found = json.loads(bare)
        except (ValueError, RecursionError):
            return None
        return (_flat(found), "JSON") if isinstance(found, dict) else None
    lines = [
        line
        for line in bare.splitlines()
        if line.strip() and not line.lstrip().startswith("#") and line.strip() != "---"
    ]
    if (
        len(lines) < 2
        or len(lines) > 200
        or not all(_YAML_LINE.match(line) or line.lstrip().startswith("- ") for line in lines)
    ):
        return None
    if any(len(line.split()) > 12 for line in lines) or re.search(r"(?m)[:\s][&*]\w", bare):
        return None
    return _yaml(bare)


def _yaml(text: str) -> tuple[dict[str, Any], str] | None:
    import yaml

    try:
        # Every scalar stays the text it was: 00:20:00 is a time and no number.
        found = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    flat = _flat(found)
    return (flat, "YAML") if sum(key in _NAMES for key in flat) >= 2 else None


def _flat(found: dict[Any, Any], depth: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in found.items():
        name = re.sub(r"[\s-]+", "_", str(key).strip().lower())
        if isinstance(value, dict) and depth < 4:
            for inner, each in _flat(value, depth + 1).items():
                made.setdefault(inner, each)
        else:
            made[name] = value
    return made


def fields(found: dict[str, Any], text: str, language: str) -> tuple[dict[str, Value], list[Issue], list[str]]:
    """Values by field (those of the grammar), what is wrong, and the keys that say nothing here."""
    values: dict[str, Value] = {}
    issues: list[Issue] = []
    unused: list[str] = []
    for key, raw in found.items():
        field = _NAMES.get(key)
        if field is None:
            unused.append(key)
            continue
        if raw is None or raw == "" or (isinstance(raw, str) and raw.strip().lower() in ("null", "none", "~", "tbd")):
            continue
        start, end = _span(text, key, raw)
        value = _value(field, raw, language)
        if value is None:
            issues.append(
                Issue(
                    "INVALID_VALUE",
                    f"{key}: {_shown(raw)} is not {_wanted(field)}",
                    f"write {_wanted(field)}",
                    start,
                    end,
                )
            )
            continue
        place = "walltime" if field in ("minutes", "hours") else field
        values[place] = Value(value, start, end)
    return values, issues, unused


def _value(field: str, raw: Any, language: str) -> Any:
    if isinstance(raw, (bool, dict)):
        return None
    if field in _COUNTS:
        if isinstance(raw, str) and language == "YAML" and re.fullmatch(r"-?\d+(\.\d+)?", raw.strip()):
            raw = float(raw) if "." in raw else int(raw)
        if isinstance(raw, str) and re.fullmatch(r"\d+", raw.strip()):
            raw = int(raw)
        if not isinstance(raw, int | float):
            return None
        return raw * 60 if field == "minutes" else raw
    if field == "hours":
        try:
            return float(raw) * 3600
        except (TypeError, ValueError):
            return None
    if field == "walltime":
        if isinstance(raw, str):
            text = raw.strip().lower().replace(" ", "")
            return time_of(text)
        return None
    if field == "args":
        if isinstance(raw, list):
            import shlex

            return shlex.join(str(each) for each in raw)
        return str(raw)
    return str(raw).strip() if isinstance(raw, str | int | float) else None


def _wanted(field: str) -> str:
    if field in _COUNTS:
        return "a whole number"
    return 'a time such as "30m" or "02:00:00"' if field == "walltime" else "text"


def _shown(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) < 60 else text[:57] + "..."


def _span(text: str, key: str, raw: Any) -> tuple[int, int]:
    at = max(0, re.sub(r"[\s-]", "_", text.lower()).find(key))
    wanted = str(raw) if not isinstance(raw, list) else str(raw[0]) if raw else ""
    start = text.find(wanted, at + len(key)) if wanted else -1
    return (start, start + len(wanted)) if start >= 0 else (at, at + len(key))
