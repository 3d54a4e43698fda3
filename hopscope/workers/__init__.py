"""Many runs: which train together as a fleet, who trains them, and how each one ended."""

from hopscope.workers.job import Job, Report
from hopscope.workers.pools import Here, Processes
from hopscope.workers.sweep import Outcome, carry_out

__all__ = ["Here", "Job", "Outcome", "Processes", "Report", "carry_out"]
