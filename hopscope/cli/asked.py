"""The shape of analysis commands: open a model, check what is written, compute, print, save."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from hopscope.cli.options import (
    RUNS,
    device_option,
    option,
    options,
    sample_option,
    store_option,
    threads_option,
)
from hopscope.cli.output import note
from hopscope.cli.results import Destination, Output, reporting
from hopscope.cli.subject import Subject
from hopscope.errors import ConfigError
from hopscope.machine import check_threads

if TYPE_CHECKING:
    from hopscope.study import Study

run_options = options(
    click.argument("run", metavar="RUN", shell_complete=RUNS),
    option("--step N", "Checkpoint to take (default: the last)."),
    option("--seed N", "Seed of the fleet member to take (default: the first)."),
    option("--task FILE", "Task of a model from elsewhere: a JSON file, or repeated-tokens.",
           type=str),
    option("--circuit-file FILE",
           "Take the circuit from this file, not the one kept with the run."),
    store_option,
)  # fmt: skip
ABOUT = """

    RUN is a run's name or tag, or enough of its name; gallery/NAME; a run's folder or a checkpoint
    in it; or a model from elsewhere with its --task: hf:FOLDER, nanogpt:FILE."""


@dataclass(frozen=True)
class Asked:
    """What an analysis is asked to do."""

    subject: Subject
    to: Destination
    examples: int
    sample: int

    @property
    def fits(self) -> "Study":
        """The model, if so many examples of its task fit into memory."""
        study = self.subject.study()
        study.check_fits(self.examples)
        return study


Analysis = Callable[..., Output | None]


def analysis(
    examples: int,
    *own: Callable[[Any], Any],
    least: int = 1,
    gpu: bool = True,
    **written: Any,
) -> Callable[[Analysis], click.Command]:
    """Make a command of a function that takes what is Asked and its own options, and returns its
    Output; `written` says what can be saved and drawn, as for `reporting`.
    """
    count = option("--examples N", "Number of fresh examples.", default=examples)
    where = (device_option, threads_option) if gpu else (threads_option,)

    def decorate(compute: Analysis) -> click.Command:
        @wraps(compute)
        def called(to: Destination, threads: int | None, **flags: Any) -> Output | None:
            names = ("store", "seed", "step", "task", "circuit_file")
            device = flags.pop("device", "cpu")
            known = {name: flags.pop(name) for name in names}
            subject = Subject(flags.pop("run"), device=device, **known)
            if flags["examples"] < least:
                raise ConfigError(f"--examples is {flags['examples']}; expected at least {least}")
            asked = Asked(subject, to, flags.pop("examples"), flags.pop("sample"))
            with _using(threads):
                return compute(asked, **flags)

        called.__doc__ = (compute.__doc__ or "") + ABOUT
        return reporting(run_options, count, sample_option(), *own, *where, **written)(called)

    return decorate


def _using(threads: int | None) -> AbstractContextManager[None]:
    """Compute with so many threads; with as many as ever (None) needs no torch."""
    if threads is None:
        return nullcontext()
    check_threads(threads)
    from hopscope.runs.computing import using_threads

    return using_threads(threads)


def progress() -> Callable[[str], None]:
    """What shows on stderr what is being done."""
    started = time.monotonic()
    return lambda what: note(f"[{time.monotonic() - started:5.1f} s] {what}")
