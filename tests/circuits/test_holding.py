"""Rules that hold in all rows of a head, in some, or in none; by attention written by hand."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import CallbackModel, Drawn, Examples, OwnTask, examples_of, target
from hopscope.circuits.components import Component
from hopscope.circuits.holding import with_holds
from hopscope.circuits.pattern import PREVIOUS, UNIFORM, Target
from hopscope.circuits.proposals import proposed_targets
from hopscope.facts import Role

LENGTH = 6
ASKER, LETTER = Role("asker"), Role("letter")
OWN = target("own", LETTER)
ALL = target("all", LETTER)


def draw(count: int, seed: int) -> Drawn:
    """Letters of two chains among four places, then a mark, and who asks for one of them. A token
    holds a place's part: the chain of a letter (0 or 1), a mark (2), or who asks (3 or 4).
    """
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.full((count, LENGTH), 2)
    places = torch.rand(count, 4, generator=generator).argsort(1)
    tokens.scatter_(1, places[:, :2], torch.arange(2).expand(count, 2))
    tokens[:, -1] = torch.randint(3, 5, (count,), generator=generator)
    roles = (tokens >= 2).long() + (tokens >= 3).long()
    return Drawn(
        tokens,
        tokens[:, -1:] - 3,
        roles=roles,
        chain=torch.where(tokens < 2, tokens, tokens[:, -1:] - 3),
        conditions={"asks for 0": tokens[:, -1] == 3},
    )


@pytest.fixture(scope="module")
def examples() -> Examples:
    return examples_of(OwnTask(draw, roles=["letter", "mark", "asker"], chance=1.0), 400, 0)


def own(tokens: Tensor) -> Tensor:
    return (tokens == tokens[:, -1:] - 3).float()


def letters(tokens: Tensor) -> Tensor:
    return (tokens < 2).float() / 2


def first(tokens: Tensor) -> Tensor:
    return nn.functional.one_hot((tokens < 2).float().argmax(1), LENGTH).float()


def before() -> Tensor:
    return nn.functional.one_hot(torch.tensor(LENGTH - 2), LENGTH).float()


def asks_for_0(tokens: Tensor) -> Tensor:
    return (tokens[:, -1:] == 3).float()


def even(tokens: Tensor) -> Tensor:
    return torch.full(tokens.shape, 1 / LENGTH)


def nearly_even(tokens: Tensor) -> Tensor:
    return torch.linspace(0, 0.1, LENGTH).softmax(0).expand(tokens.shape)


@pytest.mark.parametrize(
    ("looks", "rule", "holds", "proposed"),
    [
        (own, OWN, 1.0, OWN),
        (lambda t: 0.4 * own(t) + 0.6 * even(t), OWN, 1.0, OWN),  # soft attention
        (lambda t: 0.4 * own(t) + 0.6 * before(), OWN, 1.0, PREVIOUS),  # a sink gets more
        (first, OWN, 0.5, None),  # one place, of either chain
        (letters, OWN, 1.0, ALL),
        (letters, ALL, 1.0, ALL),
        (even, OWN, 0.0, None),
        (
            lambda t: torch.where(asks_for_0(t) > 0, own(t), even(t)),
            OWN,
            0.5,
            OWN.if_("asks for 0"),
        ),
        (lambda t: asks_for_0(t) * own(t), OWN.if_("asks for 0"), 1.0, OWN.if_("asks for 0")),
        (  # rows of an even rule do not count
            lambda t: torch.where(asks_for_0(t) > 0, own(t), nearly_even(t)),
            OWN.if_("asks for 0").or_else(UNIFORM),
            1.0,
            OWN.if_("asks for 0"),
        ),
    ],
)
def test_a_rule_holds_in_the_rows_that_attend_as_it_says_and_such_rules_are_proposed(
    looks: Callable[[Tensor], Tensor],
    rule: Target,
    holds: float,
    proposed: Target | None,
    examples: Examples,
) -> None:
    def forward(tokens: Tensor, attention: Callable[[int, Tensor], Tensor]) -> Tensor:
        weights = torch.eye(LENGTH).repeat(len(tokens), 1, 1, 1)
        weights[:, 0, -1] = looks(tokens)
        return attention(0, weights)[:, 0] @ nn.functional.one_hot(tokens, 5).float()

    model = CallbackModel(forward, nn.Linear(1, 1), (1, 1))
    component = Component(layer=0, heads=(0,), destinations=(ASKER,), target=rule)
    (found,) = with_holds(model, examples, [component], 0.2)
    assert found.holds.mean == pytest.approx(holds, abs=0.06)
    assert found.is_named == (holds == 1.0)
    targets = proposed_targets(examples, model, 0.2).get(((0, 0), ASKER), [])
    assert (targets[0] if targets else None) == proposed
