"""The runs behind the figures, one by one and as fleets."""

from hopscope.papers.musat.readings import LONG, READINGS
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


def test_small_models_are_one_fleet() -> None:
    assert small(4).seeds == (0, 1, 2, 3)
    assert small(4).training == small(10).training


def test_models_of_figure_4_are_those_of_its_fleets() -> None:
    recipes = over_seeds()
    assert len({recipe.run_name() for recipe in recipes}) == len(recipes) == 24
    fleets = {preset(f"fig4-ic-L{layers}").training for layers in range(1, 9)}
    assert {recipe.training for recipe in recipes} == fleets
    assert [recipe.model.layers for recipe in recipes[:8]] == list(range(1, 9))
    assert {recipe.seeds for recipe in recipes} <= {(seed,) for seed in range(8)}


def test_a_reading_is_trained_with_the_seeds_of_a_b_and_c() -> None:
    recipes = under(READINGS[:2], LONG)
    assert [recipe.seeds for recipe in recipes] == [(0,), (0,), (1,), (1,), (2,), (2,)]
    assert {recipe.steps for recipe in recipes} == {LONG}


def test_batches_differ_in_nothing_else() -> None:
    recipes = by_batch()
    assert [recipe.training.batch for recipe in recipes] == [b for b in BATCHES for _ in range(3)]
    alike = {
        (recipe.task, recipe.model, recipe.training.model_copy(update={"batch": 1}))
        for recipe in recipes
    }
    assert len(alike) == 1


def test_places_differ_in_the_task_alone() -> None:
    kinds = by_place()
    assert len({recipe.run_name() for recipe in kinds}) == len(kinds) == 5
    assert len({(recipe.model, recipe.training, recipe.seeds) for recipe in kinds}) == 1
    codes = [(recipe.task.position, recipe.task.base, recipe.task.order) for recipe in kinds]
    assert codes == [
        ("pair", 10, "backward"), ("pair", 10, "shuffled"), ("pair", 10_000, "backward"),
        ("token", 10_000, "backward"), ("token", 10_000, "shuffled"),
    ]  # fmt: skip
    known = preset("transformer-d-fan-in")
    kinds = d_by_place()
    assert {(recipe.model, recipe.steps) for recipe in kinds} == {(known.model, 4_000)}
    assert [recipe.seeds for recipe in kinds] == [(0,), (2,), (0,), (0,)]
    codes = [(recipe.task.position, recipe.task.order) for recipe in kinds]
    assert codes == [
        ("token", "backward"), ("token", "backward"), ("token", "shuffled"), ("pair", "backward"),
    ]  # fmt: skip
    assert kinds[3] == per_pair(4_000)[0]


def test_a_code_per_pair_is_all_that_differs_over_three_seeds() -> None:
    known = preset("transformer-d-fan-in")
    kinds = per_pair(known.steps)
    assert [recipe.seeds for recipe in kinds] == [(0,), (1,), (2,)]
    assert {recipe.task.position for recipe in kinds} == {"pair"}
    task = kinds[1].task.model_copy(update={"position": "token"})
    assert kinds[1].model_copy(update={"task": task}) == known.model_copy(update={"seeds": (1,)})
