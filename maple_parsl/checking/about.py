"""What a rule is about, for people: also for the few that are no check of a text."""

from __future__ import annotations

from dataclasses import dataclass

from maple_parsl.checking import unreadable
from maple_parsl.errors import UnknownNameError
from maple_parsl.finding import Severity
from maple_parsl.rules import CLASSES, rules

DOCUMENTATION = "https://maple-parsl.readthedocs.io/en/latest/"


@dataclass(frozen=True)
class About:
    """As in :class:`maple_parsl.rules.Rule`."""

    id: str
    fault_class: str
    severity: Severity
    title: str
    why: str
    source: str
    fix: str
    bad: str = ""
    good: str = ""
    site: str | None = None
    needs_site: bool = False


_OTHERS = (
    About(unreadable.RULE, "SCRIPT_FORMAT", "error", unreadable.TITLE, unreadable.WHY, unreadable.SOURCE,
          "Save the script as UTF-8 text, whole, with every quote and here-document closed."),
    About("live-refused", "INVALID_VALUE", "error", "the scheduler would refuse this job",
          "With --live, sbatch --test-only is asked whether it would take the script; nothing is submitted.",
          "https://slurm.schedmd.com/sbatch.html#OPT_test-only", "Do what the scheduler's own words ask for."),
    About("live-account", "ACCOUNT_PARTITION_QOS", "error", "you have no such account, or not with this QOS",
          "With --live, sacctmgr is asked for your associations; the job names something that is not among them.",
          "https://slurm.schedmd.com/sacctmgr.html", "Name one of your accounts."),
    About("live-queue", "QUEUE_LIMIT", "error", "the queue does not exist, takes no jobs, or not this one",
          "With --live, sinfo or qstat -Qf is asked for the queue's present state and limits.",
          "https://slurm.schedmd.com/sinfo.html and the PBS Professional Reference Guide (qstat -Qf)",
          "Choose a queue that takes the job, or ask for less."),
)  # fmt: skip


def ids() -> tuple[str, ...]:
    """Ids of everything that can be reported."""
    return (*rules(), *(other.id for other in _OTHERS))


def about(name: str) -> About:
    """What there is to say about a rule.

    Raises:
        UnknownNameError: there is no such rule.
    """
    rule = rules().get(name)
    if rule is not None:
        return About(
            rule.id, rule.fault_class, rule.severity, rule.title, rule.why, rule.source, rule.fix, rule.bad,
            rule.good, rule.site, rule.needs_site,
        )  # fmt: skip
    found = next((other for other in _OTHERS if other.id == name), None)
    if found is None:
        raise UnknownNameError("rule", name, ids(), "(docs/rules lists them)")
    return found


def page(name: str) -> str:
    """Address of a rule's page; of the documentation, for no name."""
    return f"{DOCUMENTATION}rules/{name}.html" if name else DOCUMENTATION


def _shown(example: str) -> str:
    """An example as a page can hold it: what cannot be seen is written out."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"<{ord(c):02x}>" for c in example.rstrip())


def markdown(name: str) -> str:
    """A rule's page: what ``--explain`` prints, and what stands in docs/rules."""
    told = about(name)
    facts = [f"Class `{told.fault_class}`: {CLASSES[told.fault_class]}.", f"Severity: {told.severity}."]
    if told.needs_site:
        facts.append("It compares with facts of the site, so it is applied only where the site is known.")
    parts = [
        f"# {told.id}",
        told.title[:1].upper() + told.title[1:] + ".",
        " ".join(facts),
        f"**Why.** {told.why}",
        f"**Source.** {told.source}",
        f"**What to do.** {told.fix}",
    ]
    where = f" (at {told.site})" if told.site else ""
    if told.bad:
        parts += [f"Reported{where}:", f"```bash\n{_shown(told.bad)}\n```"]
    if told.good:
        parts += ["Not reported:", f"```bash\n{_shown(told.good)}\n```"]
    if told.id in rules():
        ignore = f"# maple: ignore[{told.id}] reason"
        parts.append(f"To keep one place as it is: `{ignore}` on its line, or on a line of its own before it.")
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """docs/rules/index.md."""
    rows = [
        f"| [{name}]({name}.md) | `{told.fault_class}` | {told.severity} | {_cell(told.title)} |"
        for name in sorted(ids())
        for told in (about(name),)
    ]
    head = "# Rules\n\nEverything `maple check` reports. Ids are stable.\n\n| rule | class | severity | what |\n"
    return head + "|---|---|---|---|\n" + "\n".join(rows) + "\n"


def classes() -> str:
    """docs/classes.md."""
    members: dict[str, list[str]] = {}
    for name in sorted(ids()):
        members.setdefault(about(name).fault_class, []).append(f"[{name}](rules/{name}.md)")
    parts = [
        f"## {name}\n\n{text}\n\nRules: {', '.join(members.get(name, ())) or 'none'}\n"
        for name, text in CLASSES.items()
    ]
    return "# Classes of faults\n\n" + "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
