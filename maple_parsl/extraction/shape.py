"""Nodes and devices per node out of what was said: each, per node, in total, tiles, whole nodes."""

from __future__ import annotations

from collections.abc import Mapping

from maple_parsl.extraction.facts import Facts
from maple_parsl.extraction.reading import Issue, Value


def shape(
    stated: Mapping[str, Value], facts: Facts | None, errors: list[Issue], warnings: list[Issue]
) -> dict[str, Value]:
    """``nodes``, ``gpus_per_node``, ``whole_gpus`` and ``gpus_total`` as far as words and facts give them."""
    made: dict[str, Value] = {}
    bad = _impossible(stated, errors)
    nodes, per, total = (stated.get(name) for name in ("nodes", "gpus", "gpus_total"))
    plain = stated.get("gpus_plain")
    if bad:
        return {name: value for name, value in (("nodes", nodes),) if value and _count(value)}
    devices = facts.devices if facts else None
    if plain is not None and per is None and total is None:
        per, total, nodes = _meant(plain, nodes, facts, stated)
    elif (plain is not None and total is None and nodes is None and per is not None and plain.value != per.value) or (
        plain is not None
        and total is None
        and nodes is not None
        and per is not None
        and plain.value == nodes.value * per.value
    ):
        total = plain
    if "cpu_only" in stated and per is None:
        per = Value(0, stated["cpu_only"].start, stated["cpu_only"].end)
    if total is not None:
        made["gpus_total"] = total
        if nodes is None:
            nodes, per = _spread(total, per, facts, warnings)
        elif per is None:
            per = _divide(total, nodes, errors)
        elif nodes.value * per.value != total.value:
            errors.append(
                Issue(
                    "CONTRADICTION",
                    f"{nodes.value} nodes x {per.value} GPUs is {nodes.value * per.value}, not {total.value}",
                    "say which of the numbers holds",
                    total.start,
                    total.end,
                )
            )
    if nodes is not None:
        made["nodes"] = nodes
    if per is not None:
        made["gpus_per_node"] = per
        _check_devices(per, nodes, facts, stated, made, errors, warnings)
    elif nodes is not None and devices is not None and facts is not None:
        why = f"a node of {facts.title} has {devices}"
        made["gpus_per_node"] = Value(devices, nodes.start, nodes.end, 0.95, "follows", why)
    return made


def _impossible(stated: Mapping[str, Value], errors: list[Issue]) -> bool:
    before = len(errors)
    for field, word in (("nodes", "nodes"), ("gpus", "GPUs per node"), ("gpus_total", "GPUs"), ("gpus_plain", "GPUs")):
        value = stated.get(field)
        if value is not None and not _count(value) and not (field != "nodes" and value.value == 0):
            shown = value.value
            errors.append(
                Issue(
                    "INVALID_VALUE",
                    f"{shown} {word}: a whole number from 1 to 1000000 is needed",
                    f"state how many {word}",
                    value.start,
                    value.end,
                )
            )
    return len(errors) > before


def _count(value: Value) -> bool:
    return isinstance(value.value, int) and 1 <= value.value <= 1_000_000


def _meant(
    plain: Value, nodes: Value | None, facts: Facts | None, stated: Mapping[str, Value]
) -> tuple[Value | None, Value | None, Value | None]:
    """Whether ``8 GPUs`` beside a number of nodes is per node or in total."""
    devices = facts.devices if facts else None
    if nodes is None:
        if plain.value == 1:
            return plain, None, Value(1, plain.start, plain.end, 0.9, "follows", "one GPU is on one node")
        return None, plain, None
    most = max(devices or 0, facts.gpus or 0) if facts else 0
    whole = isinstance(plain.value, int) and isinstance(nodes.value, int)
    if (
        devices
        and whole
        and plain.value > most
        and plain.value % nodes.value == 0
        and plain.value // nodes.value <= most
    ):
        return None, plain, nodes
    return plain, None, nodes


def _spread(
    total: Value, per: Value | None, facts: Facts | None, warnings: list[Issue]
) -> tuple[Value | None, Value | None]:
    """Nodes for a total of GPUs."""
    count = int(total.value)
    if per is not None and per.value and count % per.value == 0:
        return Value(
            count // per.value, total.start, total.end, 0.95, "follows", f"{count} GPUs, {per.value} per node"
        ), per
    devices = facts.devices if facts else None
    if not devices or facts is None or per is not None:
        return None, per
    if count % devices == 0:
        nodes = Value(
            count // devices,
            total.start,
            total.end,
            0.95,
            "follows",
            f"{count} GPUs, {devices} per node of {facts.title}",
        )
        return nodes, Value(devices, total.start, total.end, 0.95, "follows", f"a node of {facts.title} has {devices}")
    if count < devices:
        why = f"a node of {facts.title} has {devices}"
        return Value(1, total.start, total.end, 0.9, "follows", why), Value(count, total.start, total.end)
    warnings.append(
        Issue(
            "GPU_REQUEST",
            f"{count} GPUs do not fill whole nodes of {facts.title}, which have {devices} each",
            f"state the nodes and the GPUs per node; {-(-count // devices)} nodes would hold them",
            total.start,
            total.end,
        )
    )
    return None, None


def _divide(total: Value, nodes: Value, errors: list[Issue]) -> Value | None:
    if total.value % nodes.value:
        errors.append(
            Issue(
                "CONTRADICTION",
                f"{total.value} GPUs cannot be spread evenly over {nodes.value} nodes",
                "change one of the numbers",
                total.start,
                total.end,
            )
        )
        return None
    return Value(
        total.value // nodes.value,
        total.start,
        total.end,
        0.95,
        "follows",
        f"{total.value} GPUs on {nodes.value} nodes",
    )


def _check_devices(
    per: Value,
    nodes: Value | None,
    facts: Facts | None,
    stated: Mapping[str, Value],
    made: dict[str, Value],
    errors: list[Issue],
    warnings: list[Issue],
) -> None:
    if facts is None or facts.devices is None or not isinstance(per.value, int):
        return
    most = max(facts.devices, facts.gpus or 0)
    if per.value > most:
        total = per.value * nodes.value if nodes else per.value
        better = f"; {total} GPUs are {-(-total // facts.devices)} nodes x {facts.devices}" if nodes else ""
        errors.append(
            Issue(
                "GPU_REQUEST",
                f"a node of {facts.title} has {most} {'devices' if facts.gpus != facts.devices else 'GPUs'}, "
                f"not {per.value}",
                f"ask for at most {most} per node{better}",
                per.start,
                per.end,
            )
        )
    elif facts.gpus and facts.devices > facts.gpus and per.value == facts.gpus and "unit_t" not in stated:
        made["whole_gpus"] = Value(True, per.start, per.end, 0.8)
        if facts.gpu in ("pvc", "max 1550"):
            text = f"{per.value} GPUs of {facts.title}, each as one device, needs the COMPOSITE device "
            f"hierarchy; by default each of its {facts.devices} tiles is a device"
            warnings.append(
                Issue("INTEL_TILE_CCL", text, f"say {facts.devices} tiles for the default", per.start, per.end)
            )
        else:
            text = f"the scheduler of {facts.title} counts dies (GCDs): a full node is {facts.devices}, and "
            f"{per.value} is half of one"
            warnings.append(
                Issue("GPU_REQUEST", text, f"say {facts.devices} GPUs per node for the whole node", per.start, per.end)
            )
