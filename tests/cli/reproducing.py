"""What tests of commands share; and of `hopscope reproduce`: a target of two short trainings."""

from collections.abc import Callable

from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol
from hopscope.papers.target import Target
from hopscope.store import RunFolder
from hopscope.training import Run

Say = Callable[..., tuple[int, str, str]]
"""A command: exit code, output, errors."""
Said = Callable[..., str]
"""A command that succeeds: its output."""


class End(Row):
    loss: float


def ends(folder: RunFolder, protocol: Protocol) -> list[End]:
    """How a run ended."""
    return [End(loss=float(Run(folder).final_losses().mean()))]


def registry(*targets: Target) -> Registry:
    """These targets, and no claims but those that need other ones."""
    return Registry({target.name: target for target in targets}, PAPERS.claims)
