"""Sweeps: what is complete is taken, what was begun goes on, and who asks to stop is obeyed."""

import signal
import threading
from inspect import unwrap
from pathlib import Path

import numpy as np
import pytest

from hopscope.configs import (
    Experiment,
    LlmBench,
    MarkovExperiment,
    Model,
    Prompts,
    Recipe,
    Retrieval,
    Training,
)
from hopscope.errors import ConfigError, Diverged, Interrupted, ModelUnavailable, RunBusy
from hopscope.runs import Stop
from hopscope.store import RunFolder, Store, lease
from hopscope.workers import Here, Outcome, carry_out

STEPS = 6
TRAINING = Training(
    steps=STEPS, batch=4, examples=16, checkpoint_every=4, validation_examples=4,
    precision="float32",
)  # fmt: skip
RECIPES: tuple[Recipe, ...] = tuple(
    Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=8),
        training=TRAINING,
        seeds=(seed,),
    )
    for seed in (2, 0, 1)
)
NAMES = [recipe.run_name() for recipe in RECIPES]
DESCENT = {"chains": 60, "validation_chains": 20, "records": 4, "epochs": (4, 4, 4)}
MARKOV = MarkovExperiment.model_validate({"descent": DESCENT})


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Diary:
    """A watcher that writes down what is trained, and at one step lets time pass or a signal come.

    `at` counts the steps of all runs together.
    """

    def __init__(
        self, at: int = 0, clock: Clock | None = None, number: signal.Signals | None = None
    ) -> None:
        self.at, self.clock, self.number = at, clock, number
        self.started: list[tuple[str, int]] = []
        self.trained = threading.Event()
        self.steps = 0

    def start(self, folder: RunFolder, step: int) -> None:
        self.started.append((folder.name, step))

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:
        self.steps += 1
        if self.steps == self.at:
            if self.clock is not None:
                self.clock.now += 1000
            if self.number is not None:
                signal.raise_signal(self.number)

    def stop(self) -> None:
        self.trained.set()


def seen_by(diary: Diary) -> Here:
    return Here(watcher=diary)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What becomes of all recipes, and the n-gram experiment, if nobody interferes."""
    return carry_out((*RECIPES, MARKOV), Store(tmp_path_factory.mktemp("whole")))


def content(outcome: Outcome) -> dict[str, dict[str, bytes]]:
    """All files but the manifests, which say how long the trainings took."""
    return {
        folder.name: {name: folder.read(name) for name in folder.manifest.files}
        for folder in outcome.folders
    }


def test_recipes_are_carried_out_in_their_order(store: Store) -> None:
    diary = Diary()
    outcome = carry_out(RECIPES, store, workers=seen_by(diary))
    assert outcome.complete
    assert [folder.name for folder in outcome.folders] == NAMES
    assert diary.started == [(name, 0) for name in NAMES]
    assert all(folder.manifest.complete for folder in outcome.folders)


def test_what_is_complete_is_taken_as_it_is(store: Store) -> None:
    (first,) = carry_out(RECIPES[1:2], store).folders
    diary = Diary()
    outcome = carry_out(RECIPES[:2], store, workers=seen_by(diary))
    assert diary.started == [(NAMES[0], 0)]
    assert outcome.folders[1].manifest == first.manifest
    diary = Diary()
    again = carry_out(RECIPES[:2], store, Stop(0.0), workers=seen_by(diary))
    assert again.complete
    assert diary.started == []


def test_nothing_to_do_is_done(store: Store) -> None:
    assert carry_out((), store, stop=Stop(0.0)).complete


def test_without_time_nothing_is_begun(store: Store) -> None:
    diary = Diary()
    outcome = carry_out(RECIPES, store, Stop(0.0), workers=seen_by(diary))
    assert (outcome.folders, outcome.wanted, outcome.complete) == ((), 3, False)
    assert diary.started == []
    assert store.names() == []


@pytest.mark.parametrize(("at", "complete", "step"), [(1, 0, 1), (6, 1, 0), (10, 1, 4), (17, 2, 5)])
def test_what_was_stopped_ends_as_if_it_had_not_been(
    whole: Outcome, store: Store, clock: Clock, at: int, complete: int, step: int
) -> None:
    short = carry_out(RECIPES, store, Stop(60.0, clock), workers=seen_by(Diary(at, clock)))
    assert not short.complete
    assert [folder.name for folder in short.folders] == NAMES[:complete]
    assert len(store.names()) == complete + (step > 0)
    diary = Diary()
    rest = carry_out(RECIPES, store, Stop(60.0, clock), workers=seen_by(diary))
    assert rest.complete
    assert diary.started[0] == (NAMES[complete], step)
    assert content(rest) == {name: content(whole)[name] for name in NAMES}


def test_every_call_comes_further(store: Store, clock: Clock) -> None:
    calls = 1
    while not carry_out(
        RECIPES[:2], store, Stop(60.0, clock), workers=seen_by(Diary(5, clock))
    ).complete:
        calls += 1
        assert calls < 10
    assert calls == -(-2 * STEPS // 5)


def test_what_is_complete_counts_though_the_time_is_over(store: Store, clock: Clock) -> None:
    (last,) = carry_out(RECIPES[2:], store).folders
    stopped = carry_out(RECIPES, store, Stop(60.0, clock), workers=seen_by(Diary(3, clock)))
    assert [folder.name for folder in stopped.folders] == [last.name]
    unbegun = carry_out(RECIPES, store, stop=Stop(0.0))
    assert [folder.name for folder in unbegun.folders] == [last.name]


@pytest.mark.parametrize(
    ("number", "seconds"), [(signal.SIGINT, None), (signal.SIGINT, 60.0), (signal.SIGTERM, 60.0)]
)
def test_a_signal_ends_the_sweep(
    store: Store, clock: Clock, number: signal.Signals, seconds: float | None
) -> None:
    diary = Diary(8, clock, number)  # the time is over as well
    with pytest.raises(Interrupted, match=f"stopped by {number.name} at step 2, ") as caught:
        carry_out(RECIPES, store, Stop(seconds, clock), workers=seen_by(diary))
    assert caught.value.exit_code == {signal.SIGINT: 130, signal.SIGTERM: 75}[number]
    assert [name for name, _ in diary.started] == NAMES[:2]


def test_a_signal_at_the_last_step_ends_the_sweep_too(store: Store) -> None:
    diary = Diary(STEPS, number=signal.SIGINT)
    # Where tests run in the background, a shell has had SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            carry_out(RECIPES, store, workers=seen_by(diary))
    finally:
        signal.signal(signal.SIGINT, before)
    assert [name for name, _ in diary.started] == NAMES[:1]
    assert store.has_complete(RECIPES[0])


def test_the_n_gram_experiment_is_stopped_and_resumed_as_well(
    whole: Outcome, store: Store, clock: Clock
) -> None:
    assert whole.folders[-1].recipe == MARKOV
    assert (
        carry_out((MARKOV,), store, Stop(60.0, clock), workers=seen_by(Diary(3, clock))).folders
        == ()
    )
    assert 0 < store.create(MARKOV).manifest.step < MARKOV.steps
    rest = carry_out((MARKOV,), store)
    assert content(rest) == {rest.folders[0].name: content(whole)[MARKOV.run_name()]}


def test_what_another_process_trains_is_left_to_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SECONDS", 0.5)
    with store.create(RECIPES[0]).locked():
        outcome = carry_out(RECIPES, store)
        assert [folder.name for folder in outcome.folders] == NAMES[1:]
        (trouble,) = outcome.troubles
        assert isinstance(trouble, RunBusy)
        assert NAMES[0] in str(trouble)
        assert not outcome.complete
    assert carry_out(RECIPES, store).complete


def test_what_others_let_go_is_carried_out_after_all(store: Store) -> None:
    """As where a driver was killed, whose workers write their checkpoints meanwhile."""
    folder, begun = store.create(RECIPES[0]), threading.Event()

    def hold() -> None:
        with folder.locked():
            begun.set()
            diary.trained.wait(60)

    diary = Diary()
    holder = threading.Thread(target=hold)
    holder.start()
    begun.wait(60)
    outcome = carry_out(RECIPES, store, workers=seen_by(diary))
    holder.join()
    assert outcome.complete
    assert outcome.troubles == ()
    assert [name for name, _ in diary.started] == [*NAMES[1:], NAMES[0]]


def test_who_waits_for_others_stops_when_asked(store: Store) -> None:
    stop = Stop()
    with store.create(RECIPES[0]).locked():
        timer = threading.Timer(0.5, lambda: stop.ask("a friend"))
        timer.start()
        with pytest.raises(Interrupted, match="stopped by a friend: 0 of 1 runs are complete"):
            carry_out(RECIPES[:1], store, stop)
        timer.join()


def test_a_training_that_diverges_does_not_end_the_sweep(store: Store) -> None:
    wild = Experiment(
        task=Retrieval(hops=1, chains=2),
        model=Model(layers=1, heads=1, d_model=8, norm="none"),
        training=TRAINING.model_copy(update={"lr": 1e9, "steps": 50}),
    )
    outcome = carry_out((wild, *RECIPES), store)
    assert [type(trouble) for trouble in outcome.troubles] == [Diverged]
    assert [folder.name for folder in outcome.folders] == NAMES


def test_an_unknown_language_model_is_one_line(store: Store) -> None:
    bench = LlmBench(model="nobody-7b", prompts=(Prompts(formulation="f1"),))
    recipes = (RECIPES[0], bench)
    (trouble,) = carry_out(recipes, store).troubles
    assert isinstance(trouble, ModelUnavailable)
    assert str(trouble).startswith("no model 'nobody-7b': expected one of ")
    assert str(trouble).isprintable()
    assert store.has_complete(RECIPES[0])
    assert not store.has_complete(bench)
    short = carry_out(recipes, store, stop=Stop(0.0))
    assert [folder.recipe for folder in short.folders] == [RECIPES[0]]


def test_one_recipe_is_no_list_and_a_store_may_be_named(tmp_path: Path, tiny: Experiment) -> None:
    with pytest.raises(ConfigError, match="recipes is one Experiment; expected a list"):
        unwrap(carry_out)(tiny, tmp_path)
    assert carry_out([tiny], str(tmp_path)).complete
