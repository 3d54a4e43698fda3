"""Which runs a protocol means, and which targets a pattern."""

import pytest

from hopscope.configs import Experiment, Recipe
from hopscope.errors import ConfigError
from hopscope.papers.results import PROTOCOLS, Protocol
from hopscope.papers.target import Target, matching, targets

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
    target = Target("musat/x", "x", recipes=recipes)
    assert target.runs(wanted) == (taken, RUNS[taken])


def test_what_is_computed_needs_no_runs() -> None:
    target = Target("musat/x", "x")
    taken = {protocol: target.runs(protocol) for protocol in PROTOCOLS}
    assert taken == {"smoke": ("smoke", ()), "reduced": ("full", ()), "full": ("full", ())}


def names(pattern: str) -> list[str]:
    return [target.name for target in matching(pattern)]


def test_targets_are_found_by_name_paper_and_beginning() -> None:
    assert names("musat/fig5") == ["musat/fig5"]
    assert names("musat/fig4") == ["musat/fig4-ic", "musat/fig4-nonic"]
    assert names("musat") + names("chen") == names("") == list(targets())
    assert all(name.startswith("chen/") for name in names("chen"))


@pytest.mark.parametrize("pattern", ["musat/fig9", "fig5", "musat/fig5 "])
def test_an_unknown_target_gets_the_list(pattern: str) -> None:
    with pytest.raises(ConfigError, match=f"no target '{pattern}': there are musat/fig2, "):
        matching(pattern)


@pytest.mark.parametrize("name", targets())
def test_every_target_says_what_it_is(name: str) -> None:
    target = targets()[name]
    assert target.name == name
    assert all((target.shows, target.method))
    lesser = set(target.recipes) - {"full"}
    wordy = {protocol for protocol, remark in target.remarks.items() if remark}
    assert wordy <= lesser or not target.recipes
    for protocol in target.recipes:
        taken, recipes = target.runs(protocol)
        assert taken == protocol
        assert len({recipe.digest() for recipe in recipes}) == len(recipes)
        assert recipes or protocol == "smoke"
