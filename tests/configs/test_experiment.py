"""Experiments over facts: what their names, shapes and losses are called."""

from hypothesis import given
from hypothesis import strategies as st

from hopscope.configs import (
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    Model,
    Retrieval,
)

tasks = st.one_of(
    st.builds(Retrieval, hops=st.integers(1, 9), chains=st.integers(1, 6)),
    st.builds(Induction, dim=st.sampled_from([2, 4, 8])),
    st.builds(ConditionalRetrieval, decoys=st.integers(0, 3)),
    st.builds(KHop, hops=st.integers(1, 4), alphabet=st.integers(2, 30)),
)


@given(tasks, st.integers(0, 2**31 - 1))
def test_json_round_trip_keeps_identity(task: object, seed: int) -> None:
    experiment = Experiment(task=task, seeds=(seed,))
    again = Experiment.from_json(experiment.canonical_json())
    assert again == experiment
    assert again.run_name() == experiment.run_name()


def test_a_name_says_task_hops_layers_and_heads() -> None:
    model = Model(layers=3, heads=2)
    assert Experiment(task=Retrieval(hops=5), model=model).title() == "retrieval-d5-l3h2"
    assert Experiment(task=ConditionalRetrieval(), model=model).title() == "conditional-l3h2"


def test_losses_are_named_for_the_hops_that_are_asked() -> None:
    every = Experiment(task=Retrieval(hops=3))
    assert every.loss_names(3) == ["hop 1", "hop 2", "hop 3"]
    assert Experiment(task=Retrieval(hops=3, curriculum=False)).loss_names(1) == ["hop 3"]
