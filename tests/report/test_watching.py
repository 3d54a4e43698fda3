"""A training in a notebook: one display, updated, that says how far it is; elsewhere nothing."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import hopscope
from hopscope import display
from hopscope.configs import Experiment
from hopscope.report.watching import Watching
from hopscope.runs import Watcher
from hopscope.store import Store


class Place:
    """Where a notebook shows something, and all that it showed there."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def update(self, shown: Any) -> None:
        self.seen.append(shown._repr_html_())


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    """A notebook: an IPython with a kernel, as far as hopscope asks for it."""
    found = Place()

    def shows(shown: Any, *, display_id: bool) -> Place:
        assert display_id  # else every update would be another picture
        found.update(shown)
        return found

    ipython, its_display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    its_display.display = shows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", its_display)
    return found


def test_training_in_a_notebook_shows_how_it_goes(
    place: Place, store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.report.watching.SECONDS", 0.0)
    run = hopscope.train(tiny, store)
    first, last = place.seen[0], place.seen[-1]
    steps = tiny.training.steps
    assert f'<progress max="{steps}" value="0"' in first
    assert f'<progress max="{steps}" value="{steps}"' in last
    assert run.name in last
    assert "hop 2" in last
    assert "guessing gives 0.50" in last
    assert len(place.seen) > 3


def test_elsewhere_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert display.watcher() is None
    in_terminal = ModuleType("IPython")
    in_terminal.get_ipython = SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", in_terminal)
    assert display.watcher() is None
    assert isinstance(Watching(), Watcher)
