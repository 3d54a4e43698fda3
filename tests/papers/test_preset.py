"""Presets: every value with where it comes from."""

from hopscope.configs import Experiment, Retrieval
from hopscope.papers.preset import OURS, Preset


def test_every_field_has_a_source_and_ours_is_the_rest() -> None:
    experiment = Experiment(task=Retrieval(hops=2))
    made = Preset("mine", "two hops", experiment, {"task.hops": "§6"})
    fields = {name: (value, source) for name, value, source in made.fields()}
    assert fields["task.hops"] == (2, "§6")
    assert fields["model.layers"] == (experiment.model.layers, OURS)
    assert set(fields) == set(experiment.named())
