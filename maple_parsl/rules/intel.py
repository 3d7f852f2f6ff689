"""Intel GPUs: backend, device hierarchy, oneCCL."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import change, cite, kinds, row
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.networks import _last
from maple_parsl.script.rankmap import LaunchRanks

_WORDS = re.compile(
    r"(?<![\w-])(?:xccl|oneccl\w*|xpu|intel_extension_for_pytorch|ipexrun)(?![\w-])|\b(?:ZE_[A-Z]|CCL_[A-Z])\w+", re.I
)


def on_intel(subject: Subject) -> bool:
    """The script is for Intel GPUs: its site says so, or it uses their names."""
    found = kinds(subject)
    if found:
        return all(k.vendor == "intel" for k in found)
    return _WORDS.search(subject.script.text) is not None


def _backend_word(ranks: LaunchRanks) -> str | None:
    if ranks.backend:
        return ranks.backend
    value = ranks.launch.leaf.variable("BACKEND") or ranks.launch.leaf.variable("DIST_BACKEND")
    return value.text if value is not None else None


def _nccl(subject: Subject) -> Iterator[Found]:
    if not on_intel(subject):
        return
    for ranks in subject.launches:
        if _backend_word(ranks) in ("nccl", "rccl"):
            place = ranks.launch.leaf.place
            yield Found(
                f"backend {_backend_word(ranks)} on Intel GPUs; theirs is xccl", place,
                edits=change(subject, place, "nccl", "xccl", safe=False),
            )  # fmt: skip


def _old_bindings(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    if not found or any(k.backend != "xccl" for k in found):
        return
    for ranks in subject.launches:
        if _backend_word(ranks) == "ccl":
            yield Found(
                "backend ccl is of the former oneCCL bindings; torch here has xccl of its own",
                ranks.launch.leaf.place,
                evidence=cite(found[0]),
            )


def _torchrun(subject: Subject) -> Iterator[Found]:
    if not on_intel(subject):
        return
    for ranks in subject.launches:
        if ranks.framework not in ("torchrun", "accelerate") or (ranks.inner_per_node or 2) < 2:
            continue
        leaf = ranks.launch.leaf
        if ranks.launch.launcher in ("mpiexec", "mpirun", "ibrun"):
            continue  # the agents have PMI variables; what oneCCL makes of them is not certain
        process = leaf.variable("CCL_PROCESS_LAUNCHER")
        transport = leaf.variable("CCL_ATL_TRANSPORT")
        if ranks.backend == "gloo" or (process is not None and process.text in (None, "none")):
            continue
        if transport is not None and transport.text in (None, "ofi") and process is None:
            continue
        yield Found(
            f"{ranks.framework} starts the processes, and oneCCL looks for the variables of an MPI launcher"
            + (f" (CCL_PROCESS_LAUNCHER={process})" if process is not None else ""),
            leaf.place,
        )


def _composite(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        value = ranks.launch.leaf.variable("ZE_FLAT_DEVICE_HIERARCHY")
        kind = subject.ranks.kind
        if value is None or value.text != "COMPOSITE" or kind is None or kind.vendor != "intel":
            continue
        if ranks.per_node is not None and kind.devices > kind.gpus and ranks.per_node > kind.gpus:
            if ranks.launch.leaf.variable("ZE_AFFINITY_MASK") is not None or _affinity(ranks):
                continue
            yield Found(
                f"{ranks.per_node} processes per node, and COMPOSITE shows {kind.gpus} devices",
                ranks.launch.place,
                evidence=cite(kind),
            )


def _affinity(ranks: LaunchRanks) -> bool:
    return any(w.kind == "affinity" for part in ranks.launch.all for w in part.wrappers)


def _flat(subject: Subject, ranks: LaunchRanks) -> bool:
    value = ranks.launch.leaf.variable("ZE_FLAT_DEVICE_HIERARCHY")
    if value is not None:
        return value.text == "FLAT"
    kind = subject.ranks.kind
    if subject.site is None or kind is None or kind.exports.get("ZE_FLAT_DEVICE_HIERARCHY") != "FLAT":
        return False
    return any("frameworks" in str(step) for step in subject.script.steps_of("module"))


def _compact(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        if not _flat(subject, ranks):
            continue
        for part in ranks.launch.all:
            for wrapper in part.wrappers:
                if wrapper.kind == "affinity" and "tile" in wrapper.name:
                    yield Found(
                        f"{wrapper.name} masks tiles as GPU.tile; with FLAT every tile is a device of its own",
                        wrapper.place,
                    )
        mask = ranks.launch.leaf.environment.get("ZE_AFFINITY_MASK")
        if mask is not None and mask.value.text and re.search(r"\d\.\d", mask.value.text):
            yield Found(
                f"ZE_AFFINITY_MASK={mask.value.text} names GPU.tile; with FLAT every tile has a number of its own",
                mask.place,
            )


def _launcher_name(subject: Subject) -> Iterator[Found]:
    made = _last(subject, "CCL_PROCESS_LAUNCHER")
    if made is None or made.value.text is None:
        return
    for ranks in subject.launches:
        if made.value.text == "none" and not ranks.framework and ranks.launch.launcher in ("mpiexec", "mpirun", "srun"):
            rank, size = ranks.launch.leaf.variable("CCL_LOCAL_RANK"), ranks.launch.leaf.variable("CCL_LOCAL_SIZE")
            if rank is None and size is None:
                yield Found(
                    f"CCL_PROCESS_LAUNCHER=none under {ranks.launch.launcher}: oneCCL then wants CCL_LOCAL_RANK and"
                    " CCL_LOCAL_SIZE, which are not set",
                    made.place,
                    evidence=row(subject, made.place),
                )
            return


_P = "#!/bin/bash -l\n#PBS -A demo\n#PBS -q debug\n#PBS -l select=2\n#PBS -l walltime=00:10:00\n#PBS -l filesystems=home:flare\n"
_P += "module load frameworks\n"
_RUN = "mpiexec -n 24 --ppn 12 python t.py --backend "
_CCL = "https://uxlfoundation.github.io/oneCCL/env-variables.html"
_ALCF = "https://docs.alcf.anl.gov/aurora/data-science/frameworks/pytorch/"
_ZE = "https://oneapi-src.github.io/level-zero-spec/level-zero/latest/core/PROG.html#environment-variables"


_FAMILY = Family("INTEL_TILE_CCL")


RULES = (
    _FAMILY.rule(
        "nccl-on-intel",
        "error",
        "NCCL on Intel GPUs",
        "NCCL drives NVIDIA GPUs only.",
        "Use backend xccl.",
        _P + _RUN + "nccl\n",
        _P + _RUN + "xccl\n",
        _nccl,
        source=_ALCF,
        site="aurora",
        needs_site=False,
    ),
    _FAMILY.rule(
        "ccl-backend-old",
        "warning",
        "the backend of the former oneCCL bindings",
        "Recent torch has xccl built in; ccl needs a package that its environments no longer hold.",
        "Use backend xccl.",
        _P + _RUN + "ccl\n",
        _P + _RUN + "xccl\n",
        _old_bindings,
        source=_ALCF,
        site="aurora",
        needs_site=False,
    ),
    _FAMILY.rule(
        "ccl-without-mpi-launcher",
        "warning",
        "oneCCL without an MPI launcher",
        "oneCCL takes rank and size from PMI"
        " variables, which torchrun does not set; it stops, or hangs in the first collective.",
        "Start with mpiexec, or export CCL_PROCESS_LAUNCHER=none and CCL_ATL_TRANSPORT=ofi.",
        "#!/bin/bash\ntorchrun --nproc-per-node 2 t.py --backend xccl\n",
        "#!/bin/bash\nmpiexec -n 2 python t.py --backend xccl\n",
        _torchrun,
        source="https://github.com/pytorch/pytorch/issues/158722; " + _CCL,
    ),
    _FAMILY.rule(
        "composite-process-count",
        "error",
        "a process per tile where tiles are not devices",
        "With COMPOSITE a card is one device; processes beyond the last find none.",
        "Use FLAT, or one process per card.",
        _P + "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE\n" + _RUN + "xccl\n",
        _P + "export ZE_FLAT_DEVICE_HIERARCHY=FLAT\n" + _RUN + "xccl\n",
        _composite,
        source=_ZE,
        site="aurora",
        needs_site=False,
    ),
    _FAMILY.rule(
        "tile-mask-with-flat",
        "error",
        "tiles named within cards under FLAT",
        "FLAT numbers tiles as devices; a mask of the form GPU.tile selects nothing, or the wrong ones.",
        "Leave the script or mask out, or use COMPOSITE.",
        _P + "export ZE_FLAT_DEVICE_HIERARCHY=FLAT\nexport ZE_AFFINITY_MASK=0.0,0.1\n" + _RUN + "xccl\n",
        _P
        + "export ZE_FLAT_DEVICE_HIERARCHY=FLAT\nexport ZE_AFFINITY_MASK=0,1,2,3,4,5,6,7,8,9,10,11\n"
        + _RUN
        + "xccl\n",
        _compact,
        source=_ZE,
        site="aurora",
        needs_site=False,
    ),
    _FAMILY.rule(
        "ccl-launcher-none",
        "warning",
        "oneCCL told that there is no launcher",
        "It then reads CCL_LOCAL_RANK and CCL_LOCAL_SIZE, and stops where they are missing.",
        "Set it to pmix (PALS) or hydra.",
        _P + "export CCL_PROCESS_LAUNCHER=none\n" + _RUN + "xccl\n",
        _P + "export CCL_PROCESS_LAUNCHER=pmix\n" + _RUN + "xccl\n",
        _launcher_name,
        source=_CCL,
        site="aurora",
        needs_site=False,
    ),
)
