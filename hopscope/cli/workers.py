"""Workers for several runs: this process, several processes, or Ray; and their progress."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.live import Live
from rich.text import Text

from hopscope.cli.arguments import DeviceArguments, refuse_unused
from hopscope.cli.output import flush, say, warn
from hopscope.configs import Recipe
from hopscope.errors import ConfigError
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.runs import Stop
    from hopscope.workers import Outcome
    from hopscope.workers.pools import Pool
    from hopscope.workers.progress import Progress

RAY = "ray"
"""The word that --workers takes instead of a number."""
OF_RAY = ("address", "gpus_per_run", "cpus_per_run")
"""Flags that are for Ray alone."""


@dataclass(frozen=True, kw_only=True)
class WorkersArguments(DeviceArguments):
    """Workers for several runs."""

    workers: Annotated[str | None, tyro.conf.arg(metavar="N|ray")] = None
    """Processes of this machine that share the runs; or `ray`, for a Ray that runs."""
    pack: int | None = None
    """Runs that differ in seeds alone and train as one fleet (default: 4; reproduce: 1)."""
    address: str = "auto"
    """Ray's address: HOST:PORT, or auto for one that runs on this machine."""
    gpus_per_run: float = 0.0
    """GPUs of each job under Ray; with 0.25 four jobs share one."""
    cpus_per_run: float = 1.0
    """Processors of each job under Ray."""


def pool_of(chosen: WorkersArguments) -> "Pool":
    """The pool that the flags ask for."""
    from hopscope.training.device import device_of
    from hopscope.workers import Here, Processes
    from hopscope.workers.fleets import PACK

    pack = PACK if chosen.pack is None else chosen.pack
    if chosen.workers != RAY:
        refuse_unused(chosen, OF_RAY, f"without --workers {RAY}")
        device_of(chosen.device)
    if chosen.workers is None:
        return Here(pack, chosen.threads)
    if chosen.workers == RAY:
        from hopscope.workers.cluster import Cluster

        gpus, cpus = chosen.gpus_per_run, chosen.cpus_per_run
        return Cluster(chosen.address, gpus, cpus, pack, chosen.threads)
    if not chosen.workers.isascii() or not chosen.workers.isdigit():
        raise ConfigError(
            f"--workers is {chosen.workers!r}; expected a number of processes, or {RAY}"
        )
    return Processes(int(chosen.workers), pack, chosen.threads)


def seconds_of(minutes: float | None) -> float | None:
    """What --time-limit says, in seconds."""
    if minutes is None:
        return None
    if not minutes > 0:  # NaN is not, either
        raise ConfigError(f"--time-limit is {minutes}; expected minutes above 0")
    return 60 * minutes


def carried_out(
    recipes: Sequence[Recipe],
    store: Store,
    chosen: WorkersArguments,
    stop: "Stop | None" = None,
    look: Callable[["Progress"], None] | None = None,
) -> "Outcome":
    """Complete the runs of all recipes with the workers that the flags ask for, and show progress.
    `look` is shown it as well.
    """
    from hopscope.cli.display import display
    from hopscope.workers import Here, carry_out

    pool = pool_of(chosen)
    if isinstance(pool, Here):
        here = replace(pool, watcher=display())
        return carry_out(recipes, store, stop, chosen.device, workers=here, look=look)
    shown = ManyDisplay()

    def both(progress: "Progress") -> None:
        shown.look(progress)
        if look is not None:
            look(progress)

    try:
        return carry_out(recipes, store, stop, chosen.device, workers=pool, look=both)
    finally:
        shown.stop()


def ended(outcome: "Outcome") -> int:
    """Print how many runs are complete, and what failed; the command's exit code."""
    from hopscope.runs.stop import REQUEUE

    for trouble in outcome.troubles:
        warn(trouble)
    say(f"{len(outcome.folders)} of {outcome.wanted} runs are complete")
    if len(outcome.folders) + len(outcome.troubles) < outcome.wanted:  # the time was over
        return REQUEUE
    return outcome.troubles[0].exit_code if outcome.troubles else 0


class ManyDisplay:
    """A line on all runs together: redrawn in a terminal, printed now and then elsewhere."""

    def __init__(self) -> None:
        from hopscope.cli.display import in_terminal

        self.live = Live(console=Console(), auto_refresh=False) if in_terminal() else None
        self.shown: float | None = None

    def look(self, progress: "Progress") -> None:
        """Show the progress, if it is time to."""
        from hopscope.cli.display import LINE_SECONDS

        now = time.monotonic()
        every = 1.0 if self.live else LINE_SECONDS
        ended = len(progress.reports) == progress.runs
        if self.shown is not None and now - self.shown < every and not ended:
            return
        if self.live is None:
            say(headline(progress))
            flush()
        else:
            if self.shown is None:
                self.live.start()
            self.live.update(Text(headline(progress)), refresh=True)
        self.shown = now

    def stop(self) -> None:
        """End the display."""
        if self.live is not None and self.shown is not None:
            self.live.stop()


def headline(progress: "Progress") -> str:
    """How many runs are complete, and how long the others take, in one line."""
    from hopscope.report.progress import clock_time

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
