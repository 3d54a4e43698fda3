"""Train many runs: group them into fleets, hand them to workers, and collect reports."""

from hopscope.workers.job import Job, Report
from hopscope.workers.pools import Here, Processes
from hopscope.workers.sweep import Outcome, carry_out

__all__ = ["Here", "Job", "Outcome", "Processes", "Report", "carry_out"]
