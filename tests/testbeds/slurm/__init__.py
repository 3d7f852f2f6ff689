"""A real Slurm cluster for tests, on one machine, in namespaces of its own: see README.md."""

from .cluster import Testbed
from .config import BedConfig
from .machine import TestbedError
from .packages import missing_packages
from .shapes import Bin, NodeGroup, PartitionShape, QosShape, SiteShape

__all__ = [
    "BedConfig",
    "Bin",
    "NodeGroup",
    "PartitionShape",
    "QosShape",
    "SiteShape",
    "Testbed",
    "TestbedError",
    "missing_packages",
]
