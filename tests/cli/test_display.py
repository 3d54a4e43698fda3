import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hopscope.cli.display import Dispensable, LiveDisplay, Progress, display
from hopscope.cli.output import flush
from hopscope.configs import Experiment
from hopscope.errors import OutputLost
from hopscope.store import Store


def watch(shown: Any, store: Store, tiny: Experiment) -> None:
    shown.start(store.create(tiny), 0)
    for step in range(1, 9):
        shown.advance(step, {"train": np.full((1, 2), 1.0 / step, np.float32)})


def test_the_panel_has_step_rate_time_left_and_a_line_per_hop(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(100))
    monkeypatch.setattr("hopscope.cli.display.time.monotonic", lambda: float(next(ticks)))
    live = LiveDisplay(Console(file=io.StringIO(), force_terminal=True, width=120))
    watch(live, store, tiny)
    live.stop()
    console = Console(file=io.StringIO(), width=120)
    console.print(live.picture())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "step 8 of 12 · 1.0 steps/s · 0:04 left" in text
    assert "hop 1" in text
    assert "hop 2" in text
    assert "█" in text
    assert "guessing gives 0.50" in text


def test_lines_come_every_few_seconds_and_at_the_end(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    ticks = iter(range(0, 1_000, 3))
    monkeypatch.setattr("hopscope.cli.display.time.monotonic", lambda: float(next(ticks)))
    watch(lines := display(), store, tiny)  # which is no terminal
    lines.stop()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("step 0 of 12")
    assert 3 <= len(printed) < 8
    assert "hop 2 0." in printed[-1]


def test_the_run_before_is_forgotten(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(0, 1_000, 2))
    monkeypatch.setattr("hopscope.cli.display.time.monotonic", lambda: float(next(ticks)))
    once, twice = Progress(), Progress()
    watch(once, store, tiny)
    watch(twice, store, tiny)
    twice.advance(12, {"train": np.full((1, 2), 9.0, np.float32)})
    watch(twice, store, tiny)
    assert twice.headline() == once.headline()
    assert twice.hop_rows() == once.hop_rows()


class Broken:
    """A display whose output cannot be written."""

    def __init__(self, error: Exception) -> None:
        self.error, self.asked = error, 0

    def start(self, folder: Any, step: int) -> None:
        self.asked += 1
        raise self.error

    advance = stop = start


def test_a_display_that_fails_is_dropped_and_said_once(
    store: Store, tiny: Experiment, capsys: Any
) -> None:
    for error in (BrokenPipeError(32, "Broken pipe"), OutputLost("disk full")):
        broken = Broken(error)
        watch(shown := Dispensable(broken), store, tiny)
        shown.stop()
        assert broken.asked == 1
        err = capsys.readouterr().err
        assert err.startswith("hopscope: the training goes on, and nothing more is shown of it (")
        assert err.count("\n") == 1
    with pytest.raises(OutputLost, match="disk full"):  # told again when the command ends
        flush()
    flush()


def test_without_curriculum_the_only_hop_is_the_last(store: Store, tiny: Experiment) -> None:
    task = tiny.task.model_copy(update={"curriculum": False})
    progress = Progress()
    progress.start(store.create(tiny.model_copy(update={"task": task})), 0)
    progress.advance(1, {"train": np.ones((1, 1), np.float32)})
    assert [name for name, _, _ in progress.hop_rows()] == ["hop 2"]
