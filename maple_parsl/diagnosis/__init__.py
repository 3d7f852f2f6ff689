"""Diagnosis: what failed first in a launch, read from its logs."""

from maple_parsl.diagnosis.diagnose import diagnose
from maple_parsl.diagnosis.model import Cause, Diagnosis, Edit, Evidence
from maple_parsl.diagnosis.source import LogSource

__all__ = ["Cause", "Diagnosis", "Edit", "Evidence", "LogSource", "diagnose"]
