"""Network interface and fabric settings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import change, cite, fewest, kinds, row
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.parts import sources_unread
from maple_parsl.script.model import Assignment, Variable

_NAMED = re.compile(r"(?:eth|eno|ens|enp|em|wlan|wlp|bond|ib|ibp|mlx|team|p\d+p)\d")
_EXACT = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
_SLINGSHOT = re.compile(r"FI_CXI_\w+\Z")
_EFA = re.compile(r"FI_EFA_\w+\Z")


def _last(subject: Subject, name: str) -> Assignment | Variable | None:
    """Where a variable gets its last certain value, in the shell or by an option of a launcher."""
    made = [a for a in subject.script.assigned(name) if a.how != "unset" and not a.conditional]
    if made:
        return made[-1]
    given = (launch.leaf.environment.get(name) for launch in subject.script.launches)
    return next((v for v in given if v is not None and not v.place.file), None)


def _exclusion(subject: Subject) -> Iterator[Found]:
    for name in _EXACT:
        made = _last(subject, name)
        text = made.value.text if made else None
        if (made is not None and text and text.lstrip("=")[:1] in ("^", "!")) or (
            made is not None and (text or "")[:1] == "="
        ):
            yield Found(
                f"{name}={text}: gloo takes exact interface names; ^ and = are NCCL's",
                made.place,
                fix=f"Name the interface, or unset {name}.",
            )


def _loopback(subject: Subject) -> Iterator[Found]:
    if fewest(subject) < 2:
        return
    for name in ("NCCL_SOCKET_IFNAME", *_EXACT):
        made = _last(subject, name)
        if made is not None and made.value.text in ("lo", "=lo"):
            yield Found(f"{name}=lo on a job of {fewest(subject)} nodes: loopback reaches no other node", made.place)


def _literal(subject: Subject) -> Iterator[Found]:
    """An interface name of some machine; what it is here is not known."""
    if subject.site is not None and subject.site.rendezvous.interface is not None:
        return
    made = _last(subject, "NCCL_SOCKET_IFNAME")
    text = (made.value.text or "") if made else ""
    if made is not None and _NAMED.match(text.lstrip("=")):
        yield Found(
            f"NCCL_SOCKET_IFNAME={text} is the interface of one kind of machine; where it does not exist NCCL stops",
            made.place,
        )


def _of_other_site(subject: Subject) -> Iterator[Found]:
    site = subject.site
    wanted = site.rendezvous.interface if site else None
    if site is None or wanted is None:
        return
    stem = re.match(r"[a-z]+", wanted)
    for name in ("NCCL_SOCKET_IFNAME", *_EXACT):
        made = _last(subject, name)
        text = made.value.text if made else None
        if made is None or not text or text[0] in "^" or stem is None or text.lstrip("=").startswith(stem[0]):
            continue
        good = wanted if name == "NCCL_SOCKET_IFNAME" else site.rendezvous.gloo_interface
        old = row(subject, made.place)
        line = made.place.line
        edits: tuple[Edit, ...] = ()
        if good and old.count(f"{name}={text}") == 1:
            edits = (Edit(first=line, last=line, text=old.replace(f"{name}={text}", f"{name}={good}"), safe=False),)
        yield Found(
            f"{name}={text}; the network between nodes of {site.title} is {wanted}",
            made.place,
            evidence=cite(site.rendezvous),
            fix=f"Set it to {good}." if good else None,
            edits=edits,
        )


def _missing(subject: Subject) -> Iterator[Found]:
    site = subject.site
    wanted = site.rendezvous.interface if site else None
    if site is None or wanted is None or not wanted.startswith("hsn") or fewest(subject) < 2:
        return
    if any(k.backend != "nccl" for k in kinds(subject)) or not subject.script.launches:
        return
    if subject.script.assigned("NCCL_SOCKET_IFNAME") or subject.script.scheduler != site.scheduler.kind:
        return
    if sources_unread(subject) or _plugin(subject):
        return  # set elsewhere, perhaps
    launch = subject.script.launches[-1]
    yield Found(
        f"NCCL_SOCKET_IFNAME is not set on {fewest(subject)} nodes; the fast network of {site.title} is {wanted}",
        launch.place,
        evidence=cite(site.rendezvous),
        fix=f"export NCCL_SOCKET_IFNAME={wanted}",
    )


def _plugin(subject: Subject) -> bool:
    """Site modules and container options bring the settings themselves."""
    words = " ".join(str(s) for s in subject.script.steps_of("module"))
    if re.search(r"pytorch|frameworks|nccl|rccl|conda|ofi", words):
        return True
    return any("nccl-plugin" in (d.value or "") for d in subject.script.directives)


def _fabric(subject: Subject) -> Iterator[Found]:
    site, found = subject.site, kinds(subject)
    if site is None or not found or any(k.nic is None for k in found):
        return
    nic = " ".join(k.nic or "" for k in found).lower()
    infiniband = re.search(r"infiniband|connectx|\bhdr\b|\bndr\b|\bedr\b|omni", nic) is not None
    slingshot = "slingshot" in nic or "cassini" in nic
    if infiniband == slingshot:
        return
    known = {n for e in site.environments.values() for n in e.network}
    seen = set()
    for made in subject.script.assignments:
        name, text = made.name, (made.value.text or "").lower()
        if name in known or name in seen or made.how == "unset" or made.conditional:
            continue
        what = None
        if _EFA.match(name) or (name == "FI_PROVIDER" and text == "efa"):
            what = "EFA (Amazon)"
        elif infiniband and (_SLINGSHOT.match(name) or (name == "FI_PROVIDER" and text == "cxi")):
            what = "Slingshot"
        elif infiniband and name == "NCCL_NET" and "libfabric" in text:
            what = "libfabric"
        elif slingshot and name.startswith("NCCL_IB_") and name != "NCCL_IB_DISABLE":
            what = "InfiniBand"
        if what:
            seen.add(name)
            yield Found(f"{name} is for {what}; {site.title} has {found[0].nic}", made.place, evidence=cite(found[0]))


def _no_infiniband(subject: Subject) -> Iterator[Found]:
    made = _last(subject, "NCCL_IB_DISABLE")
    if made is None or made.value.text != "1" or fewest(subject) < 2:
        return
    if any("slingshot" in (k.nic or "").lower() for k in kinds(subject)):
        return
    yield Found(
        f"NCCL_IB_DISABLE=1 on {fewest(subject)} nodes: all traffic between them goes over TCP",
        made.place,
        edits=change(subject, made.place, row(subject, made.place), "", safe=False)
        if re.match(r"\s*(export\s+)?NCCL_IB_DISABLE=1\s*\Z", row(subject, made.place))
        else (),
    )


def _proxy(subject: Subject) -> Iterator[Found]:
    if fewest(subject) < 2:
        return
    names = {a.name: a for a in subject.script.assignments if a.how != "unset" and a.context == "batch"}
    proxy = names.get("http_proxy") or names.get("HTTP_PROXY") or names.get("all_proxy") or names.get("ALL_PROXY")
    if proxy is None or "no_proxy" in names or "NO_PROXY" in names or not proxy.value.parts:
        return
    if subject.site is not None and any(
        e.proxy and "no_proxy" not in e.proxy for e in subject.site.environments.values()
    ):
        return  # the site documents its proxy without exceptions
    yield Found(
        f"{proxy.name} is set and no_proxy is not: HTTP between the nodes of the job goes to the proxy",
        proxy.place,
        fix="Export no_proxy with localhost and the site's internal domain.",
    )


_S = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n#SBATCH --time=00:10:00\n"
_DELTA = _S + "#SBATCH --account=demo-delta-gpu\n#SBATCH --partition=gpuA100x4\n#SBATCH --mem=0\n"
_LS6 = "#!/bin/bash\n#SBATCH --partition=gpu-a100\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=3\n#SBATCH --time=00:10:00\n"
_END = "srun python t.py\n"
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"


_FAMILY = Family("NETWORK_IFACE")


RULES = (
    _FAMILY.rule(
        "gloo-interface-form",
        "error",
        "NCCL's way of excluding interfaces given to gloo",
        "Gloo looks for an interface of exactly that name and stops: unable to find address.",
        "Name the interface.",
        _S + "export GLOO_SOCKET_IFNAME=^lo,docker\n" + _END,
        _S + "export GLOO_SOCKET_IFNAME=ens5\n" + _END,
        _exclusion,
        source="https://docs.pytorch.org/docs/stable/distributed.html#common-environment-variables",
    ),
    _FAMILY.rule(
        "loopback-interface",
        "error",
        "the loopback interface for several nodes",
        "No other node is reached over lo.",
        "Name the interface of the network between nodes, or leave the variable unset.",
        _S + "export NCCL_SOCKET_IFNAME=lo\n" + _END,
        _S + "export NCCL_SOCKET_IFNAME=hsn\n" + _END,
        _loopback,
        source=_NCCL,
    ),
    _FAMILY.rule(
        "interface-literal",
        "note",
        "the interface name of one kind of machine",
        "Interface names differ between machines; NCCL stops with no socket interface found.",
        "Leave it unset, or name the interface of this system (ip -br addr).",
        _S + "export NCCL_SOCKET_IFNAME=eth2\n" + _END,
        _S + "export NCCL_SOCKET_IFNAME=^docker,lo\n" + _END,
        _literal,
        source=_NCCL,
    ),
    _FAMILY.rule(
        "interface-of-other-site",
        "error",
        "an interface of another site",
        "The interface does not exist here, or is the slow one.",
        "Name this site's interface.",
        _DELTA + "export NCCL_SOCKET_IFNAME=ib0\n" + _END,
        _DELTA + "export NCCL_SOCKET_IFNAME=hsn\n" + _END,
        _of_other_site,
        source="the site's documentation",
        site="delta",
    ),
    _FAMILY.rule(
        "interface-missing",
        "warning",
        "the fast network is not named",
        "NCCL may take the management network: slow, or a hang.",
        "Export NCCL_SOCKET_IFNAME.",
        _DELTA + _END,
        _DELTA + "export NCCL_SOCKET_IFNAME=hsn\n" + _END,
        _missing,
        source="the site's documentation",
        site="delta",
    ),
    _FAMILY.rule(
        "fabric-of-other-site",
        "warning",
        "settings of another network",
        "The provider they name does not exist here; the job stops, or falls back to TCP.",
        "Remove them.",
        _LS6 + "export FI_PROVIDER=cxi\nibrun python t.py\n",
        _LS6 + "ibrun python t.py\n",
        _fabric,
        source="the site's documentation",
        site="lonestar6",
    ),
    _FAMILY.rule(
        "infiniband-disabled",
        "warning",
        "InfiniBand is switched off",
        "A setting for debugging; bandwidth between nodes drops many times.",
        "Remove it once the cause is found.",
        _S + "export NCCL_IB_DISABLE=1\n" + _END,
        _S + _END,
        _no_infiniband,
        source=_NCCL + "#nccl-ib-disable",
    ),
    _FAMILY.rule(
        "proxy-for-internal",
        "note",
        "a proxy that catches traffic between nodes",
        "Libraries that speak HTTP between"
        " nodes (Ray, dashboards, servers) are sent to the proxy, which does not know the nodes.",
        "Export no_proxy too.",
        _S + "export http_proxy=http://proxy.example.org:3128\n" + _END,
        _S + "export http_proxy=http://proxy.example.org:3128\nexport no_proxy=localhost,.example.org\n" + _END,
        _proxy,
        source="https://docs.alcf.anl.gov/polaris/known-issues/ (proxy)",
    ),
)
