"""A config has one spelling, and a recipe one name: the hash of what it sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sums import Sums

from hopscope.configs import (
    ConditionalRetrieval,
    Config,
    Experiment,
    Induction,
    KHop,
    LmBench,
    Model,
    NgramExperiment,
    Prompts,
    Retrieval,
    Training,
    read_recipe,
)
from hopscope.configs.config import SHOWN_CHARACTERS, shortened
from hopscope.configs.kinds import KINDS, Kind, fetched, kind_of
from hopscope.configs.recipe import SHAPE

KIND = Kind(Sums, "nowhere:prepare", "hopscope.runs.view:PlainRun")
KINGDOMS = Prompts(formulation="kingdoms")
tasks = st.one_of(
    st.builds(Retrieval, hops=st.integers(1, 9), chains=st.integers(1, 6)),
    st.builds(Induction, dim=st.sampled_from([2, 4, 8])),
    st.builds(ConditionalRetrieval, decoys=st.integers(0, 3)),
    st.builds(KHop, hops=st.integers(1, 4), alphabet=st.integers(2, 30)),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one entry that a kind needs."""
    monkeypatch.setitem(KINDS, "sums", KIND)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (Model(), "{}"),
        (Model(mlp=False, layers=2, heads=4, d_head=16), '{"d_head":16,"layers":2,"mlp":false}'),
        (Model(layers=np.int64(3)), '{"layers":3}'),  # type: ignore[arg-type]
        (Prompts(formulation="f2", chains=4), '{"formulation":"lives-with","hops":5}'),
        (Experiment(), '{"kind":"facts"}'),
        (
            Experiment(task=KHop(hops=3), training=Training(lr=1e-3), seeds=(1, 2)),
            '{"kind":"facts","seeds":[1,2],"task":{"hops":3,"kind":"khop"}}',
        ),
        (
            LmBench(model="m", prompts=(KINGDOMS,)),
            '{"kind":"lm","model":"m","prompts":[{"formulation":"kingdoms"}]}',
        ),
    ],
)
def test_canonical_json_is_sorted_and_has_only_what_is_changed(config: Config, text: str) -> None:
    assert config.canonical_json() == text
    assert type(config).from_json(text) == config


@given(tasks, st.integers(0, 2**31 - 1))
def test_json_round_trip_keeps_identity(task: object, seed: int) -> None:
    experiment = Experiment(task=task, seeds=(seed,))
    again = Experiment.from_json(experiment.canonical_json())
    assert again == experiment
    assert again.run_name() == experiment.run_name()


def test_names_of_runs_stay_what_they_were() -> None:
    """Runs on disk are found by these names: whoever changes a default needs a new value."""
    assert Experiment().run_name() == "retrieval-d3-l4h4-7cbd4ba0e2"
    model = Model(layers=3, heads=2)
    assert Experiment(task=Retrieval(hops=5), model=model).title() == "retrieval-d5-l3h2"
    assert Experiment(task=ConditionalRetrieval(), model=model).title() == "conditional-l3h2"
    ngram = NgramExperiment(descent={"stages": "CW,a", "epochs": (2, 3)})
    assert ngram.title() == "ngram-3-pa12-CW-a"


def test_what_a_recipe_answers_unless_it_says_otherwise() -> None:
    plain = Sums()
    assert plain.run_name() == f"sums-{plain.digest()[:10]}"
    assert (plain.unit, plain.chance) == ("step", None)
    assert plain.loss_names(2) == ["loss", "loss"]
    assert plain.shape() == dict.fromkeys(SHAPE)


def test_fields_of_fields_have_names_with_dots() -> None:
    named = Experiment(seeds=(3,)).named()
    assert named["model.layers"] == Model().layers
    assert named["seeds"] == [3]
    assert "model" not in named


def test_files_of_recipes_name_their_kind_whose_parts_are_fetched_when_used() -> None:
    for recipe in (Sums(), Experiment(), NgramExperiment()):
        assert f'"kind":"{recipe.kind}"' in recipe.written().decode()
        assert read_recipe(recipe.written()) == recipe
        assert read_recipe(recipe.canonical_json()) == recipe
        assert kind_of(recipe) is KINDS[recipe.kind]
    for name, kind in KINDS.items():
        assert callable(fetched(kind.run))
        if name != "sums":
            parts = (kind.prepare, kind.text, kind.rows, kind.figure, kind.page, *kind.series)
            assert all(callable(fetched(part)) for part in parts)
    with pytest.raises(ModuleNotFoundError):
        fetched(KIND.prepare)


def test_long_texts_are_shortened_and_short_ones_are_not() -> None:
    assert shortened("x" * SHOWN_CHARACTERS) == "x" * SHOWN_CHARACTERS
    assert shortened("x" * SHOWN_CHARACTERS + "y") == "x" * SHOWN_CHARACTERS + "…"
