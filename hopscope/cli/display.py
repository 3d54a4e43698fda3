"""What one sees while a run trains: step, rate, time left, one line per hop."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hopscope.cli.output import drop_output, flush, printable, say, warn
from hopscope.errors import OutputLost
from hopscope.plots.progress import Progress
from hopscope.runs import Watcher
from hopscope.store import RunFolder

if TYPE_CHECKING:
    from hopscope.workers.progress import Progress as Sweep

LINE_SECONDS = 10.0
"""Seconds between two lines, where there is no terminal."""
PICTURE_SECONDS = 0.25
"""Seconds between two pictures of the panel in a terminal."""


class LiveDisplay:
    """A panel that is drawn again and again, for terminals."""

    def __init__(self, console: Console | None = None) -> None:
        self.progress = Progress()
        self.console = console

    def start(self, folder: RunFolder, step: int) -> None:
        self.progress.start(folder, step)
        # Drawn by us and not by a thread: what cannot be written any more is then heard of here.
        self.live = Live(console=self.console, get_renderable=self.picture, auto_refresh=False)
        self.live.start()
        self.drawn = self.progress.marks[-1][0]

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        self.progress.advance(step, latest)
        now = self.progress.marks[-1][0]
        if now - self.drawn >= PICTURE_SECONDS:
            self.drawn = now
            self.live.refresh()

    def stop(self) -> None:
        self.live.stop()

    def picture(self) -> Group:
        """The panel as it is now: name, step, a bar, and one line for each hop."""
        progress = self.progress
        table = Table.grid(padding=(0, 2))
        for name, loss, curve in progress.hop_rows():
            table.add_row(Text(name), Text(loss), Text(curve, style="cyan"))
        bar = Table.grid()  # a progress bar alone would not end its line
        bar.add_row(ProgressBar(total=progress.steps, completed=progress.step, width=60))
        title, headline = Text(printable(progress.name), style="bold"), Text(progress.headline())
        lines: list[Any] = [title, headline, bar, table]
        if words := progress.chance():
            lines.append(Text(words, style="dim"))
        return Group(*lines)


class LineDisplay:
    """A line every few seconds, for logs."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.printed = time.monotonic()

    def start(self, folder: RunFolder, step: int) -> None:
        self.progress.start(folder, step)
        say(f"{folder.name}: {self.progress.unit} {step:,} of {self.progress.steps:,}")
        flush()

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        self.progress.advance(step, latest)
        if time.monotonic() - self.printed >= LINE_SECONDS:
            self._print()

    def stop(self) -> None:
        if len(self.progress.marks) > 1:
            self._print()

    def _print(self) -> None:
        self.printed = time.monotonic()
        losses = [f"{name} {loss}" for name, loss, _ in self.progress.hop_rows()]
        say(" · ".join([self.progress.headline(), *losses]))
        flush()


class ManyDisplay:
    """A line on all runs together: redrawn in a terminal, printed now and then elsewhere."""

    def __init__(self, headline: Callable[["Sweep"], str]) -> None:
        self.headline = headline
        self.live = Live(console=Console(), auto_refresh=False) if in_terminal() else None
        self.shown: float | None = None

    def look(self, progress: "Sweep") -> None:
        """Show the progress, if it is time to."""
        now = time.monotonic()
        every = 1.0 if self.live else LINE_SECONDS
        ended = len(progress.reports) == progress.runs
        if self.shown is not None and now - self.shown < every and not ended:
            return
        if self.live is None:
            say(self.headline(progress))
            flush()
        else:
            if self.shown is None:
                self.live.start()
            self.live.update(Text(self.headline(progress)), refresh=True)
        self.shown = now

    def stop(self) -> None:
        """End the display."""
        if self.live is not None and self.shown is not None:
            self.live.stop()


class Dispensable:
    """A display without which a training goes on, once it cannot be written any more."""

    def __init__(self, shown: Watcher) -> None:
        self.shown: Watcher | None = shown

    def start(self, folder: RunFolder, step: int) -> None:
        self._show(lambda shown: shown.start(folder, step))

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        self._show(lambda shown: shown.advance(step, latest))

    def stop(self) -> None:
        self._show(lambda shown: shown.stop())

    def _show(self, act: Callable[[Watcher], None]) -> None:
        if self.shown is None:
            return
        try:
            act(self.shown)
        except (OSError, OutputLost) as error:
            self.shown = None
            why = error.strerror if isinstance(error, OSError) else error
            warn(f"the training goes on, and nothing more is shown of it ({why})")
            drop_output(error)


def display() -> Watcher:
    """The display that fits where the output goes."""
    return Dispensable(LiveDisplay() if in_terminal() else LineDisplay())


def in_terminal() -> bool:
    """Does the output go where a picture can be drawn again and again?"""
    return sys.stdout is not None and sys.stdout.isatty() and Console().is_terminal
