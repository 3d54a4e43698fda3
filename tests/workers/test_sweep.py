"""Sweeps: what is complete is taken, what was begun goes on, and who asks to stop is obeyed."""

import signal
import sys
import threading
from collections import deque
from concurrent.futures import Future, _base
from inspect import unwrap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from stopping import changed, content

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, Interrupted, RunBusy
from hopscope.runs import Stop
from hopscope.store import RunFolder, Store
from hopscope.workers import Here, Job, Outcome, Report, carry_out, sweep
from hopscope.workers.progress import SweepProgress
from hopscope.workers.sweep import _Sweep, _Task

STEPS = 6
Recipes = tuple[Experiment, ...]
Runs = dict[str, dict[str, bytes]]


class Diary:
    """A watcher that writes down what is trained, and at one step lets time pass or a signal come.

    `at` counts the steps of all runs together.
    """

    def __init__(self, at: int = 0, number: signal.Signals | None = None) -> None:
        self.at, self.number, self.now = at, number, 0.0
        self.started: list[tuple[str, int]] = []
        self.trained = threading.Event()
        self.steps = 0

    def start(self, folder: RunFolder, step: int) -> None:
        self.started.append((folder.name, step))

    def advance(self, step: int, latest: object) -> None:
        self.steps += 1
        if self.steps == self.at:
            self.now += 1000
            if self.number is not None:
                signal.raise_signal(self.number)

    def stop(self) -> None:
        self.trained.set()


def minute(diary: Diary) -> Stop:
    """A stop after a minute by the diary's clock."""
    return Stop(60.0, lambda: diary.now)


@pytest.fixture(scope="module")
def recipes(five: Recipes) -> Recipes:
    """Three that cannot be trained as one."""
    return tuple(changed(recipe, lr=1e-3 * n) for n, recipe in enumerate(five[:3], 1))


@pytest.fixture
def names(recipes: Recipes) -> list[str]:
    return [recipe.run_name() for recipe in recipes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, recipes: Recipes) -> Runs:
    """What becomes of all recipes if nobody interferes."""
    return runs_of(carry_out(recipes, Store(tmp_path_factory.mktemp("whole"))))


def runs_of(outcome: Outcome) -> Runs:
    return {folder.name: content(folder) for folder in outcome.folders}


def test_recipes_are_carried_out_in_their_order_and_what_is_complete_is_taken(
    store: Store, recipes: Recipes, names: list[str]
) -> None:
    (first,) = carry_out(recipes[1:2], store).folders
    diary = Diary()
    outcome = carry_out(recipes, store, workers=Here(watcher=diary))
    assert outcome.complete
    assert [folder.name for folder in outcome.folders] == names
    assert diary.started == [(name, 0) for name in (names[0], names[2])]
    assert all(folder.manifest.complete for folder in outcome.folders)
    assert outcome.folders[1].manifest == first.manifest
    diary = Diary()
    assert carry_out(recipes, store, Stop(0.0), workers=Here(watcher=diary)).complete
    assert diary.started == []
    assert carry_out((), store, stop=Stop(0.0)).complete


@pytest.mark.parametrize(("at", "complete", "step"), [(1, 0, 1), (17, 2, 5)])
def test_what_was_stopped_ends_as_if_it_had_not_been(
    whole: Runs, store: Store, recipes: Recipes, names: list[str], at: int, complete: int, step: int
) -> None:
    diary = Diary(at)
    short = carry_out(recipes, store, minute(diary), workers=Here(watcher=diary))
    assert (short.complete, short.troubles) == (False, ())
    assert [folder.name for folder in short.folders] == names[:complete]
    assert len(store.names()) == complete + (step > 0)
    diary = Diary()
    rest = carry_out(recipes, store, minute(diary), workers=Here(watcher=diary))
    assert rest.complete
    assert diary.started[0] == (names[complete], step)
    assert runs_of(rest) == whole


@pytest.mark.parametrize(
    ("number", "at", "code"),
    [(signal.SIGINT, 8, 130), (signal.SIGTERM, 8, 75), (signal.SIGINT, STEPS, 130)],
)
def test_a_signal_ends_the_sweep(
    store: Store, recipes: Recipes, names: list[str], number: signal.Signals, at: int, code: int
) -> None:
    """At the last step of a run as well, whose own training is done by then."""
    diary = Diary(at, number)
    with pytest.raises(Interrupted, match=f"stopped by {number.name}") as caught:
        carry_out(recipes, store, minute(diary), workers=Here(watcher=diary))  # whose time is over
    assert caught.value.exit_code == code
    begun = -(-at // STEPS)
    assert [name for name, _ in diary.started] == names[:begun]
    assert store.has_complete(recipes[0])
    if at > STEPS:  # `hopscope resume` of one run would leave out the others
        text = "1 of 3 runs are complete, 1 wrote a checkpoint; the same command continues"
        assert str(caught.value).endswith(text)
        assert store.find(names[1]).manifest.step == at - STEPS


class Silent:
    """A worker that does not report."""

    capacity = 1

    def __init__(self) -> None:
        self.reports: Future[list[Report]] = Future()

    def begin(self, job: Job) -> Future[list[Report]]:
        return self.reports

    def ask_to_stop(self) -> None: ...


def test_ctrl_c_while_workers_compute_keeps_none_of_them(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever line of `concurrent.futures` it comes at, a report can still be handed over."""
    monkeypatch.setattr(sweep, "MOMENT", 0.01)
    before, task = sys.gettrace(), _Task(Job.of((tiny,), store, "cpu", 1))
    for line in range(40):
        lines, looks, worker = iter(range(line)), iter(range(1)), Silent()

        def trace(frame: FrameType, event: str, _: object, lines=lines) -> Any:
            if frame.f_code.co_filename != _base.__file__:
                return None
            if event == "line" and next(lines, None) is None:
                raise KeyboardInterrupt
            return trace

        def look(_: SweepProgress, looks=looks) -> None:
            if next(looks, None) is None:  # the line was not there
                raise KeyboardInterrupt
            sys.settrace(trace)

        try:
            with pytest.raises(KeyboardInterrupt):
                _Sweep(store, Here(), Stop(), "cpu", look)._hand_out(deque([task]), worker)
        finally:
            sys.settrace(before)
        reporting = threading.Thread(target=worker.reports.set_result, args=([],), daemon=True)
        reporting.start()
        reporting.join(5)
        assert not reporting.is_alive(), line


def test_what_another_process_trains_is_left_to_it(
    store: Store, recipes: Recipes, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.workers.sweep.WAIT", 0.1)
    stop = Stop()
    failed = list[int]()
    with store.create(recipes[0]).locked():
        outcome = carry_out(recipes, store, look=lambda seen: failed.append(seen.count("failed")))
        assert not any(failed)  # it is only waited for
        assert [folder.name for folder in outcome.folders] == names[1:]
        (trouble,) = outcome.troubles
        assert isinstance(trouble, RunBusy)
        assert names[0] in str(trouble)
        assert not outcome.complete
        monkeypatch.setattr("hopscope.workers.sweep.WAIT", 60)
        timer = threading.Timer(0.1, lambda: stop.ask("a friend"))
        timer.start()
        with pytest.raises(Interrupted, match="stopped by a friend: 0 of 1 runs are complete"):
            carry_out(recipes[:1], store, stop)  # it waits, and stops when it is asked
        timer.join()
    assert carry_out(recipes, store).complete


def test_what_others_let_go_is_carried_out_after_all(
    store: Store, recipes: Recipes, names: list[str]
) -> None:
    """As where a driver was killed, whose workers write their checkpoints meanwhile."""
    folder, begun, diary = store.create(recipes[0]), threading.Event(), Diary()

    def hold() -> None:
        with folder.locked():
            begun.set()
            diary.trained.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    begun.wait(60)
    outcome = carry_out(recipes, store, workers=Here(watcher=diary))
    holder.join()
    assert outcome.complete
    assert outcome.troubles == ()
    assert [name for name, _ in diary.started] == [*names[1:], names[0]]


def test_a_run_that_somebody_removes_meanwhile_is_told(store: Store, recipes: Recipes) -> None:
    def remove(progress: SweepProgress) -> None:
        if progress.count("complete") == len(recipes):
            store.create(recipes[0]).remove()

    outcome = carry_out(recipes, store, look=remove)
    (trouble,) = outcome.troubles
    assert str(trouble).startswith(f"{recipes[0].run_name()} was removed or taken over by another")


def test_one_recipe_is_no_list_and_a_store_may_be_named(tmp_path: Path, tiny: Experiment) -> None:
    with pytest.raises(ConfigError, match="recipes is one Experiment; expected a list"):
        unwrap(carry_out)(tiny, tmp_path)
    assert carry_out([tiny], str(tmp_path)).complete
