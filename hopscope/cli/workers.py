"""Train several runs in this process, in several processes, or with Ray; show their progress."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.text import Text

from hopscope.cli import flags
from hopscope.cli.display import Changing, RunDisplay
from hopscope.cli.options import gathered, option, refuse_unused
from hopscope.cli.output import say, warn
from hopscope.configs import Recipe
from hopscope.errors import ConfigError
from hopscope.plots.progress import clock_time
from hopscope.runs import Stop
from hopscope.runs.stop import REQUEUE
from hopscope.store import Store
from hopscope.workers import Here, Outcome, Processes, carry_out
from hopscope.workers.cluster import Cluster
from hopscope.workers.fleets import PACK
from hopscope.workers.pools import Pool
from hopscope.workers.progress import SweepProgress

RAY = "ray"


@dataclass(frozen=True, kw_only=True)
class WorkerFlags:
    """The flags for workers."""

    workers: str | None = None
    pack: int | None = None
    cpus: float | None = None
    gpus: float | None = None
    device: str = "auto"
    threads: int | None = None

    def pool(self) -> Pool:
        """Make the pool of workers; raises ConfigError for flags that do not apply to it."""
        from hopscope.training.device import device_of

        pack = PACK if self.pack is None else self.pack
        kind, _, address = (self.workers or "").partition("=")
        if kind == RAY:
            cpus = 1.0 if self.cpus is None else self.cpus
            return Cluster(address or "auto", self.gpus or 0.0, cpus, pack, self.threads)
        refuse_unused(f"without --workers {RAY}", "--cpus", "--gpus")
        device_of(self.device)
        if self.workers is None:
            return Here(pack, self.threads)
        if not self.workers.isascii() or not self.workers.isdigit():
            raise ConfigError(
                f"--workers is {self.workers!r}; expected a number of processes, or {RAY}"
            )
        return Processes(int(self.workers), pack, self.threads)


workers_options = gathered(
    "how", WorkerFlags,
    option("--workers N|ray", "Processes of this machine that share the runs; ray, or "
           "ray=HOST:PORT, for a Ray cluster that is up."),
    option("--pack N", "Runs that differ in their seeds alone and train as one fleet (default: "
           "4)."),
    option("--cpus N", "Processors of each job, under Ray (default: 1) and SLURM (default: 4).",
           type=float),
    option("--gpus N", "GPUs of each job (default: 0); under Ray with 0.25 four jobs share one.",
           type=float),
    flags.device, flags.threads,
)  # fmt: skip


def seconds_of(minutes: float | None) -> float | None:
    """Convert --time-limit from minutes to seconds; None stays None."""
    if minutes is None:
        return None
    if not minutes > 0:  # also NaN
        raise ConfigError(f"--time-limit is {minutes}; expected minutes above 0")
    return 60 * minutes


def carried_out(
    recipes: Sequence[Recipe],
    store: Store,
    chosen: WorkerFlags,
    stop: Stop | None = None,
    look: Callable[[SweepProgress], None] | None = None,
) -> Outcome:
    """Complete the runs of all recipes with the chosen workers, and show the progress.

    `look` is also called with the progress.
    """
    pool = chosen.pool()
    if isinstance(pool, Here):
        here = replace(pool, watcher=RunDisplay())
        return carry_out(recipes, store, stop, chosen.device, workers=here, look=look)
    shown = Changing(every=1.0)

    def both(progress: SweepProgress) -> None:
        ended = len(progress.reports) == progress.runs
        shown.show(lambda: Text(headline(progress)), lambda: headline(progress), now=ended)
        if look is not None:
            look(progress)

    try:
        return carry_out(recipes, store, stop, chosen.device, workers=pool, look=both)
    finally:
        shown.stop()


def ended(outcome: Outcome) -> int:
    """Print failures and the number of complete runs; return the command's exit code."""
    for trouble, count in Counter(map(str, outcome.troubles)).items():  # runs of a fleet share one
        warn(trouble if count == 1 else f"{trouble} ({count} runs)")
    say(f"{len(outcome.folders)} of {outcome.wanted} runs are complete")
    if len(outcome.folders) + len(outcome.troubles) < outcome.wanted:  # stopped by the time limit
        return REQUEUE
    return outcome.troubles[0].exit_code if outcome.troubles else 0


def headline(progress: SweepProgress) -> str:
    """Return one line: how many runs are complete, and how long the others take."""
    steps = progress.steps()
    left = progress.seconds_left(steps)
    failed = progress.count("failed")
    parts = [
        f"{progress.count('complete')} of {progress.runs} runs complete",
        *([f"{failed} failed"] if failed else []),
        f"{steps:,} of {progress.all_steps:,} steps of all models",
        "…" if left is None else f"{clock_time(left)} left",
    ]
    return " · ".join(parts)
