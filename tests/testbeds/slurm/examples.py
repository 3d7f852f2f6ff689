"""Three hand-made shapes: whole nodes without counted GPUs, features and QOS, ten thousand nodes."""

from __future__ import annotations

from .shapes import Bin, NodeGroup, PartitionShape, QosShape, SiteShape

_NO_GRES = "GPUs come with the whole node"

TACC_LIKE = SiteShape(
    cluster="tacclike",
    groups=(
        NodeGroup("gh", "gh", 600, cores_per_socket=72, memory_mb=118_000, digits=3),
        NodeGroup("gg", "gg", 256, sockets=2, cores_per_socket=72, memory_mb=230_000, digits=3),
    ),
    partitions=(
        PartitionShape("gh", ("gh",), 1, 64, 2880, exclusive=True),
        PartitionShape("gh-dev", ("gh",), 1, 8, 120, exclusive=True),
        PartitionShape("gg", ("gg",), 1, 32, 2880, exclusive=True),
    ),
    required=("nodes", "partition", "time", "ntasks|ntasks-per-node"),
    forbidden={
        "gres": _NO_GRES,
        "gpus": _NO_GRES,
        "gpus-per-node": _NO_GRES,
        "gpus-per-task": _NO_GRES,
        "mem": "memory comes with the whole node",
    },
)

PERLMUTTER_LIKE = SiteShape(
    cluster="perlmutterlike",
    groups=(
        NodeGroup("gpu40", "nid1", 1536, 64, 256_000, 1, 2, "a100", 4, features=("gpu", "hbm40g"), digits=5),
        NodeGroup("gpu80", "nid2", 256, 64, 256_000, 1, 2, "a100", 4, features=("gpu", "hbm80g"), digits=5),
    ),
    partitions=(PartitionShape("gpu", ("gpu40", "gpu80"), default=True, exclusive=True, default_minutes=10),),
    qos=(
        QosShape("debug", max_nodes=8, max_minutes=30, default=True),
        QosShape("interactive", max_nodes=4, max_minutes=240),
        QosShape("regular", max_minutes=2880),
    ),
    required=("account", "time"),
    feature_required=("gpu", "cpu"),
    forbidden={"gres": "use --gpus-per-node"},
)

FRONTIER_LIKE = SiteShape(
    cluster="frontierlike",
    groups=(NodeGroup("frontier", "frontier", 9856, 64, 512_000, 1, 2, "mi250x", 8, digits=5),),
    partitions=(
        PartitionShape(
            "batch",
            ("frontier",),
            max_minutes=720,
            default=True,
            exclusive=True,
            bins=(Bin(1, 91, 120), Bin(92, 183, 360), Bin(184, 9472, 720)),
        ),
        PartitionShape("extended", ("frontier",), 1, 64, 1440, exclusive=True),
    ),
    qos=(QosShape("normal", default=True), QosShape("debug", max_minutes=120)),
    required=("account", "time"),
    account_pattern=r"^[a-z]{3}\d+$",
    core_spec=True,
)
