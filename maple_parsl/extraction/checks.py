"""What cannot be, judged by the site's facts: the classes are those of the checks of scripts."""

from __future__ import annotations

from collections.abc import Mapping

from maple_parsl.extraction.facts import Facts
from maple_parsl.extraction.reading import Issue, Value
from maple_parsl.extraction.vocabulary import Vocabulary
from maple_parsl.walltime import Walltime

_EMULATED = {"bf16": ("v100", "t4", "p100", "rtx 5000")}


def limits(values: Mapping[str, Value], facts: Facts, errors: list[Issue], warnings: list[Issue]) -> None:
    """Queue, walltime and node count against the site's limits."""
    from maple_parsl.compose.target import limit, misfits

    site, queue = facts.site, facts.queue
    if site is None:
        return
    nodes, seconds, stated = values.get("nodes"), values.get("walltime"), values.get("queue")
    if stated is not None and queue is None and site.queues is not None:
        near = ", ".join(facts.queues)
        errors.append(
            Issue(
                "ACCOUNT_PARTITION_QOS",
                f"{facts.title} has no queue {stated.value!r}",
                f"its queues: {near}",
                stated.start,
                stated.end,
            )
        )
    walltime = Walltime(int(seconds.value)) if seconds is not None and seconds.value and seconds.value >= 1 else None
    if walltime is not None and site.scheduler.min_walltime and walltime < site.scheduler.min_walltime and seconds:
        errors.append(
            Issue(
                "QUEUE_LIMIT",
                f"{facts.title} takes no job shorter than {site.scheduler.min_walltime}, {walltime} asked for",
                f"ask for {site.scheduler.min_walltime} or more",
                seconds.start,
                seconds.end,
            )
        )
    count = nodes.value if nodes is not None and isinstance(nodes.value, int) and nodes.value > 0 else None
    place = nodes or seconds or stated
    if queue is not None and place is not None:
        reasons = misfits(queue, count or max(1, queue.min_nodes or 1), walltime, None)
        if reasons:
            others = [
                q.name
                for q in (site.queues.entry if site.queues else ())
                if q is not queue and set(q.kinds) & set(queue.kinds) and not misfits(q, count or 1, walltime, None)
            ]
            fix = f"queues that fit: {', '.join(others)}" if others else "no other queue of these nodes fits either"
            errors.append(
                Issue(
                    "QUEUE_LIMIT",
                    f"queue {queue.name} of {site.name} {' and '.join(reasons)}",
                    fix,
                    place.start,
                    place.end,
                )
            )
        longest, _ = limit(queue, count or 1)
        if walltime is None and longest is not None:
            warnings.append(
                Issue(
                    "MISSING_REQUIRED_FIELD",
                    f"no time limit stated; queue {queue.name} allows at most {Walltime(longest).minutes} minutes",
                )
            )
    elif queue is None and stated is None and site.queues is not None and count:
        fits = [q.name for q in site.queues.entry if not misfits(q, count, walltime, None)]
        if not fits and place is not None:
            why = "; ".join(f"{q.name} {' and '.join(misfits(q, count, walltime, None))}" for q in site.queues.entry)
            errors.append(
                Issue(
                    "QUEUE_LIMIT",
                    f"no queue of {site.name} takes this job: {why}",
                    "change nodes or time",
                    place.start,
                    place.end,
                )
            )


def longest_walltime(facts: Facts | None, nodes: int | None) -> int | None:
    """The most seconds that the stated queue allows."""
    from maple_parsl.compose.target import limit

    if facts is None or facts.queue is None:
        return None
    longest, _ = limit(facts.queue, nodes or 1)
    return None if longest is None else int(longest)


def account_form(values: Mapping[str, Value], facts: Facts, warnings: list[Issue]) -> None:
    """An account of another form than the site's."""
    import re

    account = values.get("account")
    if facts.site is None or account is None or not (pattern := facts.site.scheduler.account_pattern):
        return
    if not re.match(pattern, str(account.value)):
        warnings.append(
            Issue(
                "ACCOUNT_PARTITION_QOS",
                f"account {account.value!r} has not the form of {facts.title}'s",
                facts.site.scheduler.account_hint or "",
                account.start,
                account.end,
            )
        )


def precision(
    values: Mapping[str, Value], gpu: str | None, vocabulary: Vocabulary, errors: list[Issue], warnings: list[Issue]
) -> None:
    """A precision that the GPUs cannot compute."""
    stated = values.get("precision")
    if stated is None or gpu is None or gpu not in vocabulary.gpus or stated.value in vocabulary.gpus[gpu]:
        return
    shown = gpu.upper()
    if gpu in _EMULATED.get(str(stated.value), ()):
        warnings.append(
            Issue(
                "UNSUPPORTED_PRECISION",
                f"{shown} has no native {stated.value}; it is emulated, slowly",
                "fp16 is native",
                stated.start,
                stated.end,
            )
        )
    else:
        able = ", ".join(each for each in vocabulary.gpus[gpu] if each != "int8")
        errors.append(
            Issue(
                "UNSUPPORTED_PRECISION",
                f"{shown} does not compute in {stated.value}",
                f"it computes in {able}",
                stated.start,
                stated.end,
            )
        )


def parallel(values: Mapping[str, Value], errors: list[Issue]) -> None:
    """Degrees of parallelism that the devices cannot hold."""
    nodes, per = values.get("nodes"), values.get("gpus_per_node")
    if nodes is None or per is None or not isinstance(nodes.value, int) or not isinstance(per.value, int):
        return
    world = nodes.value * per.value
    degrees = {name: values[name] for name in ("tp", "pp", "dp") if name in values}
    product = 1
    for name, value in degrees.items():
        if not isinstance(value.value, int) or value.value < 1:
            errors.append(
                Issue(
                    "INVALID_VALUE",
                    f"{name} is {value.value}; a whole number from 1 is needed",
                    "",
                    value.start,
                    value.end,
                )
            )
            return
        product *= value.value
    if degrees and world and (world % product or ("dp" in degrees and len(degrees) > 1 and product != world)):
        last = list(degrees.values())[-1]
        shown = " x ".join(f"{name} {value.value}" for name, value in degrees.items())
        errors.append(
            Issue(
                "PARALLELISM_DIVISIBILITY",
                f"{nodes.value} nodes x {per.value} devices is {world}, which {shown} does not divide",
                "change the degrees or the nodes",
                last.start,
                last.end,
            )
        )


def port(values: Mapping[str, Value], errors: list[Issue]) -> None:
    """A port that an ordinary user cannot open, or that does not exist."""
    stated = values.get("port")
    if stated is not None and not (isinstance(stated.value, int) and 1024 <= stated.value <= 65535):
        errors.append(
            Issue(
                "INVALID_VALUE",
                f"port {stated.value} cannot be used: below 1024 is the system's, above 65535 there is none",
                "state none, and a free one is chosen",
                stated.start,
                stated.end,
            )
        )
