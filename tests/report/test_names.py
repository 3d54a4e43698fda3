"""Runs are called by what people know of them."""

import hopscope
from hopscope.configs import Experiment, MarkovExperiment, Model
from hopscope.facts import Role
from hopscope.papers import preset
from hopscope.report.names import described, model_title, run_title
from hopscope.report.symbols import roles_told, seeds_told, short_role
from hopscope.store import Store


def test_a_run_is_called_by_its_tags_or_its_preset_and_never_by_its_hash(store: Store) -> None:
    own = store.create(preset("demo").recipe)
    shape = "retrieval, 2 hops, 3 layers × 4 heads, seed 0"
    assert run_title(own) == f"demo: {shape}"
    store.tag(own.name, "baseline", "a")
    assert run_title(own) == f"a, baseline: {shape}"
    other = store.create(Experiment(model=Model(layers=1, heads=1), seeds=(3, 4)))
    assert run_title(other) == described(other.recipe)
    assert described(other.recipe).endswith("1 layer × 1 head, 2 seeds")


def test_other_kinds_have_the_title_of_their_recipe() -> None:
    recipe = MarkovExperiment()
    assert described(recipe) == recipe.title()


def test_a_model_has_its_step_unless_it_is_the_last() -> None:
    assert model_title(hopscope.load("gallery/demo")).startswith("gallery/demo: retrieval")
    assert model_title(hopscope.load("gallery/demo", step=500)).endswith(", step 500")


def test_decoys_have_names_of_their_own() -> None:
    decoys = [Role("decoy key", 1), Role("decoy value", 1)]
    assert [short_role(role) for role in decoys] == ["dk1", "dv1"]
    assert "dk, dv decoy key, decoy value" in roles_told(decoys)
    assert roles_told([Role("answer")]) == ""
    assert (seeds_told((7,)), seeds_told((7, 8))) == ("seed 7", "2 seeds")
