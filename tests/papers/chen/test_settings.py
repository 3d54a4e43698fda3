"""Settings of Chen et al.: each a training of its own, and the smoke ones over in a second."""

from hopscope.configs import MarkovExperiment
from hopscope.papers.chen.settings import SETTINGS, SMOKE_SETTINGS, settings, shortened


def test_every_setting_is_another_experiment() -> None:
    every = settings(3, "full")
    assert list(every) == list(SETTINGS)
    assert len({each.digest() for each in every.values()}) == len(every)
    assert every["the paper's"] == MarkovExperiment(seeds=(0, 1, 2))


def test_what_is_not_named_is_the_papers() -> None:
    changed, base = settings(1, "full")["length 400"], MarkovExperiment()
    assert changed.process.length == 400
    assert (changed.model, changed.descent) == (base.model, base.descent)


def test_short_ones_keep_their_stages() -> None:
    short = shortened(settings(1, "full")["C and W together"])
    assert [letters for letters, _ in short.descent.plan()] == ["CW", "a"]
    assert short.steps < 2_000
    assert set(settings(1, "smoke")) == set(SMOKE_SETTINGS)
