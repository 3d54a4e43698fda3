"""The progress of a training in a notebook: one display that is updated until the end."""

import time
from html import escape
from typing import Any

import numpy as np

from hopscope.plots.page import table_html
from hopscope.plots.progress import Pace
from hopscope.store import RunFolder

SECONDS = 0.5
"""Seconds between two updates."""


class Watching:
    """A watcher (`hopscope.runs.Watcher`) that shows the progress in a notebook."""

    def __init__(self) -> None:
        self.progress = Pace()
        self.shown = time.monotonic()
        self.place: Any = None

    def start(self, folder: RunFolder, step: int) -> None:
        from IPython.display import display

        self.progress.start(folder, step)
        self.place = display(self, display_id=True)

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        self.progress.advance(step, latest)
        if time.monotonic() - self.shown >= SECONDS:
            self._update()

    def stop(self) -> None:
        self._update()

    def _update(self) -> None:
        self.shown = time.monotonic()
        self.place.update(self)

    def __repr__(self) -> str:
        return f"{self.progress.name}: {self.progress.headline()}"

    def _repr_html_(self) -> str:
        progress = self.progress
        bar = (
            f'<progress max="{progress.steps}" value="{progress.step}" '
            f'aria-label="steps of the training"></progress>'
        )
        chance = f"<p>{words}</p>" if (words := progress.chance()) else ""
        rows = progress.hop_rows()
        losses = table_html(("loss of", "now", "so far"), rows) + chance if rows else ""
        return (
            f'<div class="hopscope"><code>{escape(progress.name)}</code><br>{bar} '
            f"{escape(progress.headline())}{losses}</div>"
        )
