"""What presets and runs behind the figures train: the paper's numbers, and how they differ."""

import re
from collections.abc import Sequence

import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError
from hopscope.papers import preset as found
from hopscope.papers.musat.readings import (
    BEST,
    LONG,
    READINGS,
    WARMUP,
    PaperReading,
    chosen,
    reading_of,
)
from hopscope.papers.musat.recipes import (
    BATCHES,
    by_batch,
    by_place,
    d_by_place,
    over_seeds,
    per_pair,
    preset,
    small,
    under,
)
from hopscope.papers.musat.targets import TARGETS
from hopscope.papers.table import Protocol

NAMED = {target.name: target for target in TARGETS}


def trainings(name: str, protocol: Protocol) -> list[Experiment]:
    return [each for each in NAMED[name].runs(protocol)[1] if isinstance(each, Experiment)]


def alike(recipes: Sequence[Experiment], *but: str) -> bool:
    """Do they differ in nothing but these?"""
    named = [recipe.named() for recipe in recipes]
    return all(
        name.startswith(but) or each[name] == named[0].get(name) for each in named for name in each
    )


LIKE_ALL = {"training.lr": 1e-3, "training.weight_decay": 0.1}
ABC = {
    "model.layers": 12, "model.heads": 1, "model.d_model": 128, "task.hops": 3,
    "training.steps": 24_000, "training.batch": 128, "training.examples": 2**18, **LIKE_ALL,
}  # fmt: skip
D = {"model.layers": 24, "model.d_model": 512, "model.mlp": False, "task.hops": 4}
FIG4 = {
    "model.layers": 6, "model.heads": 8, "training.steps": 10_000, "training.batch": 512,
    "training.examples": 2**20, "seeds": [*range(8)], **LIKE_ALL,
}  # fmt: skip
PAPER = {
    **{f"transformer-{letter}": {**ABC, "seeds": [n]} for n, letter in enumerate("abc")},
    "transformer-d": {**D, "training.lr": 1e-3},
    "transformer-d-fan-in": {**D, "model.init": "fan-in"},
    "fig4-ic-L6": {**FIG4, "task.hops": 5, "task.curriculum": True},
    "fig4-nonic-L6": {**FIG4, "task.hops": 3, "task.curriculum": False},
}


def test_presets_train_what_the_paper_says() -> None:
    for name, values in PAPER.items():
        fields = {field: value for field, value, _ in found(f"musat/{name}").fields()}
        assert {field: fields[field] for field in values} == values, name
    trained = preset("transformer-d")
    assert trained.model.head_width == 16
    assert trained.training.checkpoint_steps()[:3] == (0, 80, 160)
    for name, examples in (("epochs", None), ("large-batch", 2**18)):
        training = preset(f"transformer-d-{name}").training
        assert training.steps * training.batch / training.examples == 800
        assert examples in (None, training.examples)


def test_figure_4_has_eight_depths_of_eight_models_and_is_shorter_when_reduced() -> None:
    for kind in ("ic", "nonic"):
        full, short = (trainings(f"musat/fig4-{kind}", each) for each in ("full", "reduced"))
        assert [(len(each.seeds), each.model.layers) for each in full] == [
            (8, layers) for layers in range(1, 9)
        ]
        assert all(each.seeds == (0,) for each in short)
        assert all(a.steps > b.steps for a, b in zip(full, short, strict=True))
    recipes = over_seeds()
    assert len({recipe.run_name() for recipe in recipes}) == len(recipes) == 24
    fleets = {preset(f"fig4-ic-L{layers}").training for layers in range(1, 9)}
    assert {recipe.training for recipe in recipes} == fleets
    assert [recipe.model.layers for recipe in recipes[:8]] == list(range(1, 9))
    assert {recipe.seeds for recipe in recipes} <= {(seed,) for seed in range(8)}


def test_figure_7_reads_the_paper_in_several_ways() -> None:
    full = trainings("musat/fig7", "full")
    readings = {(each.training.examples, each.model.init, each.seeds) for each in full}
    assert len(readings) == len(full) == 5
    assert {examples for examples, _, _ in readings} == {2_048, 262_144}
    assert len(trainings("musat/fig7", "reduced")) == 3


def test_runs_that_are_compared_differ_in_nothing_else() -> None:
    assert small(4).seeds == (0, 1, 2, 3)  # one fleet
    assert alike([small(4), small(10)], "seeds")
    batches, places, pairs = by_batch(), by_place(), per_pair(4_000)
    assert alike(batches, "training.batch", "seeds")
    assert [recipe.training.batch for recipe in batches] == [b for b in BATCHES for _ in range(3)]
    assert alike(places, "task.position", "task.base", "task.order")
    codes = [(recipe.task.position, recipe.task.base, recipe.task.order) for recipe in places]
    assert codes == [
        ("pair", 10, "backward"), ("pair", 10, "shuffled"), ("pair", 10_000, "backward"),
        ("token", 10_000, "backward"), ("token", 10_000, "shuffled"),
    ]  # fmt: skip
    known = preset("transformer-d-fan-in")
    of_d = d_by_place()
    assert {(recipe.model, recipe.steps) for recipe in of_d} == {(known.model, 4_000)}
    assert [(recipe.task.position, recipe.task.order, recipe.seeds) for recipe in of_d] == [
        ("token", "backward", (0,)), ("token", "backward", (2,)), ("token", "shuffled", (0,)),
        ("pair", "backward", (0,)),
    ]  # fmt: skip
    assert of_d[3] == pairs[0]
    assert alike([known, *per_pair(known.steps)], "task.position", "seeds")
    assert [(recipe.seeds, recipe.task.position) for recipe in pairs] == [
        ((seed,), "pair") for seed in range(3)
    ]


def test_a_reading_is_known_again_and_trained_with_the_seeds_of_a_b_and_c() -> None:
    for reading in READINGS:
        assert reading_of(reading.name) == reading
        for steps in (3_000, LONG):
            experiment = reading.experiment(2, steps)
            assert PaperReading.of(experiment) == reading
            assert (experiment.seeds, experiment.steps) == ((2,), steps)
    assert len({reading.name for reading in READINGS}) == len(READINGS)
    single = {reading_of(word) for word in ("fan-in", "cosine", "pair", "torch", "base-10")}
    assert single | set(BEST) <= set(READINGS)
    paper, ours = preset("transformer-b"), reading_of("").experiment(1, LONG)
    assert alike([paper, ours], "training.checkpoint")  # what is left out is as in the preset
    recipes = under(READINGS[:2], LONG)
    assert [(each.seeds, each.steps) for each in recipes] == [
        ((seed,), LONG) for seed in (0, 0, 1, 1, 2, 2)
    ]


def test_words_of_a_reading_make_sense() -> None:
    for words, warmup, schedule in (
        ("warm-up-cosine", WARMUP, "cosine"),
        ("warm-up", WARMUP, "constant"),
        ("cosine", 0, "cosine"),
    ):
        training = reading_of(words).experiment(0).training
        assert (training.warmup, training.schedule) == (warmup, schedule), words
    assert chosen(["fan-in", "pair", "fan-in"]) == {"init": "fan-in", "position": "pair"}
    for words, told in {
        "gpt2 fan-in": "gpt2 and fan-in are both initial weights",
        "base-10 base-10000": "both bases of the code",
        "fanin": "no reading has 'fanin': did you mean fan-in",
        "zzz": "no reading has 'zzz': the words are gpt2, fan-in, torch, ",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(told)):
            reading_of(words)
    with pytest.raises(ConfigError, match="warms up over 200 steps, and the training has 200"):
        reading_of("warm-up").experiment(0, WARMUP)
