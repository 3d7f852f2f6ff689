"""The shipped catalogue: every file is a valid site, and its facts agree with each other."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.site import Facts, NodeKind, Queue, Site

PROVIDERS = Path(__file__).resolve().parents[2] / "providers"
FILES = sorted(PROVIDERS.rglob("*.toml"))
SITES = {file: Site.model_validate(tomllib.loads(file.read_text())) for file in FILES}
CURRENT = (
    "aces anvil aurora bridges2 delta deltaai derecho expanse frontera frontier local lonestar6 perlmutter"
    " polaris sophia stampede3 vista"
)

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
each_kind = pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=f"{site.name}-{name}") for site in SITES.values() for name, kind in site.kinds.items()],
)
each_queue = pytest.mark.parametrize(
    "queue",
    [
        pytest.param(queue, id=f"{site.name}-{queue.name}")
        for site in SITES.values()
        if site.queues
        for queue in site.queues.entry
    ],
)


def cpus(text: str) -> set[int]:
    """The CPU numbers of a list such as ``24-31,56-63``."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def strings(value: Any) -> Iterator[str]:
    """Every string below a parsed value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def groups(site: Site) -> Iterator[tuple[str, Facts]]:
    """Every group of facts of a site, named."""
    for field in type(site).model_fields:
        value = getattr(site, field)
        if isinstance(value, Facts):
            yield field, value
        elif isinstance(value, dict):
            yield from ((f"{field}.{name}", part) for name, part in value.items())


def test_the_catalogue_holds_the_announced_sites() -> None:
    current = {file.stem for file in FILES if file.parent == PROVIDERS}
    assert " ".join(sorted(current)) == CURRENT
    assert "summit" in {file.stem for file in FILES}


@each_file
def test_name_and_place(file: Path) -> None:
    site = SITES[file]
    assert site.name == file.stem
    assert (site.status == "retired") == (file.parent.name == "retired")
    if site.status != "production":
        assert site.status_note


@each_file
def test_every_group_has_a_source_and_a_day(file: Path) -> None:
    for name, facts in groups(SITES[file]):
        assert len(facts.source.strip()) > 10, name
        assert date(2024, 1, 1) <= facts.checked_on <= date.today(), name
        assert facts.note is None or facts.note.strip(), name


def test_names_and_aliases_are_unique() -> None:
    spellings: dict[str, str] = {}
    for site in SITES.values():
        for spelling in (site.name, *site.aliases):
            assert spelling == spelling.lower()
            assert spellings.setdefault(spelling, site.name) == site.name, spelling
        assert len(set(site.aliases)) == len(site.aliases)
        assert site.name not in site.aliases


@each_file
def test_queues(file: Path) -> None:
    site = SITES[file]
    entries = site.queues.entry if site.queues else ()
    names = [queue.name.lower() for queue in entries]
    assert len(set(names)) == len(names)
    assert sum(queue.default for queue in entries) <= 1
    used = {kind for queue in entries for kind in queue.kinds}
    if entries:
        assert used == set(site.kinds), "a kind no queue offers"


@each_queue
def test_limits_of_a_queue(queue: Queue) -> None:
    low, high = queue.min_nodes or 1, queue.max_nodes
    assert high is None or low <= high
    assert not (queue.shared and queue.exclusive)
    last = low - 1
    for band in queue.bands:
        assert band.min_nodes == last + 1, "bands leave a gap or overlap"
        assert band.min_nodes <= band.max_nodes
        assert queue.max_walltime is None or band.max_walltime <= queue.max_walltime
        last = band.max_nodes
    if queue.bands:
        assert last == high


@each_kind
def test_devices_and_their_cores(kind: NodeKind) -> None:
    maps = [cpus(device.cores) for device in kind.device_map]
    for one, other in combinations(maps, 2):
        assert one == other or not one & other, "neighbours share some cores but not all"
    for device, own in zip(kind.device_map, maps, strict=True):
        same = {other.numa for other, cores in zip(kind.device_map, maps, strict=True) if cores == own}
        assert same == {device.numa}
    if kind.hw_threads:
        assert all(max(own) < kind.hw_threads for own in maps)
    if kind.cores and kind.hw_threads:
        assert kind.cores <= kind.hw_threads
    if kind.gpus and kind.devices > kind.gpus:
        assert kind.devices % kind.gpus == 0


@each_kind
def test_binding_gives_each_process_the_cores_of_its_device(kind: NodeKind) -> None:
    if not kind.cpu_bind or not kind.cpu_bind.startswith("list:"):
        return
    bound = [cpus(group) for group in kind.cpu_bind.removeprefix("list:").split(":")]
    assert len(bound) == kind.devices
    assert all(not one & other for one, other in combinations(bound, 2))
    for own, device in zip(bound, kind.device_map, strict=True):
        assert own <= cpus(device.cores)
    if len({device.cores for device in kind.device_map}) == kind.devices:
        assert bound == [cpus(device.cores) for device in kind.device_map]


@each_kind
def test_device_order_puts_each_process_near_its_cores(kind: NodeKind) -> None:
    """With one process per device in blocks of cores, process i runs on block i and uses visible_order[i]."""
    if not kind.visible_order:
        return
    firsts = sorted(min(cpus(device.cores)) for device in kind.device_map)
    for process, device in enumerate(kind.visible_order):
        assert min(cpus(kind.device_map[device].cores)) == firsts[process]


@each_kind
def test_backend_fits_the_vendor(kind: NodeKind) -> None:
    fits = {
        "nvidia": ("nccl", "cuda"),
        "amd": ("nccl", "cuda"),
        "intel": ("xccl", "xpu"),
        "none": ("gloo", "cpu"),
    }
    assert (kind.backend, kind.torch_device) == fits[kind.vendor]
    assert (kind.gpus == 0) == (kind.vendor == "none")


@each_file
def test_scheduler_and_launcher_fit(file: Path) -> None:
    site = SITES[file]
    kind = site.scheduler.kind
    if kind == "pbs":
        assert site.directives.tasks == "none"
        assert site.scheduler.queue_option == "queue"
        assert not site.scheduler.signal
    if kind == "none":
        assert {launcher.dialect for launcher in site.launchers.values()} == {"local"}
    for line in site.directives.always:
        assert re.match(r"(-[a-zA-Z] |--)", line)
    for name, launcher in site.launchers.items():
        if launcher.dialect == "slurm":
            assert kind == "slurm"
            assert launcher.rank == ("SLURM_PROCID",), name
        assert launcher.node_rank != ("OMPI_COMM_WORLD_NODE_RANK",)
    if site.directives.memory == "forbidden":
        assert "--mem" in site.directives.forbidden
    if kind == "slurm" and site.directives.gpu_request == "gres":
        assert all(node.gres_type for node in site.kinds.values())
    for option in site.directives.forbidden:
        assert not any(option in line.split("=")[0].split() for line in site.directives.always)


@each_file
def test_values_are_facts(file: Path) -> None:
    data = tomllib.loads(file.read_text())
    for value in strings(data):
        assert value.strip() == value
        assert value.lower() not in {"", "unknown", "tbd", "todo", "none known", "n/a", "?"}
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", value)
        assert not re.search(r"/work/(wt|main|shared|venv)\b|/home/\w+/|session", value)


def written(site: Site) -> Iterator[str]:
    """Everything of a site that ends up in scripts."""
    yield from site.directives.always
    for queue in site.queues.entry if site.queues else ():
        yield from queue.directives
    for launcher in site.launchers.values():
        yield from (*launcher.flags, *launcher.per_device_flags, *launcher.per_node_flags)
    for part in site.environments.values():
        yield from (*part.base, *part.framework, *part.container_setup, *part.network_prepend)
        yield from (*part.exports.values(), *part.network.values())
    for kind in site.kinds.values():
        yield from filter(None, (kind.select, kind.constraint, kind.cpu_bind))
    if site.storage:
        yield from (*site.storage.shared, *site.storage.node_local)


@each_file
def test_nobody_is_charged_by_the_catalogue(file: Path) -> None:
    site = SITES[file]
    assert site.defaults.account is None
    for value in written(site):
        assert not re.search(r"(^|\s)(-A|-W|--account|--reservation|-U)([ =]|$)", value), value
        assert not re.search(r"\bm\d{4}(_g)?\b|\b[A-Z]{3}\d{3}\b|\b[A-Z]{4}\d{4}\b|ntrain\d", value), value
    for value in strings(tomllib.loads(file.read_text())):
        for found in re.findall(r"[\w<>.+-]*-(?:delta-gpu|delta-cpu|dtai-gh)\b", value):
            assert found.startswith(("<", ".+")), value


def test_aurora_and_polaris_meet_on_the_fast_network() -> None:
    sites = {site.name: site for site in SITES.values()}
    for name in ("aurora", "polaris"):
        assert sites[name].rendezvous.suffix == f".hsn.cm.{name}.alcf.anl.gov"


def test_reversed_nodes_stay_reversed() -> None:
    sites = {site.name: site for site in SITES.values()}
    assert [device.numa for device in sites["polaris"].kinds["a100"].device_map] == [3, 2, 1, 0]
    assert sites["perlmutter"].kinds["gpu"].visible_order == (3, 2, 1, 0)
    assert sites["delta"].kinds["a100x4"].visible_order == (3, 2, 1, 0)
    frontier = sites["frontier"].kinds["mi250x"].device_map
    assert "".join(str(device.numa) for device in frontier) == "33110022"
