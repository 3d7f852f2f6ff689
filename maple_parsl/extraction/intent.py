"""What the words ask for: a launch, or the cause of a failure; and whether they are a request at all."""

from __future__ import annotations

import re

from maple_parsl.extraction.reading import Issue

_FAILURE = re.compile(
    r"what(?:'s| is| went| was)? (?:is )?wrong|tell me what|why (?:did|does|is|was|do|are|won't|doesn't"
    r"|would)\b|diagnos\w*|\bit says\b|\bsays ['\"]"
    r"|NCCL WARN|NCCL error|Traceback|\b(?:qsub|sbatch|srun|slurmstepd|mpiexec|salloc|PBS): |\b\w{1,40}Error\b:?"
    r"|\b(?:fails?|failed|crash(?:es|ed)?|died|dies)\b.{0,40}\b(?:with|saying|because)\b"
    r"|\b(?:hangs?|hung|stuck|crash(?:es|ed)?|segfault\w*|oom|out of memory|timed out)\b|\berror (?:message"
    r"|code|was|is)\b|got (?:this|an|the) error|no socket interface|unhandled system error",
    re.I,
)
_AGAIN = re.compile(
    r"\b(?:same as (?:before|last|yesterday)|like (?:last time|before|yesterday)|as before|again|the usual"
    r"|previous (?:run|job)|last (?:run|job|one)|that job|the other (?:one|queue|partition))\b",
    re.I,
)
_CLASSES = (
    (
        re.compile(r"no socket interface|NCCL_SOCKET_IFNAME|GLOO_SOCKET_IFNAME|Bootstrap : no|network interface", re.I),
        "NETWORK_IFACE",
    ),
    (
        re.compile(
            r"is required to be set|required (?:option|field|resource)|account (?:is )?required|must (?:specify"
            r"|be specified|provide)|missing (?:account|walltime|project)|no account",
            re.I,
        ),
        "MISSING_REQUIRED_FIELD",
    ),
    (
        re.compile(
            r"invalid account|invalid qos|invalid partition|unknown queue|account or account/partition|not "
            r"authorized|unknown (?:project|account)",
            re.I,
        ),
        "ACCOUNT_PARTITION_QOS",
    ),
    (
        re.compile(
            r"exceeds? (?:queue|partition|server|site)|time limit|walltime .*(?:exceed|limit)"
            r"|PartitionTimeLimit|violates queue|DUE TO TIME LIMIT",
            re.I,
        ),
        "QUEUE_LIMIT",
    ),
    (re.compile(r"address already in use|EADDRINUSE|port .{0,20}in use", re.I), "PORT_COLLISION"),
    (
        re.compile(
            r"invalid generic resource|gres specification|requested node configuration|invalid device ordinal|ngpus",
            re.I,
        ),
        "GPU_REQUEST",
    ),
    (re.compile(r"oom[- ]kill|out of memory|cannot allocate memory|oom killed|exceeded memory", re.I), "MEMORY"),
    (
        re.compile(r"module(?: command)?:? (?:command )?not found|No module named|command not found", re.I),
        "ENV_NOT_ACTIVATED",
    ),
    (
        re.compile(r"timed out.{0,40}(?:store|rendezvous)|MASTER_ADDR|rendezvous|connect(?:ion)? (?:refused|to)", re.I),
        "RDZV_ENDPOINT",
    ),
)


def asks_for_a_cause(text: str) -> bool:
    """Whether a failure is described, rather than a launch asked for."""
    return bool(_FAILURE.search(text))


def cause_class(text: str) -> Issue | None:
    """The class of script fault that the failure's words point to."""
    for pattern, name in _CLASSES:
        if match := pattern.search(text):
            return Issue(
                name,
                f"the words {match.group()!r} point to {name}",
                "maple check SCRIPT and maple diagnose LOG say more",
                match.start(),
                match.end(),
            )
    return None


def is_fragment(fields: set[str], text: str) -> bool:
    """Whether the words mean something only beside an earlier request (``one hour and a half``)."""
    said = fields - {"framework", "gpus_per_node"}
    if not said:
        return True
    anchors = {"site", "script", "paradigm", "model"}
    return not said & anchors and (len(said) <= 2 or bool(_AGAIN.search(text)))
