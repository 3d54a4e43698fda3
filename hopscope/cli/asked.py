"""Common steps of analysis commands: open a model, check output paths, compute, print, save."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from inspect import cleandoc
from typing import Any

import click

from hopscope import study as studies
from hopscope.circuits.progress import watched
from hopscope.cli import flags
from hopscope.cli.options import gathered, option
from hopscope.cli.output import note
from hopscope.cli.results import Destination, Output, reporting
from hopscope.cli.subject import Subject
from hopscope.machine import check_threads

run_options = (
    click.argument("name", metavar="RUN", shell_complete=flags.RUNS),
    option("--step N", "Checkpoint to take (default: the last)."),
    option("--seed N", "Seed of the fleet member to take (default: the first)."),
    option("--circuit-file FILE",
           "Take the circuit from this file, not the one saved with the run."),
    flags.store,
)  # fmt: skip
elsewhere_options = (
    option("--task FILE", "Task of a model from elsewhere: a JSON file, or repeated-tokens.",
           type=str),
    flags.device,
)  # fmt: skip
OF_RUNS = """
RUN is a run's name or tag, or enough of its name; gallery/NAME; a run's folder or a checkpoint
in it"""
OR_ELSEWHERE = "; or a model from elsewhere with its --task: hf:FOLDER, nanogpt:FILE"


@dataclass(frozen=True)
class Asked:
    """Arguments that all analyses share."""

    subject: Subject
    to: Destination
    examples: int
    sample: int

    @cached_property
    def study(self) -> "studies.Study":
        """The model with its task."""
        return self.subject.study()


Analysis = Callable[..., Output]


def analysis(
    examples: int,
    *own: Callable[[Any], Any],
    least: int = 1,
    of: str = "fresh examples",
    only_runs: bool = False,
    **written: Any,
) -> Callable[[Analysis], click.Command]:
    """Make a command from a function that takes `Asked` and its own options and returns `Output`.

    `examples` is the default of --examples, `least` its minimum, `of` what it counts. With
    `only_runs` it computes on the processor and takes no model from elsewhere. `written` is passed
    to `reporting` (what can be saved and drawn).
    """
    count = option("--examples N", f"Number of {of}.", type=click.IntRange(least), default=examples)
    subject_options = (
        gathered("subject", partial(Subject, device="cpu"), *run_options)
        if only_runs
        else gathered("subject", Subject, *run_options, *elsewhere_options)
    )
    about = f"{OF_RUNS}{'' if only_runs else OR_ELSEWHERE}."

    def decorate(compute: Analysis) -> click.Command:
        @wraps(compute)
        def called(
            to: Destination, subject: Subject, threads: int | None, examples: int, sample: int,
            **values: Any,
        ) -> Output:  # fmt: skip
            with _using(threads), watched(progress()):
                return compute(Asked(subject, to, examples, sample), **values)

        called.__doc__ = f"{cleandoc(compute.__doc__ or '')}\n{about}"
        return reporting(subject_options, count, flags.sample(), *own, flags.threads, **written)(
            called
        )

    return decorate


def _using(threads: int | None) -> AbstractContextManager[None]:
    """Return a context with this number of threads (None: unchanged, and torch is not imported)."""
    if threads is None:
        return nullcontext()
    check_threads(threads)
    from hopscope.runs.computing import using_threads

    return using_threads(threads)


def progress() -> Callable[[str], None]:
    """Return a function that prints a step, with the seconds since the start, to stderr."""
    started = time.monotonic()
    return lambda what: note(f"[{time.monotonic() - started:5.1f} s] {what}")
