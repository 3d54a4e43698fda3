"""Readings: their words, their experiments, and what makes no sense."""

import pytest

from hopscope.errors import ConfigError
from hopscope.papers.musat.presets import presets
from hopscope.papers.musat.readings import (
    BEST,
    LONG,
    READINGS,
    WARMUP,
    PaperReading,
    chosen,
    reading_of,
)


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)
def test_a_reading_is_known_again_by_its_name_and_by_its_experiment(reading: PaperReading) -> None:
    assert reading_of(reading.name) == reading
    for steps in (3_000, LONG):
        experiment = reading.experiment(2, steps)
        assert PaperReading.of(experiment) == reading
        assert (experiment.seeds, experiment.steps) == ((2,), steps)


def test_readings_differ_and_the_best_are_among_them() -> None:
    assert len({reading.name for reading in READINGS}) == len(READINGS)
    assert set(BEST) <= set(READINGS)
    single = [reading_of(word) for word in ("fan-in", "cosine", "pair", "torch", "base-10")]
    assert set(single) <= set(READINGS)


def test_what_is_left_out_is_as_in_the_preset() -> None:
    paper = presets()["musat/transformer-b"].recipe
    ours = reading_of("").experiment(1, LONG)
    assert (ours.task, ours.model, ours.seeds) == (paper.task, paper.model, paper.seeds)
    kept = {"checkpoint_every": 500}
    assert ours.training.model_copy(update=kept) == paper.training


def test_warming_up_comes_before_the_course() -> None:
    both = reading_of("warm-up-cosine").experiment(0).training
    assert (both.warmup, both.schedule) == (WARMUP, "cosine")
    only = reading_of("warm-up").experiment(0).training
    assert (only.warmup, only.schedule) == (WARMUP, "constant")
    assert reading_of("cosine").experiment(0).training.warmup == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("gpt2 fan-in", "gpt2 and fan-in are both initial weights: a reading has one of them"),
        ("base-10 base-10000", "both bases of the code"),
        ("fanin", "no reading has 'fanin': did you mean fan-in"),
        ("zzz", "no reading has 'zzz': the words are gpt2, fan-in, torch, "),
    ],
)
def test_words_that_make_no_reading_are_refused(words: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        reading_of(words)


def test_a_word_may_be_said_twice() -> None:
    assert chosen(["fan-in", "pair", "fan-in"]) == {"init": "fan-in", "position": "pair"}


def test_a_warm_up_that_never_ends_is_refused() -> None:
    with pytest.raises(ConfigError, match="warms up over 200 steps, and the training has 200"):
        reading_of("warm-up").experiment(0, WARMUP)
    assert reading_of("cosine").experiment(0, WARMUP).steps == WARMUP
