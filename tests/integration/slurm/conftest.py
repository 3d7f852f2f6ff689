"""The clusters of these tests."""

from tests.testbeds.slurm.fixtures import slurm, slurm_accounting

__all__ = ["slurm", "slurm_accounting"]
