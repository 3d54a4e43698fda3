"""Many runs: what is packed together, who carries it out, and what becomes of each."""

from hopscope.workers.carry import Outcome, carry_out
from hopscope.workers.here import Here
from hopscope.workers.job import Job, Report, done
from hopscope.workers.pool import Pool
from hopscope.workers.processes import Processes

__all__ = ["Here", "Job", "Outcome", "Pool", "Processes", "Report", "carry_out", "done"]
