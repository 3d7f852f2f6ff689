"""Correction: findings or a diagnosis become a new script or a new plan, checked again. Nothing is ever submitted."""

from __future__ import annotations

from maple_parsl.correction.plan import Change, PlanCorrection, correct_plan
from maple_parsl.correction.script import Correction, correct

__all__ = ["Change", "Correction", "PlanCorrection", "correct", "correct_plan"]
