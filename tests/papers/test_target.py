"""Which runs a protocol means, and what every target says of itself."""

import pytest

from hopscope.configs import Experiment, Recipe
from hopscope.papers.registry import PAPERS
from hopscope.papers.table import PROTOCOLS, Protocol
from hopscope.papers.target import Target

RUNS: dict[Protocol, tuple[Recipe, ...]] = {
    name: (Experiment(seeds=(seed,)),) for seed, name in enumerate(PROTOCOLS)
}


@pytest.mark.parametrize(
    ("has", "wanted", "taken"),
    [
        ("smoke reduced full", "smoke", "smoke"),
        ("smoke reduced full", "reduced", "reduced"),
        ("smoke reduced full", "full", "full"),
        ("reduced full", "smoke", "reduced"),
        ("smoke full", "reduced", "full"),
        ("full", "smoke", "full"),
        ("smoke reduced", "full", "reduced"),
        ("smoke", "reduced", "smoke"),
        ("smoke", "full", "smoke"),
    ],
)
def test_a_protocol_without_runs_takes_the_nearest_better_or_else_lesser(
    has: str, wanted: Protocol, taken: Protocol
) -> None:
    recipes = {name: lambda name=name: RUNS[name] for name in PROTOCOLS if name in has.split()}
    target = Target("musat/x", "x", (), recipes=recipes)
    assert target.runs(wanted) == (taken, RUNS[taken])


def test_what_is_computed_needs_no_runs() -> None:
    target = Target("musat/x", "x", ())
    taken = {protocol: target.runs(protocol) for protocol in PROTOCOLS}
    assert taken == {"smoke": ("smoke", ()), "reduced": ("full", ()), "full": ("full", ())}


@pytest.mark.parametrize("name", PAPERS.targets)
def test_every_target_says_what_it_is(name: str) -> None:
    target = PAPERS.targets[name]
    assert target.name == name
    assert all((target.shows, target.method, target.rows))
    lesser = set(target.recipes) - {"full"}
    wordy = {protocol for protocol, remark in target.remarks.items() if remark}
    assert wordy <= lesser or not target.recipes
    for protocol in target.recipes:
        taken, recipes = target.runs(protocol)
        assert taken == protocol
        assert len({recipe.digest() for recipe in recipes}) == len(recipes)
        assert recipes or protocol == "smoke"
