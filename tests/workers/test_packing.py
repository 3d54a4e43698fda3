"""What is alike is packed, what was begun goes on as it began, and nothing else is touched."""

import pytest

from hopscope.configs import Experiment, MarkovExperiment, Recipe
from hopscope.errors import ConfigError
from hopscope.runs import Stop, train
from hopscope.store import Store
from hopscope.workers import Here, carry_out
from hopscope.workers.packing import member, packed


@pytest.fixture
def recipes(tiny: Experiment) -> list[Experiment]:
    return [member(tiny, seed) for seed in range(5)]


def seeds(jobs: list[tuple[Recipe, ...]]) -> list[list[int]]:
    return [[recipe.seeds[0] for recipe in job] for job in jobs]


def test_jobs_are_of_nearly_one_size(recipes: list[Experiment], store: Store) -> None:
    def cut(most: int) -> list[list[int]]:
        return seeds(packed(recipes, recipes, store, lambda *_: most))

    assert cut(5) == [[0, 1, 2, 3, 4]]
    assert cut(4) == [[0, 1], [2, 3, 4]]
    assert cut(2) == [[0], [1, 2], [3, 4]]
    assert cut(1) == [[0], [1], [2], [3], [4]]


def test_only_what_differs_in_seeds_alone_is_packed(tiny: Experiment, store: Store) -> None:
    fields = tiny.model_dump()
    other = Experiment.model_validate({**fields, "model": {**fields["model"], "layers": 1}})
    several = Experiment.model_validate({**fields, "seeds": (7, 8)})
    mixed = [member(tiny, 1), MarkovExperiment(), other, several, member(tiny, 2)]
    assert member(tiny, 1).seedless() == several.seedless() != other.seedless()
    jobs = packed(mixed, mixed, store, lambda *_: 9)
    assert jobs == [(mixed[0], mixed[4]), (mixed[1],), (mixed[2],), (mixed[3],)]


def test_what_was_begun_alone_goes_on_alone(recipes: list[Experiment], store: Store) -> None:
    stop = Stop()
    stop.ask("a friend")
    with pytest.raises(KeyboardInterrupt):
        train(recipes[1], store, "cpu", stop=stop)
    store.create(recipes[2])  # of which nothing was trained
    jobs = packed(recipes, recipes, store, lambda *_: 9)
    assert seeds(jobs) == [[0, 2, 3, 4], [1]]


def test_a_number_that_makes_no_sense_is_refused(recipes: list[Experiment], store: Store) -> None:
    with pytest.raises(ConfigError, match="pack is 0; expected auto, or a number of models from"):
        carry_out(recipes, store, workers=Here(pack=0))
