import io
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hopscope.cli.display import LineDisplay, LiveDisplay, Progress, display
from hopscope.configs import Experiment
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
    watch(lines := LineDisplay(), store, tiny)
    lines.stop()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].endswith("step 0 of 12")
    assert 3 <= len(printed) < 8
    assert "hop 2 0." in printed[-1]


def test_a_log_gets_lines() -> None:
    assert isinstance(display(), LineDisplay)


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
