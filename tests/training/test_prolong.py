"""A prolonged run is what it would be if trained from its first step; anything else is refused."""

from typing import Any

import pytest
from stopping import changed, content

from hopscope.configs import Experiment, NgramExperiment
from hopscope.errors import RunMismatch
from hopscope.store import Store
from hopscope.store.checkpoints import OPTIMISER_FILES
from hopscope.training import prolong, train


@pytest.fixture(autouse=True)
def few_final_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last ten steps are all validated, not the last hundred."""
    monkeypatch.setattr("hopscope.configs.training.FINAL_STEPS", 10)


@pytest.mark.parametrize(
    ("seeds", "differently"),
    [
        ((3, 1), {"checkpoint_every": 10, "validate_every": 4}),
        ((0,), {"steps": 25, "validate_every": 2}),
    ],
)
def test_a_prolonged_run_is_one_trained_in_one_go(
    store: Store, tiny: Experiment, seeds: tuple[int, ...], differently: dict[str, int]
) -> None:
    short = changed(tiny.replace(seeds=seeds), validate_every=1)
    longer = changed(short, **{"steps": 20, **differently})
    before = content(train(short, store).folder)
    folder = prolong(store.find(short.run_name()), longer, store)
    assert folder.manifest.step == short.training.steps
    assert not folder.manifest.complete
    run = train(longer, store)
    assert content(run.folder) == content(train(longer, Store(store.root / "elsewhere")).folder)
    assert run.folder.verify() == []
    assert content(train(short, store).folder) == before


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"lr": 0.5}, r"is another training: training\.lr = .*, expected 0\.5"),
    ({"schedule": "cosine"}, {}, r"its training\.schedule is cosine"),
    ({}, {"steps": 12}, r"is at step 12; expected 1 to 11, fewer than the new steps"),
    ({}, {"checkpoint_every": 3}, "no checkpoint of step 3, .* own training.checkpoint"),
    # Of a training of 30 steps, the first 20 are not among the last ten.
    ({"steps": 30, "validate_every": 15, "checkpoint_every": 25},
     {"steps": 50, "validate_every": 7}, "no validation of step 7, .*training.validate"),
]  # fmt: skip


def test_what_is_no_beginning_is_refused(store: Store, tiny: Experiment) -> None:
    for own, changes, problem in REFUSED:
        short = changed(tiny, **own)
        folder = train(short, store).folder
        known = store.names()
        with pytest.raises(RunMismatch, match=problem):
            prolong(folder, changed(short, **{"steps": 20, **changes}), store)
        assert store.names() == known


def test_a_run_of_another_kind_is_refused(store: Store, tiny: Experiment) -> None:
    with pytest.raises(RunMismatch, match="is a run of kind ngram, expected one of kind facts"):
        prolong(store.create(NgramExperiment()), tiny, store)


def test_weights_without_the_state_of_the_optimiser_are_refused(
    store: Store, tiny: Experiment
) -> None:
    """Models of the gallery have only weights."""
    folder = train(tiny, store).folder
    with folder.locked():
        folder.commit({}, drop=tuple(folder.files(OPTIMISER_FILES)))
    with pytest.raises(RunMismatch, match="has weights, but no state of its optimiser"):
        prolong(folder, changed(tiny, steps=20), store)


def test_a_run_that_has_begun_is_not_overwritten(store: Store, tiny: Experiment) -> None:
    folder, longer = train(tiny, store).folder, changed(tiny, steps=20)
    train(longer, store)
    with pytest.raises(RunMismatch, match=r"has begun already \(step 20\): `hopscope resume"):
        prolong(folder, longer, store)
    assert store.find(longer.run_name()).manifest.complete
