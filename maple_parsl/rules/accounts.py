"""Account, partition and QOS."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import after_directives, change, cite, effective, near, submitted
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.required import PLACEHOLDER

_FLAG = {"partition": "--partition", "qos": "--qos", "queue": "-q"}


def _ours(subject: Subject) -> bool:
    return subject.site is not None and submitted(subject) and subject.script.scheduler == subject.site.scheduler.kind


def _account_form(subject: Subject) -> Iterator[Found]:
    site = subject.site
    directive = subject.script.directive("account")
    if site is None or not _ours(subject) or directive is None or not directive.value or directive.variables:
        return
    pattern = site.scheduler.account_pattern
    if site.queue(directive.value) or PLACEHOLDER.search(directive.value):
        return  # other rules speak of these
    if pattern and not re.search(pattern, directive.value):
        hint = f" ({site.scheduler.account_hint})" if site.scheduler.account_hint else ""
        yield Found(
            f"account {directive.value!r} has not the form of {site.title}'s accounts{hint}",
            directive.value_place or directive.place,
            evidence=cite(site.scheduler),
        )


def _swapped(subject: Subject) -> Iterator[Found]:
    site = subject.site
    account = subject.script.directive("account")
    if site is None or not _ours(subject) or account is None or not account.value or account.variables:
        return
    if site.queue(account.value) is not None:
        yield Found(
            f"account {account.value!r} is a queue of {site.title}",
            account.value_place or account.place,
            evidence=cite(site.queues) if site.queues else None,
        )


def _wrong_option(subject: Subject) -> Iterator[Found]:
    """A partition given as QOS, or the other way round."""
    site = subject.site
    if site is None or not _ours(subject) or site.scheduler.kind != "slurm" or site.queues is None:
        return
    wanted = _FLAG.get(site.scheduler.queue_option or "")
    if wanted is None:
        return
    other = "--qos" if wanted == "--partition" else "--partition"
    directive = subject.script.directive(other)
    if directive is None or not directive.value or subject.script.directive(wanted) is not None:
        return
    queue = site.queue(directive.value)
    if queue is not None and (queue.qos if other == "--qos" else queue.partition) is None:
        yield Found(
            f"{directive.value} is what {site.title} calls a {site.scheduler.queue_option}; {directive.flag} is"
            f" the {other.strip('-')}",
            directive.place,
            evidence=cite(site.queues),
            fix=f"Write {wanted}={directive.value}.",
            edits=change(
                subject, directive.place, directive.raw.strip(), f"#SBATCH {wanted}={directive.value}", safe=False
            ),
        )


def _unknown_queue(subject: Subject) -> Iterator[Found]:
    site = subject.site
    if site is None or not _ours(subject) or site.queues is None or site.scheduler.queue_option is None:
        return
    directive = subject.script.directive(_FLAG[site.scheduler.queue_option])
    if directive is None or not directive.value or directive.variables or PLACEHOLDER.search(directive.value):
        return
    written = {q.partition for q in site.queues.entry} | {q.qos for q in site.queues.entry}
    for name in re.split(r"[,@]", directive.value)[:1] if site.scheduler.kind == "pbs" else directive.value.split(","):
        if site.queue(name) is not None or name in written or re.match(r"[RSM]\d+\Z", name):
            continue
        names = [q.name for q in site.queues.entry]
        close = near(name, names)
        yield Found(
            f"{name!r} is not among the queues of {site.title} that are known here"
            + (f"; is {close} meant?" if close else f" ({', '.join(names)})"),
            directive.value_place or directive.place,
            severity="error" if close else "warning",
            evidence=cite(site.queues),
            fix=f"Write {close}." if close else None,
            edits=change(subject, directive.place, name, close, safe=False) if close else (),
        )


def _default_queue(subject: Subject) -> Iterator[Found]:
    site = subject.site
    if site is None or not _ours(subject) or site.queues is None or site.scheduler.queue_option is None:
        return
    flag = _FLAG[site.scheduler.queue_option]
    if subject.script.directive(flag) is not None or subject.script.directive("--reservation") is not None:
        return
    if site.scheduler.kind == "slurm" and subject.script.directive("--qos") is not None:
        return
    default = next((q for q in site.queues.entry if q.default), None)
    if default is not None:
        limit = f", {default.max_walltime} at most" if default.max_walltime else ""
        yield Found(
            f"no {site.scheduler.queue_option} is named; at {site.title} the job goes to {default.name}{limit}",
            effective(subject)[-1].place,
            evidence=cite(site.queues),
            severity="warning" if "debug" in default.name else "note",
        )
    elif len(site.queues.entry) > 1:
        prefix = "#PBS -q " if site.scheduler.kind == "pbs" else f"#SBATCH {flag}="
        yield Found(
            f"no {site.scheduler.queue_option} is named; {site.title} has {', '.join(q.name for q in site.queues.entry)}",
            effective(subject)[-1].place,
            evidence=cite(site.queues),
            edits=after_directives(subject, prefix + site.queues.entry[0].name),
        )


_DELTA = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=4\n#SBATCH --mem=0\n#SBATCH --time=00:10:00\n"
_QUEUE = "#SBATCH --partition=gpuA100x4\n"
_NERSC = "#!/bin/bash\n#SBATCH --account=m0000\n#SBATCH --constraint=gpu\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_NERSC += "#SBATCH --gpus-per-node=4\n"
_GOOD = _DELTA + _QUEUE + "#SBATCH --account=demo-delta-gpu\nsrun python t.py\n"


_FAMILY = Family("ACCOUNT_PARTITION_QOS", source="the site's documentation")


RULES = (
    _FAMILY.rule(
        "account-form",
        "error",
        "an account that cannot be one of this site",
        "Accounts of a resource carry its name; another one is refused: invalid account or account/partition"
        " combination.",
        "Name the account of this resource.",
        _DELTA + _QUEUE + "#SBATCH --account=demo\nsrun python t.py\n",
        _GOOD,
        _account_form,
        site="delta",
    ),
    _FAMILY.rule(
        "account-is-queue",
        "error",
        "account and partition are swapped",
        "The account names a queue; the job is refused.",
        "Swap them.",
        _DELTA + "#SBATCH --account=gpuA100x4\n#SBATCH --partition=demo-delta-gpu\nsrun python t.py\n",
        _GOOD,
        _swapped,
        site="delta",
    ),
    _FAMILY.rule(
        "queue-as-other-option",
        "error",
        "a partition given as QOS, or the reverse",
        "Sites name what a job asks for a partition or a QOS; the other option does not know the name.",
        "Use the option the site uses.",
        _DELTA + "#SBATCH --account=demo-delta-gpu\n#SBATCH --qos=gpuA100x4\nsrun python t.py\n",
        _GOOD,
        _wrong_option,
        site="delta",
    ),
    _FAMILY.rule(
        "queue-unknown",
        "warning",
        "a queue the site is not known to have",
        "A queue that does not exist is refused; one that is open to a project only may be right.",
        "Compare with the site's list of queues.",
        _DELTA + "#SBATCH --partition=gpuA100x5\n#SBATCH --account=demo-delta-gpu\nsrun python t.py\n",
        _GOOD,
        _unknown_queue,
        site="delta",
    ),
    _FAMILY.rule(
        "queue-default",
        "warning",
        "no queue is named",
        "The job goes where the site's default sends it, which may be a short debug queue, or is refused.",
        "Name the queue.",
        _NERSC + "srun python t.py\n",
        _NERSC + "#SBATCH --qos=regular\nsrun python t.py\n",
        _default_queue,
        site="perlmutter",
    ),
)
