"""Compute nodes and the internet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import cite, kinds, submitted, texts
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.model import Command
from maple_parsl.site import Environment

_HELP = ("--help", "--version", "-V")
_LOCAL = re.compile(r"localhost|127\.\d|\$|<|169\.254\.")
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")


def _downloads(command: Command) -> str | None:
    """What a command fetches from the internet, or None."""
    words = texts(command)
    name = command.name
    rest = words[1:]
    if any(w in _HELP for w in rest):
        return None
    if re.match(r"python[\d.]*\Z", name) and rest[:2] == ["-m", "pip"]:
        name, rest = "pip", rest[2:]
    if name == "uv" and rest[:1] == ["pip"]:
        name, rest = "pip", rest[1:]
    if re.match(r"pip[\d.]*\Z", name) and rest[:1] in (["install"], ["download"]):
        offline = any(w.startswith(("--no-index", "--find-links")) for w in rest)
        plain = [w for w in rest[1:] if not w.startswith("-")]
        local = bool(plain) and all(re.match(r"(?:\.|/|~)|.*\.whl\Z|\Z", w) for w in plain) and "--no-deps" in rest
        return None if offline or local else f"{name} {rest[0]}"
    if name in ("conda", "mamba", "micromamba") and rest[:1] in (["install"], ["create"], ["update"]):
        return None if "--offline" in rest else f"{name} {rest[0]}"
    if name in ("conda", "mamba") and rest[:2] == ["env", "create"]:
        return f"{name} env create"
    if name == "git" and rest[:1] in (["clone"], ["pull"], ["fetch"]):
        return None if any(re.match(r"(?:/|\.|file:)", w) for w in rest[1:2]) else f"git {rest[0]}"
    if name in ("wget", "curl", "aria2c"):
        link = next((w for w in rest if re.match(r"(?:https?|ftp)://", w)), None)
        return f"{name} {link}" if link and not _LOCAL.search(link) else None
    if name in ("hf", "huggingface-cli") and rest[:1] in (["download"], ["upload"], ["login"]):
        return f"{name} {rest[0]}"
    if name == "wandb" and rest[:1] in (["login"], ["sync"], ["agent"]):
        return f"wandb {rest[0]}"
    if name in ("apptainer", "singularity", "docker", "podman", "enroot", "shifterimg"):
        link = next((w for w in rest if re.match(r"(?:docker|library|oras|https)://", w)), None)
        if rest[:1] in (["pull"], ["build"], ["import"]) or (link and rest[:1] in (["exec"], ["run"])):
            return f"{name} {rest[0]}" + (f" {link}" if link else "")
    if name == "gsutil" or (name == "aws" and rest[:1] == ["s3"]):
        return name
    return None


def _environments(subject: Subject) -> list[Environment]:
    site = subject.site
    return [] if site is None else [site.environments[kind.environment] for kind in kinds(subject)]


def _proxied(subject: Subject, environment: Environment) -> bool:
    script = subject.script
    if any(a.name in _PROXIES and a.exported and a.how != "unset" for a in script.assignments):
        return True
    words = " ".join(str(s) for s in script.steps_of("module"))
    return any(
        line.split()[-1] in words for line in environment.base if line.startswith("module load") and "roxy" in line
    )


def _download(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if not submitted(subject):
        return
    found = _environments(subject)
    outbound = {e.outbound for e in found}
    if outbound == {"direct"}:
        return
    for command in script.commands:
        if command.context not in ("batch", "task"):
            continue
        what = _downloads(command)
        if what is None:
            continue
        if outbound == {"none"}:
            assert subject.site is not None
            yield Found(
                f"{what}: compute nodes of {subject.site.title} have no way to the internet",
                command.place,
                evidence=cite(found[0]),
            )
        elif outbound == {"proxy"}:
            if not _proxied(subject, found[0]):
                assert subject.site is not None
                yield Found(
                    f"{what}: compute nodes of {subject.site.title} reach the internet through a proxy, which is not set",
                    command.place,
                    evidence=cite(found[0]),
                    fix="; ".join(f"export {n}={v}" for n, v in found[0].proxy.items() if n.startswith("http")) or None,
                )
        else:
            yield Found(
                f"{what} within the job: on many systems compute nodes have no internet, and every job pays for it",
                command.place,
                severity="note",
            )


def _online_services(subject: Subject) -> Iterator[Found]:
    found = _environments(subject)
    if not found or not submitted(subject):
        return
    outbound = {e.outbound for e in found}
    if outbound != {"none"} and not (outbound == {"proxy"} and not _proxied(subject, found[0])):
        return
    assert subject.site is not None
    for ranks in subject.launches:
        leaf = ranks.launch.leaf
        words = " ".join(str(w) for w in leaf.program)
        key = leaf.environment.get("WANDB_API_KEY")
        mode = leaf.variable("WANDB_MODE")
        wanted = key is not None or re.search(r"(?:report[_-]to|logger|use)[_= -]*wandb|--wandb\b", words) is not None
        online = mode is not None and mode.text == "online"
        if online or (wanted and mode is None):
            yield Found(
                f"Weights & Biases is used online; compute nodes of {subject.site.title} do not reach it",
                key.place if key else leaf.place,
                evidence=cite(found[0]),
                fix="export WANDB_MODE=offline, and run wandb sync on a login node afterwards.",
            )
        name = re.search(
            r"--(?:model|tokenizer|dataset)[_-](?:name|name[_-]or[_-]path|id)[= ]([\w-]+/[\w.-]+)(?=\s|\Z)", words
        )
        if name and not any(leaf.variable(v) is not None for v in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")):
            yield Found(
                f"{name[1]} is a name on the Hugging Face hub, which compute nodes of {subject.site.title} do not reach",
                leaf.place,
                evidence=cite(found[0]),
                fix="Download it on a login node and export HF_HUB_OFFLINE=1 with the same HF_HOME.",
            )


_D = "#!/bin/bash\n#SBATCH --account=demo-dtai-gh\n#SBATCH --partition=ghx4\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=4\n"
_D += "#SBATCH --mem=0\n#SBATCH --time=00:10:00\nmodule load python/miniforge3_pytorch/2.10.0\n"


_FAMILY = Family(
    "OFFLINE_NODE",
    source="https://huggingface.co/docs/huggingface_hub/package_reference/"
    "environment_variables#hfhuboffline; the site's documentation",
)


RULES = (
    _FAMILY.rule(
        "download-in-job",
        "error",
        "a download within the job",
        "Where compute nodes have no route to the internet the command"
        " waits and fails; elsewhere each job, or each process, repeats it.",
        "Download on a login node, before the job.",
        _D + "pip install einops\nsrun python t.py\n",
        _D + "srun python t.py\n",
        _download,
        site="deltaai",
        needs_site=False,
    ),
    _FAMILY.rule(
        "online-service",
        "error",
        "an online service from offline nodes",
        "The program waits for a service it cannot reach.",
        "Use its offline mode.",
        _D + "export WANDB_API_KEY=$(cat key)\nsrun python t.py\n",
        _D + "export WANDB_MODE=offline\nsrun python t.py\n",
        _online_services,
        site="deltaai",
    ),
)
