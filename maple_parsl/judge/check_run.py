"""What is wrong with what a script would start."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from maple_parsl.judge.case import Case
from maple_parsl.judge.check_places import place_faults
from maple_parsl.judge.sites import JudgedSite, Kind
from maple_parsl.judge.verdict import Fault, FaultKind
from maple_parsl.judge.world import BIN, HOME, WORK

Process = dict[str, Any]


def run_faults(
    case: Case, site: JudgedSite, kind: Kind, world: dict[str, Any], record: dict[str, Any]
) -> Iterator[Fault]:
    """Compare what happened with the case."""
    found = of_program(case, record)
    for note in record["notes"]:
        if note["kind"] == "submission":
            yield Fault(kind="submission-in-job", message=f"{note['argv'][0]} inside the job")
        elif note["kind"] in ("refused", "stuck"):
            command = " ".join(note["argv"])[:160]
            blamed: FaultKind = "software" if note["argv"][0] in ("conda", "judge-module") else "launcher"
            yield Fault(kind=blamed, message=f"{command}: {note['words']}")
    if record["timed_out"]:
        yield Fault(kind="timeout", message="the script did not end, though every process it started had")
    elif record["code"] != 0:
        said = record["output"].strip().splitlines()
        last = f": {said[-1][:300]}" if said else ""
        yield Fault(kind="script", message=f"the script ended with code {record['code']}{last}")
    if not found:
        others = Counter(item["program"] for item in record["processes"])
        instead = f"; started instead: {', '.join(others)}" if others else ""
        yield Fault(kind="program", message=f"{case.program.script} was never started{instead}")
        return
    yield from _counts(case, found)
    yield from place_faults(case, kind, world, found)
    yield from _program(case, found)
    yield from _environment(case, site, kind, record, found)


def of_program(case: Case, record: dict[str, Any]) -> list[Process]:
    """The processes that are the case's program, by node and place on it."""
    name = os.path.basename(case.program.script)
    found = [item for item in record["processes"] if os.path.basename(item["program"]) == name]
    return sorted(found, key=lambda item: (item["node"], item["task_rank"] or 0, item["env"].get("LOCAL_RANK", "")))


def _counts(case: Case, found: list[Process]) -> Iterator[Fault]:
    per_node = Counter(item["node"] for item in found)
    if len(per_node) != case.nodes:
        yield Fault(kind="node-count", message=f"processes on {len(per_node)} nodes, not on {case.nodes}")
    wrong = {node: count for node, count in per_node.items() if count != case.devices_per_node}
    if wrong:
        node, count = next(iter(sorted(wrong.items())))
        message = f"{count} processes on node {node}, which has to have {case.devices_per_node}"
        yield Fault(kind="process-count", message=message)


def _program(case: Case, found: list[Process]) -> Iterator[Fault]:
    program = case.program
    for item in found:
        given = list(item["arguments"])
        given = [word for word in given if not re.fullmatch(r"--local[_-]rank=\d+", word)]
        wanted = list(program.args)
        if program.exact and given != wanted:
            yield Fault(kind="arguments", message=f"arguments {given}, not {wanted}")
            break
        if not program.exact and not _stand_among(wanted, given):
            yield Fault(kind="arguments", message=f"arguments {given} lack {wanted}")
            break
    if program.anywhere:
        return
    wanted_path = os.path.normpath(os.path.join(WORK, program.script))
    for item in found:
        path = os.path.normpath(os.path.join(item["cwd"], item["program"]))
        if path != wanted_path:
            yield Fault(kind="program", message=f"{path} was started, not {wanted_path}")
            break


def _stand_among(wanted: list[str], given: list[str]) -> bool:
    """Whether an option of ``wanted`` and the value behind it stand together in ``given``."""
    pairs: list[list[str]] = []
    for word in wanted:
        if word.startswith("-") or not pairs:
            pairs.append([word])
        else:
            pairs[-1].append(word)
    windows = [given[start : start + len(pair)] for pair in pairs for start in range(len(given))]
    return all(pair in windows for pair in pairs)


def _environment(
    case: Case, site: JudgedSite, kind: Kind, record: dict[str, Any], found: list[Process]
) -> Iterator[Fault]:
    yield from _backend(case, kind, found)
    needed = dict(case.env)
    if case.nodes > 1:
        needed |= site.env
    if site.proxy:
        needed |= {"https_proxy": site.proxy, "http_proxy": site.proxy}
    for name, value in needed.items():
        wrong = [item["env"].get(name) for item in found if item["env"].get(name) != value]
        if wrong:
            message = f"{name} is {wrong[0]!r} in {len(wrong)} of {len(found)} processes, not {value!r}"
            yield Fault(kind="environment", message=message)
    if case.nodes > 1:
        for name, start in site.env_any:
            if not all(item["env"].get(name, "").startswith(start) for item in found):
                yield Fault(kind="environment", message=f"{name} does not name the network between nodes ({start}…)")
    for name in site.forbidden_env:
        if any(name in item["env"] for item in found):
            yield Fault(kind="environment", message=f"{name} belongs to another site")
    threads = {item["env"].get("OMP_NUM_THREADS") for item in found}
    if kind.flat and case.devices_per_node > kind.devices // 2:
        bad = [item for item in found if item["env"].get("ZE_FLAT_DEVICE_HIERARCHY", "FLAT") != "FLAT"]
        if bad:
            yield Fault(
                kind="environment", message="ZE_FLAT_DEVICE_HIERARCHY is not FLAT: a process per tile was asked for"
            )
    most = kind.cores * kind.threads
    if any(text and text.isdecimal() and int(text) > most for text in threads):
        yield Fault(kind="environment", message="OMP_NUM_THREADS is more than the node has")
    yield from _software(case, site, record, found)


def _backend(case: Case, kind: Kind, found: list[Process]) -> Iterator[Fault]:
    wanted = (case.backend,) if case.backend else kind.backends
    for item in found:
        stated = [
            value for name, value in item["env"].items() if re.search(r"(^|_)BACKEND$", name) and "RDZV" not in name
        ]
        words = item["arguments"]
        stated += [words[i + 1] for i, word in enumerate(words[:-1]) if re.fullmatch(r"--(dist[-_])?backend", word)]
        stated += [word.partition("=")[2] for word in words if re.match(r"--(dist[-_])?backend=", word)]
        known = {"nccl", "gloo", "mpi", "ccl", "xccl", "ucc"}
        wrong = [value for value in stated if value.lower() in known and value.lower() not in wanted]
        if wrong:
            yield Fault(kind="backend", message=f"backend {wrong[0]}, where {' or '.join(wanted)} is needed")
            return


def _software(case: Case, site: JudgedSite, record: dict[str, Any], found: list[Process]) -> Iterator[Fault]:
    loaded = [word for note in record["notes"] if note["kind"] == "module" for word in note["words"]]
    for name in case.modules:
        if name not in loaded:
            yield Fault(kind="software", message=f"module {name} is not loaded")
    env = found[0]["env"]
    contained = any(note["kind"] == "container" for note in record["notes"])
    if case.conda and env.get("CONDA_DEFAULT_ENV") != case.conda:
        yield Fault(kind="software", message=f"conda environment {env.get('CONDA_DEFAULT_ENV')!r}, not {case.conda!r}")
    if case.venv and not env.get("VIRTUAL_ENV", "").endswith(case.venv.rpartition("/")[2]):
        yield Fault(kind="software", message=f"the virtual environment {case.venv} is not active")
    if case.container:
        images = [note["image"] for note in record["notes"] if note["kind"] == "container"]
        if not contained or (images and images[0] is not None and case.container not in images):
            yield Fault(kind="software", message=f"container {case.container} is not entered")
    own = case.modules or case.conda or case.venv or case.container
    known = any(word.split("/")[0] == name.split("/")[0] for word in loaded for name in site.software)
    active = contained or env.get("CONDA_DEFAULT_ENV") or env.get("VIRTUAL_ENV")
    if site.software and not own and not known and not active:
        yield Fault(kind="software", message=f"no PyTorch: none of {', '.join(site.software)} is loaded")
    if not env.get("PATH") or not env.get("HOME", HOME) or BIN not in env.get("PATH", ""):
        yield Fault(kind="environment", message="PATH did not reach the processes")
