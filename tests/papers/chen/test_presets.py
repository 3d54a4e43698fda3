"""The presets of Chen et al., and where their values come from."""

import pytest

from hopscope.configs import MarkovExperiment
from hopscope.papers import preset
from hopscope.papers.chen.presets import presets
from hopscope.papers.chen.settings import SETTINGS


def test_they_are_the_settings_that_the_claims_are_about() -> None:
    assert preset("chen/paper").recipe == MarkovExperiment()
    program = MarkovExperiment.model_validate(SETTINGS["the authors' program"])
    assert preset("chen/program").recipe == program


@pytest.mark.parametrize("name", presets())
def test_every_field_has_its_source(name: str) -> None:
    found = preset(name)
    paths = {path for path, _, _ in found.fields()}
    assert set(found.sources) == paths - {"experiment", "seeds"}
