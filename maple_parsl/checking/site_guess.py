"""Which site a script is for, by what it says; nothing is assumed where that is not enough."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maple_parsl.script.model import Script
from maple_parsl.site import Site

# Names that many clusters use: they support a guess, and never carry one.
_COMMON = frozenset(
    "all a100 batch compute cpu debug default dev development gpu gpu-shared gpu-debug gpu_debug h100 high interactive"
    " large long low main medium normal preempt preemptable preemptible premium prod production regular rtx shared"
    " short small standard test v100 work".split()
)
_COMMON_MODULES = frozenset(
    "anaconda anaconda3 apptainer conda cuda cudatoolkit cudnn gcc intel intelpython nccl openmpi pytorch python"
    " python3 rocm singularity slurm mkl cray-mpich craype miniforge3 miniconda3 spack".split()
)
_COMMON_PATHS = frozenset(("/home", "/projects", "/scratch", "/tmp", "/work", "/project", "/data"))
_MODULE = re.compile(r"\bmodule\s+(?:load|add|swap|use)\s+([^\n;&|#]+)")


@dataclass(frozen=True)
class Evidence:
    """Something a script says that fits a site; ``strong``: not what any cluster could have."""

    kind: str
    text: str
    strong: bool


@dataclass(frozen=True)
class Guess:
    """``site`` with its ``evidence``, or None with the names of the ``candidates`` that fit best."""

    site: Site | None
    evidence: tuple[Evidence, ...] = ()
    candidates: tuple[str, ...] = ()


def guess(script: Script, sites: Iterable[Site]) -> Guess:
    """The one site that at least two independent pieces of evidence speak for, one of them strong.

    Independent are pieces of different kinds: queue, account, file system, module, host, node selection, name.
    A site with another scheduler than the script's directives is no candidate.
    """
    if script.scheduler not in ("slurm", "pbs"):
        return Guess(None)
    scores: list[tuple[int, int, Site, tuple[Evidence, ...]]] = []
    for site in sites:
        if site.scheduler.kind != script.scheduler:
            continue
        best: dict[str, Evidence] = {}
        for found in _evidence(script, site):
            if found.kind not in best or (found.strong and not best[found.kind].strong):
                best[found.kind] = found
        if best:
            strong = sum(e.strong for e in best.values())
            scores.append((strong, len(best), site, tuple(best.values())))
    scores.sort(key=lambda score: (-score[0], -score[1], score[2].name))
    top = [score for score in scores if score[:2] == scores[0][:2]]
    candidates = tuple(score[2].name for score in top if score[0]) if scores else ()
    if len(top) != 1 or top[0][0] < 1 or top[0][1] < 2:
        return Guess(None, (), candidates)
    return Guess(top[0][2], top[0][3], candidates)


def _evidence(script: Script, site: Site) -> Iterator[Evidence]:
    for kind in (_queue, _account, _paths, _modules, _hosts, _selection, _name):
        yield from kind(script, site)


def _queue(script: Script, site: Site) -> Iterator[Evidence]:
    for option in ("--partition", "--qos", "queue"):
        directive = script.directive(option)
        value = directive.value if directive else None
        if not value or not site.queues:
            continue
        names = {n for q in site.queues.entry for n in (q.name, q.partition, q.qos) if n}
        if value in names:
            yield Evidence("queue", f"its queue {value}", value.lower() not in _COMMON)


def _account(script: Script, site: Site) -> Iterator[Evidence]:
    directive = script.directive("--account") or script.directive("-A")
    pattern = site.scheduler.account_pattern
    if directive and directive.value and pattern:
        try:
            fits = re.fullmatch(pattern, directive.value)
        except re.error:
            return
        if fits:
            specific = len(re.sub(r"\W|\(.*?\)", "", pattern)) >= 4
            yield Evidence("account", f"the form of its account {directive.value}", specific)


def _paths(script: Script, site: Site) -> Iterator[Evidence]:
    for prefix in site.storage.shared if site.storage else ():
        if prefix.startswith("/") and _holds(script.text, prefix):
            yield Evidence("file system", f"the path {prefix}", prefix not in _COMMON_PATHS)
    wanted = script.directive("filesystems")
    if wanted and wanted.value and any("filesystems=" in line for line in site.directives.always):
        have = {n for line in site.directives.always for n in line.partition("filesystems=")[2].split(":") if n}
        asked = set(wanted.value.split(":")) - {"home"}
        if asked & have:
            yield Evidence("file system", f"its file systems {wanted.value}", True)


def _modules(script: Script, site: Site) -> Iterator[Evidence]:
    ours = {name for environment in site.environments.values() for name in _loaded(_lines(environment))}
    for name in _loaded([script.text]):
        if name in ours:
            yield Evidence("module", f"the module {name}", name.partition("/")[0] not in _COMMON_MODULES)
    bare = {name.partition("/")[0] for name in ours}
    for name in _loaded([script.text]):
        short = name.partition("/")[0]
        if short and short in bare:
            yield Evidence("module", f"the module {short}", short not in _COMMON_MODULES)


def _lines(environment: object) -> Iterator[str]:
    for field in ("base", "framework", "conda", "container_setup"):
        value = getattr(environment, field, None)
        if isinstance(value, (tuple, list)):
            yield from value


def _loaded(lines: Iterable[str]) -> list[str]:
    return [word for line in lines for words in _MODULE.findall(line) for word in words.split() if word[:1] != "-"]


def _hosts(script: Script, site: Site) -> Iterator[Evidence]:
    names = [*(site.detect.domain if site.detect else ())]
    if site.remote and site.remote.ssh:
        names.append(site.remote.ssh)
    for name in names:
        if _holds(script.text, name.strip(".")):
            yield Evidence("host", f"the host name {name}", True)


def _selection(script: Script, site: Site) -> Iterator[Evidence]:
    stated = [d for d in (script.directive("select"), script.directive("--constraint")) if d and d.value]
    for kind in site.kinds.values():
        if kind.select and any(_holds(d.value or "", kind.select) for d in stated):
            yield Evidence("node selection", f"its node selection {kind.select}", "=" in kind.select)


def _name(script: Script, site: Site) -> Iterator[Evidence]:
    for name in (site.name, *site.aliases):
        if len(name) > 3 and _holds(script.text.lower(), name.lower()):
            yield Evidence("name", f"the name {name} in its text", False)
            return


def _holds(text: str, part: str) -> bool:
    """Whether ``part`` stands in the text on its own, not within a longer word or path."""
    if part not in text:
        return False
    before = r"(?<![\w./-])" if part.startswith("/") else r"(?<![\w-])"
    return re.search(rf"{before}{re.escape(part)}(?![\w-])", text) is not None
