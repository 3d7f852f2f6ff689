"""Speed and memory of a diagnosis against ``grep -c``: ``python -m tests.benchmarks.bench_diagnosis [MB]``."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from maple_parsl.diagnosis import LogSource, diagnose

STEP = "2026-01-02 13:26:58,703 INFO [rank %d] step %d loss %.4f lr 1.0e-4 tok/s %d mem 34.1GiB\n"
DENSE = (
    "[rank%d]: RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.12]:27791.\n",
    "[rank%d]:[E0102 13:18:42.170595788 ProcessGroupNCCL.cpp:616] Watchdog caught collective operation timeout: Work\n",
    "srun: error: gpu02: task %d: Exited with exit code 1\n",
    "[rank%d]: torch.distributed.DistBackendError: NCCL error in: remote process exited or there was a network error\n",
)
WORDS = """Traceback (most recent call last)|CUDA out of mem|oom-kill|Out of memory: Killed|exceeded memory limit
DUE TO TIME LIMIT|DUE TO NODE FAILURE|DUE TO PREEMPTION|CANCELLED AT|Exited with exit code|Segmentation|Bus error
No space left on device|Disk quota exceeded|Permission denied|command not found|No such file or directory|HIP error
unbound variable|EADDRINUSE|ddress already in use|client socket has timed out|waiting for clients|NCCL WARN|oneCCL
Watchdog caught collective operation timeout|ncclInvalidUsage|Duplicate GPU detected|invalid device ordinal|Level Zero
No CUDA GPUs are available|CUDA error:|ModuleNotFoundError|ImportError|UnicodeDecodeError|JSONDecodeError|size mismatch
Missing key|Weights only load failed|not divisible by|expected, but not set|port must have value|Invalid account
invalid partition|Requested node configuration|step creation temporarily disabled|not enough slots|Too many open files
attempt to run as root|unable to allocate shared memory""".replace("\n", "|").split("|")


def write(path: Path, megabytes: int, *, dense: bool) -> None:
    with path.open("w") as out:
        number = 0
        while out.tell() < megabytes << 20:
            for _ in range(20_000):
                number += 1
                if dense:
                    out.write(DENSE[number % 4] % (number % 512))
                else:
                    out.write(STEP % (number % 512, number, number % 97 / 97, number * 31 % 1_000_003))


def main(megabytes: int = 1024) -> None:
    assert len(WORDS) == 50
    with tempfile.TemporaryDirectory() as folder:
        patterns = Path(folder) / "patterns"
        patterns.write_text("\n".join(word.replace("(", r"\(").replace(")", r"\)") for word in WORDS) + "\n")
        for dense in (False, True):
            path = Path(folder) / "log"
            write(path, megabytes, dense=dense)
            times: dict[str, float] = {}
            for option in ("-cE", "-cF"):
                before = os.times()
                subprocess.run(["grep", option, "-f", patterns, path], capture_output=True, check=False)
                after = os.times()
                times[f"grep {option}"] = sum(after[2:4]) - sum(before[2:4])
            begin = time.process_time()
            diagnose([LogSource("log", path=path)])
            ours = time.process_time() - begin
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            ratios = ", ".join(f"{name} {value:.2f} s (ratio {value / ours:.2f})" for name, value in times.items())
            print(f"{'dense' if dense else 'steps'} {megabytes} MB: diagnose {ours:.2f} s CPU, {peak} MB; {ratios}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
