"""Started once in the program's place, by the same launch: is this what the plan says?

Every rank writes down who it is (host, device, cores, world) in MAPLE_ATTEMPT_DIR/preflight, then all meet, add a
number up and make one small step of the paradigm. Rank 0 compares that with the plan and leaves verdict.json, one line:

    {"verdict": "pass" | "warn" | "stop", "ranks": N, "seconds": S, "findings": [{"class", "severity", "message"}]}

Only what cannot train is of severity error and stops; whatever is wrong with this program itself, such as a missing
torch, is a note. Python 3.9 or newer. Exit code 76 when the verdict is stop, else 0.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

STOP = 76
STAGES = ("started", "importing", "meeting", "adding", "stepping", "done")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
_BACKENDS = {"cuda": "nccl", "xpu": "xccl", "cpu": "gloo"}
_NO_MEETING = ("timed out", "timeout", "connect", "name or service", "resolution", "address", "socket", "remote")
_LOOPBACK = ("localhost", "127.", "::1")
Report = dict[str, Any]
Finding = dict[str, str]


def finding(fault: str, severity: str, message: str) -> Finding:
    """One thing found."""
    return {"class": fault, "severity": severity, "message": message}


def shown(ranks: Any) -> str:
    """Ranks in words: the first few of many."""
    few = sorted(set(ranks))
    text = ", ".join(map(str, few[:8])) + (f" and {len(few) - 8} more" if len(few) > 8 else "")
    return f"rank{'s' if len(few) > 1 else ''} {text}"


def cores_of(text: str) -> set[int]:
    """``0-3,8`` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def judge(reports: list[Report], plan: argparse.Namespace, complete: bool) -> list[Finding]:
    """What the ranks said against the plan. ``complete``: every rank that was started is among them."""
    found: list[Finding] = []
    world, by_node = plan.nodes * plan.per_node, defaultdict(list)
    for said in reports:
        by_node[said["node"]].append(said)
    twice = [rank for rank, times in Counter(said["rank"] for said in reports).items() if times > 1]
    other = {said["world"] for said in reports} - {world}
    if twice or other:
        text = f"{shown(twice)} started more than once" if twice else f"a world of {sorted(other)} ranks"
        found.append(finding("LAUNCHER_TASK_MISMATCH", "error", f"{text}, where the plan has {world} different ranks"))
    elif complete and len(reports) < world:
        text = f"{len(reports)} of {world} ranks were started, on {len(by_node)} of {plan.nodes} nodes"
        found.append(finding("LAUNCHER_TASK_MISMATCH", "error", text))
    elif complete and {len(those) for those in by_node.values()} != {plan.per_node}:
        placed = "; ".join(f"{those[0]['host']}: {len(those)}" for those in list(by_node.values())[:8])
        text = f"ranks per node are {placed}, where the plan has {plan.per_node} on each of {plan.nodes} nodes"
        found.append(finding("LAUNCHER_TASK_MISMATCH", "error", text))
    elif complete and len({(said["rank"] // plan.per_node, said["node"]) for said in reports}) > plan.nodes:
        text = "ranks go round the nodes one by one, where the plan fills each node before the next"
        found.append(finding("LAUNCHER_TASK_MISMATCH", "warning", text))
    found += _devices(by_node) + _cores(by_node, plan) + _meeting_point(reports, plan)
    return found


def _devices(by_node: dict[str, list[Report]]) -> list[Finding]:
    found = []
    for those in by_node.values():
        used = defaultdict(list)
        for said in (each for each in those if each.get("device")):
            used[said["device"], said["sure"]].append(said["rank"])
        for (device, sure), ranks in used.items():
            if len(set(ranks)) > 1:
                doubt = "" if sure else " as far as the variables tell"
                text = f"{shown(ranks)} on {those[0]['host']} use the same device {device}{doubt}"
                found.append(finding("GPU_VISIBILITY", "error" if sure else "warning", text))
        short = [s["rank"] for s in those if s.get("seen") is not None and s["seen"] <= s["local_rank"]]
        if short:
            text = f"{shown(short)} on {those[0]['host']}: fewer devices in sight than LOCAL_RANK counts to"
            found.append(finding("GPU_VISIBILITY", "warning", text))
    return found


def _cores(by_node: dict[str, list[Report]], plan: argparse.Namespace) -> list[Finding]:
    """Bound to cores that are not those the site's map has next to the device, or all to the same few."""
    found, wanted = [], [cores_of(text) for text in plan.cores.split("/")] if plan.cores else []
    for those in by_node.values():
        mapped = [said for said in those if said["place"] < len(wanted)]
        away = [said["rank"] for said in mapped if not wanted[said["place"]] & cores_of(said["cores"])]
        if away:
            text = f"{shown(away)} on {those[0]['host']} run on cores away from their device"
            found.append(finding("CPU_GEOMETRY", "warning", text))
        if len(those) > 1 and len(set().union(*(cores_of(said["cores"]) for said in those))) < len(those):
            text = f"{len(those)} ranks on {those[0]['host']} share the cores {those[0]['cores']}"
            found.append(finding("CPU_GEOMETRY", "warning", text))
    return found[:4]


def _meeting_point(reports: list[Report], plan: argparse.Namespace) -> list[Finding]:
    points = {said["master"] for said in reports}
    if len(points) > 1:
        text = f"ranks are told different meeting points: {', '.join(sorted(points)[:4])}"
        return [finding("RDZV_ENDPOINT", "error", text)]
    point = next(iter(points), "")
    if plan.nodes > 1 and point.startswith(_LOOPBACK):
        return [finding("RDZV_ENDPOINT", "error", f"MASTER_ADDR {point} is each node itself: nodes cannot meet")]
    first = [said["refused"] for said in reports if said["rank"] == 0 and said.get("refused")]
    return [finding(*first[0])] if first else []


def unfinished(reports: list[Report], plan: argparse.Namespace) -> list[Finding]:
    """What it means that the ranks did not get to the end in time, or failed on the way."""
    world = plan.nodes * plan.per_node
    behind = min(STAGES.index(said["stage"]) for said in reports)
    stage, errors = STAGES[behind], [said["error"] for said in reports if said.get("error")]
    said = f": {errors[0]}" if errors else ""
    slow = [report["rank"] for report in reports if STAGES.index(report["stage"]) == behind]
    if stage == "stepping" or any(report.get("own_fault") for report in reports):
        return [finding("PREFLIGHT", "note", f"the preflight could not be done in full ({stage}){said}")]
    if len(reports) < world:
        return [finding("LAUNCHER_TASK_MISMATCH", "error", f"only {len(reports)} of {world} ranks came to meet{said}")]
    if stage in ("started", "importing"):
        return [finding("PREFLIGHT", "note", f"importing torch took too long on {shown(slow)}; nothing was tried")]
    if stage == "meeting":
        text = f"{shown(slow)} did not meet at MASTER_ADDR {reports[0]['master']} within the deadline"
        return [finding("RDZV_ENDPOINT", "error", text + said)]
    text = f"all ranks met, but {shown(slow)} did not finish a first all-reduce within the deadline"
    return [finding("NETWORK_IFACE", "error", text + said)]


class Rank:
    """This process: its report, its device, its verdict."""

    def __init__(self, plan: argparse.Namespace, env: Any) -> None:
        self.plan, self.env, self.began = plan, env, time.monotonic()
        self.folder = Path(env["MAPLE_ATTEMPT_DIR"])
        self.deadline = self.began + 0.7 * plan.seconds
        self.world = plan.nodes * plan.per_node
        host, boot = socket.gethostname(), Path("/proc/sys/kernel/random/boot_id")
        self.report: Report = {
            "rank": int(env.get("RANK", 0)),
            "local_rank": int(env.get("LOCAL_RANK", 0)),
            "place": int(env.get("MAPLE_LOCAL_RANK") or env.get("LOCAL_RANK", 0)),
            "world": int(env.get("WORLD_SIZE", 1)),
            "host": host,
            "node": f"{host} {boot.read_text()[:8] if boot.exists() else ''}",
            "cores": ",".join(map(str, sorted(os.sched_getaffinity(0)))),
            "master": f"{env.get('MASTER_ADDR', '')}:{env.get('MASTER_PORT', '')}",
            "stage": "started",
        }
        self.rank = self.report["rank"]
        self.lock = threading.Lock()

    def note(self, **more: Any) -> None:
        """Add to the report and put it where rank 0 looks."""
        with self.lock:
            self.report.update(more)
            file = self.folder / "preflight" / f"{self.rank}.{self.report['host']}.{os.getpid()}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(".tmp")
            part.write_text(json.dumps(self.report) + "\n")
            os.replace(part, file)

    def reports(self) -> list[Report]:
        """What the ranks have written so far."""
        found = []
        for file in (self.folder / "preflight").glob("*.json"):
            with contextlib.suppress(OSError, ValueError):
                found.append(json.loads(file.read_text()))
        return sorted(found, key=lambda said: int(said["rank"]))

    def verdict(self) -> dict[str, Any] | None:
        """The verdict, once there is one."""
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads((self.folder / "verdict.json").read_text()))
        return None

    def conclude(self, findings: list[Finding], count: int) -> int:
        """Leave the verdict, unless another rank has; the exit code."""
        worst = {said["severity"] for said in findings}
        word = "stop" if "error" in worst else "warn" if worst else "pass"
        seconds = round(time.monotonic() - self.began, 1)
        text = json.dumps({"verdict": word, "ranks": count, "seconds": seconds, "findings": findings})
        part = self.folder / f"verdict.{self.report['host']}.{os.getpid()}.tmp"
        part.write_text(text + "\n")
        try:
            os.link(part, self.folder / "verdict.json")
        except FileExistsError:
            pass
        except OSError:  # no hard links here
            os.replace(part, self.folder / "verdict.json")
        part.unlink(missing_ok=True)
        rows = [f"{said['severity']} {said['class']}: {said['message']}" for said in findings]
        rows.append(f"{word}, {count} of {self.world} ranks in {seconds} s")
        print(*(f"maple: preflight: {row}" for row in rows), sep="\n", file=sys.stderr, flush=True)
        return self.obey()

    def obey(self) -> int:
        """The exit code that the verdict on file asks for."""
        return STOP if (self.verdict() or {}).get("verdict") == "stop" else 0

    def gather(self, seconds: float) -> list[Report]:
        """Reports of all ranks, or of those that came in time: a shared file system may show new files late."""
        end = min(time.monotonic() + seconds, self.deadline)
        while len(found := self.reports()) < self.world and time.monotonic() < end:
            time.sleep(0.2)
        return found

    def give_up(self) -> None:
        """At the deadline, whatever this process hangs in: rank 0 says how far the ranks came."""
        time.sleep(max(0.0, self.deadline - time.monotonic()))
        self.note(late=True)
        time.sleep(5 if self.rank else 1.5)  # a first exit makes launchers end the others: who speaks goes first
        if self.verdict() is None:
            self.explain()
        os._exit(self.obey())

    def explain(self) -> int:
        """Conclude from how far the ranks came."""
        found = self.reports() or [self.report]
        told = judge(found, self.plan, False)
        if not any(said["severity"] == "error" for said in told):
            told += unfinished(found, self.plan)
        return self.conclude(told, len(found))

    def run(self) -> int:
        """All of it; the exit code."""
        self.note()
        threading.Thread(target=self.give_up, daemon=True).start()
        try:
            self.note(stage="importing")
            import torch
        except Exception as error:  # not there, or broken
            return self.without_torch(str(error))
        try:
            device = self.take_device(torch)
            if self.rank == 0:
                self.note(refused=self.cannot_listen())
                early = judge(self.gather(10), self.plan, False)
                if any(said["severity"] == "error" for said in early):
                    return self.conclude(early, len(self.reports()))
            return self.together(torch, device)
        except Exception as error:  # said in the report: rank 0 knows what it means
            text = f"{type(error).__name__}: {error}".split("\n")[0][:300]
            far = self.report["stage"] in ("meeting", "adding")
            self.note(error=text, own_fault=not (far and any(sign in text.lower() for sign in _NO_MEETING)))
        if self.rank == 0:
            time.sleep(1.5)
            return self.explain()
        return self.await_verdict()

    def without_torch(self, why: str) -> int:
        self.note(**self.device_of_variables())
        if self.rank != 0:
            return self.await_verdict()
        found = self.gather(10)
        note = finding("PREFLIGHT", "note", f"only what needs no torch was looked at: {why}")
        return self.conclude([*judge(found, self.plan, len(found) == self.world), note], len(found))

    def await_verdict(self) -> int:
        while self.verdict() is None and time.monotonic() < self.deadline:
            time.sleep(0.2)
        return self.obey()

    def device_of_variables(self) -> dict[str, Any]:
        """Which device LOCAL_RANK means in the variable that lists them; no proof, as indices may be renumbered."""
        if self.env.get("MAPLE_DEVICE", "cpu") == "cpu":
            return {}
        for name in _VISIBLE:
            listed = [entry for entry in self.env.get(name, "").split(",") if entry]
            if listed:
                mine = listed[self.report["local_rank"] % len(listed)]
                return {"device": f"{mine} of {name}", "sure": False, "seen": len(listed)}
        return {}

    def take_device(self, torch: Any) -> Any:
        kind = self.env.get("MAPLE_DEVICE", "cpu")
        if kind == "cpu":
            torch.set_num_threads(1)
            return torch.device("cpu")
        module = getattr(torch, kind)
        count = module.device_count() if module.is_available() else 0
        if count == 0:
            self.note(seen=0)
            raise RuntimeError(f"torch {torch.__version__} sees no {kind} device")
        index = self.report["local_rank"] % count
        module.set_device(index)
        facts, told = module.get_device_properties(index), self.device_of_variables()
        mark = str(getattr(facts, "uuid", "") or "")
        if "MIG" in facts.name:  # parts of one GPU share its identity
            mark = ""
        elif mark and (kind == "xpu" or getattr(torch.version, "hip", None)):  # so may tiles and partitions
            mark += f" {told.get('device', index)}"
        self.note(**({**told, "device": mark, "sure": True} if mark else told), seen=count)
        return torch.device(kind, index)

    def cannot_listen(self) -> tuple[str, str, str] | None:
        """Why nobody can meet at rank 0's address; None when they can. torchrun listens there already itself."""
        name, port = self.env.get("MASTER_ADDR", ""), self.env.get("MASTER_PORT", "0")
        try:
            family, kind, proto, _, where = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, proto) as probe:
                probe.bind(where)
        except OSError as error:
            return (
                "RDZV_ENDPOINT",
                "error",
                f"MASTER_ADDR {name} is not rank 0's {self.report['host']}: {error}",
            )
        if self.env.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
            try:
                with socket.socket(family, kind, proto) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", int(port)))
            except OSError as error:
                return "PORT_COLLISION", "error", f"MASTER_PORT {port} of {self.report['host']} is taken: {error}"
        return None

    def together(self, torch: Any, device: Any) -> int:
        """Meet, add, step."""
        import torch.distributed as dist

        left = timedelta(seconds=max(1.0, self.deadline - time.monotonic() - 2))
        self.note(stage="meeting")
        backend = self.env.get("MAPLE_BACKEND") or _BACKENDS[device.type]
        dist.init_process_group(backend, timeout=left, rank=self.rank, world_size=self.report["world"])
        self.note(stage="adding")
        total = torch.ones(1, device=device)
        dist.all_reduce(total)
        if int(total.item()) != self.world:
            raise ConnectionError(f"an all-reduce of ones gave {total.item():g}, where {self.world} ranks are planned")
        self.note(stage="stepping")
        step(torch, dist, device, self.plan.paradigm, self.rank, self.world)
        self.note(stage="done")
        everyone: list[Any] = [None] * self.world
        dist.all_gather_object(everyone, self.report)
        if self.rank == 0:
            self.conclude(judge(everyone, self.plan, True), self.world)
        dist.barrier()
        return self.obey()


def step(torch: Any, dist: Any, device: Any, paradigm: str, rank: int, world: int) -> None:
    """One small step, made of the collectives that the paradigm's real one needs."""
    torch.manual_seed(1)
    weight = torch.ones(world, 4, device=device, requires_grad=True)
    if paradigm in ("tp", "3d"):  # columns of a matrix on each rank, partial results added up
        part = weight[rank : rank + 1].detach().sum()
        dist.all_reduce(part)
        _equal(part.item(), 4 * world, "tensor parallel sum")
    if paradigm in ("pp", "3d") and world > 1:  # an activation to the next stage
        mine, theirs = torch.full((4,), float(rank), device=device), torch.zeros(4, device=device)
        pairs = [dist.P2POp(dist.isend, mine, (rank + 1) % world), dist.P2POp(dist.irecv, theirs, (rank - 1) % world)]
        for request in dist.batch_isend_irecv(pairs):
            request.wait()
        _equal(theirs[0].item(), (rank - 1) % world, "pipeline activation")
    if paradigm in ("fsdp", "zero"):  # parameters gathered from their parts
        parts = [torch.zeros(4, device=device) for _ in range(world)]
        dist.all_gather(parts, weight[rank].detach())
        _equal(torch.stack(parts).sum().item(), 4 * world, "gathered parameters")
    (weight * (rank + 1)).sum().backward()
    dist.all_reduce(weight.grad)  # gradients, the same on all ranks
    _equal(weight.grad[0, 0].item(), world * (world + 1) / 2, "gradient")


def _equal(value: float, expected: float, what: str) -> None:
    if abs(value - expected) > 1e-3 * abs(expected):
        raise RuntimeError(f"{what} is {value:g} and should be {expected:g}")


def main() -> int:
    """One rank of the preflight."""
    parser = argparse.ArgumentParser()
    for name in ("--nodes", "--per-node"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--paradigm", "--cores"):  # cores per local rank, parted by /
        parser.add_argument(name, default="")
    parser.add_argument("--seconds", type=float, default=60)
    return Rank(parser.parse_known_args()[0], os.environ).run()


if __name__ == "__main__":
    os._exit(main())  # nothing that a broken network holds back
