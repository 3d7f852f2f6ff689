"""Real Globus Compute endpoints and SDK on one machine, with a stand-in for the web service."""

from tests.testbeds.globus.stand import ENDPOINTS, Place, Stand, why_not

__all__ = ["ENDPOINTS", "Place", "Stand", "why_not"]
