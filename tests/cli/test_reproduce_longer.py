"""`hopscope reproduce` by a better protocol goes on from the runs of a lesser one."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from reproducing import Say, registry

from hopscope.cli.reproduce import go_on_from_shorter
from hopscope.configs import Experiment, Recipe
from hopscope.errors import Interrupted
from hopscope.papers.musat.recipes import over_seeds, short_over_seeds
from hopscope.papers.registry import Registry
from hopscope.papers.target import Target
from hopscope.runs import Stop
from hopscope.store import RunFolder, Store
from hopscope.training import train
from hopscope.training.prolong import goes_on


def longer(recipe: Recipe, **changes: object) -> Experiment:
    assert isinstance(recipe, Experiment)
    training = recipe.training.model_copy(update={"steps": 30, **changes})
    return recipe.model_copy(update={"training": training})


def content(folder: RunFolder) -> Mapping[str, bytes]:
    return {name: folder.read(name) for name in folder.manifest.files}


def begin(experiment: Experiment) -> None:
    """A training that was stopped before its first step."""
    stop = Stop()
    stop.ask("enough")
    with pytest.raises(Interrupted):
        train(experiment, Path("kept"), stop=stop)


def both(target: Target, full: tuple[Recipe, ...]) -> Registry:
    """The target, with a longer protocol beside its own."""
    return registry(replace(target, recipes={**target.recipes, "full": lambda: full}))


@pytest.fixture
def full(recipes: tuple[Recipe, ...]) -> tuple[Experiment, ...]:
    return tuple(map(longer, recipes))


def test_what_a_lesser_protocol_trained_is_not_trained_again(
    say: Say, target: Target, full: tuple[Experiment, ...]
) -> None:
    papers = both(target, full)
    assert say("musat/two", papers=papers)[0] == 0
    shorter = {name: content(Store("kept").find(name)) for name in Store("kept").names()}
    code, out, err = say("musat/two", "--protocol", "full", papers=papers)
    assert (code, err) == (0, "")
    for short, long in zip(target.recipes["reduced"](), full, strict=True):
        name = long.run_name()
        assert f"{name} goes on from {short.run_name()}" in out
        assert f"{name}: step 12 of 30" in out
        alone = train(long, Path("alone")).folder
        assert content(Store("kept").find(name)) == content(alone)
    assert {name: content(Store("kept").find(name)) for name in shorter} == shorter
    assert papers.results(Path("found")).table("musat/two").protocol == "full"
    assert "goes on from" not in say("musat/two", "--protocol", "full", papers=papers)[1]


def test_what_was_begun_goes_on_where_it_is(
    say: Say, target: Target, full: tuple[Experiment, ...]
) -> None:
    papers = both(target, full)
    say("musat/two", papers=papers)
    begin(full[0])
    Store("kept").create(full[1])  # without a state to go on from, it has not begun
    out = say("musat/two", "--protocol", "full", papers=papers)[1]
    assert out.count("goes on from") == 1
    assert f"{full[1].run_name()} goes on from" in out


def test_what_another_process_began_meanwhile_is_left_to_it(
    say: Say, target: Target, full: tuple[Experiment, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    papers, store = both(target, full), Store("kept")
    say("musat/two", papers=papers)
    begin(full[0])
    before = content(store.find(full[0].run_name()))
    monkeypatch.setattr("hopscope.cli.reproduce._has_begun", lambda *_: False)  # a moment ago
    with store.create(full[1]).locked():
        go_on_from_shorter(papers.targets["musat/two"], full, store)
    assert content(store.find(full[0].run_name())) == before
    assert not store.find(full[1].run_name()).manifest.files.keys() - {"config.json"}
    assert say("musat/two", "--protocol", "full", papers=papers)[0] == 0


def test_a_damaged_run_keeps_no_other_from_going_on(
    say: Say, target: Target, full: tuple[Experiment, ...]
) -> None:
    papers, store = both(target, full), Store("kept")
    say("musat/two", papers=papers)
    damaged = store.create(full[0]).path / "config.json"
    damaged.write_bytes(damaged.read_bytes()[:9])
    code, out, err = say("musat/two", "--protocol", "full", papers=papers)
    assert code == 2
    assert f"{full[1].run_name()} goes on from" in out
    assert f"{damaged} is damaged" in err
    assert store.find(full[1].run_name()).manifest.complete


def test_only_a_beginning_is_gone_on_from(tiny: Experiment) -> None:
    assert goes_on(longer(tiny), tiny)
    for changes in ({"steps": 12}, {"lr": 0.5}, {"schedule": "cosine"}, {"checkpoint_every": 3}):
        assert not goes_on(longer(tiny, **changes), tiny), changes
    # Its last 100 steps are validated every 10, the others every 50.
    short = longer(tiny, steps=120, validate_every=50)
    assert goes_on(longer(short, steps=200), short)
    assert not goes_on(longer(short, steps=200, validate_every=7), short)


def test_models_of_figure_4_go_on_from_the_short_ones() -> None:
    known = [each for each in short_over_seeds("ic") if isinstance(each, Experiment)]
    for recipe in over_seeds():
        assert isinstance(recipe, Experiment)
        found = [each for each in known if goes_on(recipe, each)]
        assert len(found) == (0 not in recipe.seeds)
