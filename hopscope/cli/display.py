"""The display of runs in training: step, rate, time left, one line per hop."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hopscope.cli.output import drop_output, flush, printable, say, warn
from hopscope.errors import OutputLost
from hopscope.plots.progress import Pace
from hopscope.store import RunFolder

LINE_SECONDS = 10.0
"""Seconds between two lines if the output is not a terminal."""
PICTURE_SECONDS = 0.25
"""Seconds between two redraws of a run in a terminal."""


class Changing:
    """A live display: a picture that is redrawn in a terminal, or a line at intervals elsewhere.

    If writing fails, a warning is printed once, and the training continues without the display.
    """

    def __init__(self, console: Console | None = None, every: float = PICTURE_SECONDS) -> None:
        self.console = console or (Console() if in_terminal() else None)
        self.every = every if self.console else LINE_SECONDS
        self.live: Live | None = None
        self.shown: float | None = None
        self.lost = False

    def show(
        self, picture: Callable[[], RenderableType], line: Callable[[], str], *, now: bool = False
    ) -> None:
        """Redraw the picture or print the line, if `every` seconds have passed or `now` is true."""
        time_is = time.monotonic()
        early = self.shown is not None and time_is - self.shown < self.every
        if self.lost or (early and not now):
            return
        self.shown = time_is
        with self._dispensable():
            if self.console is None:
                say(line())
                flush()
                return
            if self.live is None:
                # No refresh thread: an error in writing must be raised here.
                self.live = Live(console=self.console, auto_refresh=False)
                self.live.start()
            self.live.update(picture(), refresh=True)

    def stop(self) -> None:
        """End the picture."""
        if self.live is not None and not self.lost:
            with self._dispensable():
                self.live.stop()
        self.live = self.shown = None

    @contextmanager
    def _dispensable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, OutputLost) as error:
            self.lost = True
            why = error.strerror if isinstance(error, OSError) else error
            warn(f"the training continues without a display ({why})")
            drop_output(error)


class RunDisplay:
    """The display of a run: a panel with a curve for each hop, or lines for logs."""

    def __init__(self, console: Console | None = None) -> None:
        self.progress, self.changing = Pace(), Changing(console)

    def start(self, folder: RunFolder, step: int) -> None:
        self.progress.start(folder, step)
        begins = f"{folder.name}: {self.progress.unit} {step:,} of {self.progress.steps:,}"
        self.changing.show(self.picture, lambda: begins)

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        self.progress.advance(step, latest)
        self.changing.show(self.picture, self.line)

    def stop(self) -> None:
        if len(self.progress.marks) > 1:
            self.changing.show(self.picture, self.line, now=True)
        self.changing.stop()

    def line(self) -> str:
        """Return the progress and the loss of each hop as one line."""
        losses = [f"{name} {loss}" for name, loss, _ in self.progress.hop_rows()]
        return " · ".join([self.progress.headline(), *losses])

    def picture(self) -> Group:
        """Return the current panel: name, step, a bar, and one line for each hop."""
        progress = self.progress
        table = Table.grid(padding=(0, 2))
        for name, loss, curve in progress.hop_rows():
            table.add_row(Text(name), Text(loss), Text(curve, style="cyan"))
        bar = Table.grid()  # a progress bar alone does not end its line
        bar.add_row(ProgressBar(total=progress.steps, completed=progress.step, width=60))
        title, headline = Text(printable(progress.name), style="bold"), Text(progress.headline())
        lines: list[Any] = [title, headline, bar, table]
        if words := progress.chance():
            lines.append(Text(words, style="dim"))
        return Group(*lines)


def in_terminal() -> bool:
    """Return whether standard output is a terminal that can redraw a picture."""
    return sys.stdout is not None and sys.stdout.isatty() and Console().is_terminal
