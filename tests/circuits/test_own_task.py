"""Your own tasks are examined like hopscope's, relations and conditions that they name are what
their circuits speak of, and each mistake has its line.
"""

import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import (
    Circuit,
    Drawn,
    Examples,
    OwnTask,
    along,
    discover,
    examples_of,
    repeated_tokens,
)
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role, chain_of_facts
from hopscope.models.planted import Planted
from hopscope.tasks import Roles, dataset
from tests.conftest import TWO_HOPS

CLASSES, LENGTH = 5, 6


def draw(count: int, seed: int) -> Drawn:
    """A count token and letters; every letter answers."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(CLASSES, (count, LENGTH), generator=generator)
    twice = torch.arange(count) % 2 == 1
    return Drawn(
        tokens,
        targets=tokens[:, :-1],
        roles=["count", *["letter"] * (LENGTH - 1)],
        hop=twice.long()[:, None].expand(count, LENGTH - 1),
        relations={"before": (torch.arange(LENGTH) - 1).expand(count, -1)},
        conditions={"twice": twice},
    )


def own(**options: Any) -> OwnTask:
    task = OwnTask.__new__(OwnTask)
    # Without the checks of types that only tests have.
    begin = inspect.unwrap(OwnTask.__init__)
    begin(task, **{"draw": draw, "roles": ["count", "letter"], "chance": 1.0, "hops": 2, **options})
    return task


def test_yes_and_no_are_classes() -> None:
    task = own(draw=lambda count, seed: replace(its := draw(count, seed), targets=its.targets > 2))
    outputs = torch.randn(8, LENGTH, 2, generator=torch.Generator().manual_seed(0))
    numbers = own(draw=lambda n, seed: replace(its := draw(n, seed), targets=(its.targets > 2) * 1))
    assert task(8, 0).losses(outputs).equal(numbers(8, 0).losses(outputs))


def test_whole_numbers_of_any_width_are_taken() -> None:
    def narrow(count: int, seed: int) -> Drawn:
        its = draw(count, seed)
        return replace(
            its,
            targets=its.targets.int(),
            hop=its.hop.to(torch.uint8),
            relations={name: leads.short() for name, leads in its.relations.items()},
            answers_at=torch.arange(1, LENGTH, dtype=torch.uint8),
        )

    usual, found = (examples_of(own(draw=one, hops=np.int64(2)), 4) for one in (draw, narrow))
    outputs = torch.randn(4, LENGTH, CLASSES)
    assert torch.equal(found.losses_of(outputs), usual.losses_of(outputs))
    assert torch.equal(found.relations["before"], usual.relations["before"])


def test_answers_everywhere_are_marked_hop_by_hop() -> None:
    examples = examples_of(own(), 4)
    assert examples.read == LENGTH - 1
    outputs = torch.randn(4, LENGTH, CLASSES)
    each = nn.functional.cross_entropy(
        outputs[:, 1:].flatten(0, 1), examples.inputs[:, :-1].flatten(), reduction="none"
    ).view(4, LENGTH - 1)
    expected = [each[0::2].mean().item(), each[1::2].mean().item()]
    assert examples.losses_of(outputs).mean(0).tolist() == pytest.approx(expected)
    for count in (2, 4):  # as many variants as examples, too
        several = [outputs.roll(number, 0) for number in range(count)]
        expected_of_each = torch.stack([examples.losses_of(each) for each in several])
        assert torch.equal(examples.losses_of(torch.stack(several)), expected_of_each)
    parts = [examples.terms_of(outputs[some], some) for some in (slice(0, 3), slice(3, 4))]
    assert torch.allclose(examples.losses_from(torch.cat(parts)), examples.losses_of(outputs))


def test_how_many_answers_of_a_hop_an_example_has_is_no_variance() -> None:
    """Half of the examples answer one hop, and half the other: losses that are all the same have an
    interval of no width.
    """
    same = examples_of(own(loss=lambda outputs, targets: torch.ones(targets.shape)), 8)
    assert torch.equal(same.losses_of(torch.zeros(8, LENGTH, CLASSES)), torch.ones(8, 2))


def test_as_many_hops_as_answers_of_a_short_example_are_no_mistake() -> None:
    """Five positions, answers at the last three, a hop each."""

    def each_its_hop(count: int, seed: int) -> Drawn:
        letters = replace(draw(count, seed), relations={}, conditions={})
        return replace(letters, inputs=letters.inputs[:, :5], targets=letters.targets[:, :3],
                       roles=["letter"] * 5, hop=torch.arange(3).expand(count, 3))  # fmt: skip

    examples = examples_of(own(draw=each_its_hop, hops=3), 4)
    assert examples.losses_of(torch.randn(4, 5, CLASSES)).shape == (4, 3)


def test_answers_are_read_at_chosen_positions() -> None:
    def chosen(count: int, seed: int) -> Drawn:
        return replace(draw(count, seed), answers_at=[4, 1], targets=torch.zeros(count, 2).long(),
                       hop=None)  # fmt: skip

    examples = examples_of(own(draw=chosen, hops=1), 3)
    outputs = torch.randn(3, LENGTH, CLASSES)
    assert examples.read == 5
    expected = -outputs.log_softmax(-1)[:, [4, 1], 0].mean(1, keepdim=True)
    assert torch.allclose(examples.losses_of(outputs), expected)


def test_conditions_and_relations_stand_at_every_position() -> None:
    examples = examples_of(own(), 2)
    assert examples.condition("twice").tolist() == [[False] * LENGTH, [True] * LENGTH]
    rows = torch.arange(LENGTH)
    three = examples.masks("before", 3, (torch.zeros_like(rows), rows))
    assert torch.equal(three, rows == rows[:, None] - 3)
    leads = [False] * 3 + [True] * 3
    assert examples.leads("before", 3).tolist() == [leads, leads]
    assert examples.condition("before ×3 leads").tolist() == [leads, leads]
    assert examples.condition("twice and before ×3 leads").tolist() == [[False] * LENGTH, leads]


def as_own(task: Retrieval, draw: Callable[[int, int], Drawn] | None = None) -> OwnTask:
    """One of hopscope's tasks, told as a stranger's; or with other things drawn beside it."""

    def drawing(count: int, seed: int) -> Drawn:
        batch = dataset(task, seed, count, "validation")
        answers, length = batch.targets.shape[1], task.interface().length
        return Drawn(batch.inputs, batch.targets, batch.roles.role, batch.roles.chain,
                     answers_at=range(length - answers, length))  # fmt: skip

    def both_hops(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.view_as(targets) - targets).square().mean(-1)

    return OwnTask(
        draw or drawing,
        roles=[str(role) for role in task.roles()],
        chance=task.chance(),
        hops=task.hops,
        loss=both_hops,
        facts=[str(fact) for fact in task.graph().facts],
    )


def test_the_circuit_of_a_task_told_by_hand_is_that_of_ours(
    two_hops: Planted, circuit: Circuit
) -> None:
    found = discover(two_hops.model, as_own(TWO_HOPS), examples=32)
    assert found.components == circuit.components
    assert found.losses == circuit.losses
    assert found.flow == circuit.flow
    assert found.task is None


def test_without_knowing_which_fact_a_hop_asks_for_there_is_no_flow(two_hops: Planted) -> None:
    task = as_own(TWO_HOPS)
    task.graph = chain_of_facts(3)
    assert discover(two_hops.model, task, examples=8, fresh=8).flow is None


def drawn(**changes: Any) -> dict[str, Any]:
    """A task whose examples are changed."""
    return {"draw": lambda count, seed: replace(draw(count, seed), **changes)}


def untyped(**changes: Any) -> dict[str, Any]:
    """The same without the checks of types that only tests have."""

    def drawing(count: int, seed: int) -> Drawn:
        found = draw(count, seed)
        for name, value in changes.items():
            object.__setattr__(found, name, value)
        return found

    return {"draw": drawing}


def zeros(*shape: int, number: int = 0) -> Tensor:
    return torch.full(shape, number)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"draw": KHop()}, "a function that draws .*; got KHop"),
    ({"draw": Drawn}, "a function that draws"),
    ({"draw": lambda n, s: 3}, "returned int; expected a Drawn"),
    ({"draw": lambda n, s: draw(n + 1, s)}, r"inputs are \[5, 6\]"),
    ({"roles": []}, r"roles are \[\]"),
    ({"roles": "count"}, "roles are 'count'"),
    ({"roles": ["a<b"]}, "there is no role 'a<b'"),
    ({"roles": ["letter", "count", "count"]}, "expected each role once"),
    ({"roles": ["letter"]}, "has the role 'count'"),
    ({"hops": 3}, r"hop 2 \(of 0 … 2\) has no answer"),
    ({"hops": 1}, r"pass OwnTask\(…, hops=2\)"),
    ({"hops": 0}, "hops is 0"),
    ({"chance": "3"}, "chance is '3'"),
    ({"hops": True}, "hops is True"),
    (drawn(targets=zeros(4)), r"targets are \[4\]"),
    (drawn(roles=["count"]), "1 roles are named for 6 positions"),
    (drawn(roles=zeros(4, 6, number=2)), "role of positions has numbers 2"),
    (drawn(roles=zeros(4, 6).float()), "role of positions has numbers of type torch.float32"),
    (drawn(roles=zeros(6)), r"role of positions is \[6\]"),
    (drawn(answers_at=[2, 3, 4, 5, 6]), "answers stand at positions 2 … 6"),
    (drawn(answers_at=[-1, 0, 1, 2, 3]), "answers stand at positions -1 … 3"),
    (drawn(answers_at=[2]), r"answers_at is torch.int64 \[1\]"),
    (drawn(answers_at=zeros(5).float()), r"answers_at is torch.float32 \[4, 5\]"),
    (drawn(answers_at=zeros(5).bool()), r"answers_at is torch.bool \[4, 5\]"),
    *(
        (untyped(**{name: value}), rf"Drawn's {name} is {re.escape(repr(value))}; expected")
        for name, value in (
            ("answers_at", "last"),
            ("hop", [0]),
            ("roles", None),
            ("roles", [0] * 6),
            ("relations", None),
            ("conditions", None),
            ("relations", {3: 0}),
        )
    ),
    ({"roles": [0, 1]}, r"roles are \[0, 1\]"),
    *(
        ({"roles": ["count", "letter", name]}, f"the role name {name!r} has another")
        for name in (
            "previous",
            "itself",
            "uniform",
            "mean",
            "position",
            "as in the model",
            "a and b",
        )
    ),
    *(
        (drawn(conditions={name: zeros(4)}), f"the condition name {name!r} has another")
        for name in ("a and b", "before leads")
    ),
    (drawn(hop=zeros(4)), r"hop is torch.int64 \[4\]"),
    *(
        (
            drawn(relations={name: zeros(4, 6)}),
            f"the relation name {name!r} has another meaning in hopscope",
        )
        for name in ("letter", "previous", "itself", "by position", "hop ×2", "a and b", "on leads")
    ),
    (drawn(relations={"on": zeros(4, 6, number=6)}), "relation 'on' has numbers 6"),
    (drawn(relations={"on": zeros(4, 6, 5).bool()}), r"'on' is torch.bool \[4, 6, 5\]"),
    (drawn(relations={"on": zeros(4, 6, 6)}), r"'on' is torch.int64 \[4, 6, 6\]"),
    (drawn(relations={"on": zeros(4, 6).bool()}), r"'on' is torch.bool \[4, 6\]"),
    (drawn(conditions={"if": zeros(3)}), r"condition 'if' is \[3\]"),
    (drawn(conditions={"if": zeros(4, number=2)}), "'if' has numbers 2"),
]
"""What is wrong with a task, and with what it draws."""
OUTPUTS = torch.zeros(4, LENGTH, CLASSES)


def by_hand(losses: Callable[[Tensor], Any], read: int | None = None) -> Examples:
    """Examples without a builder."""
    number = torch.zeros(4, 6).long()
    return Examples(number, Roles(number, number), examples_of(own(), 4).table, losses, 1.0, read)


def test_every_mistake_in_a_task_has_its_line() -> None:
    examples = inspect.unwrap(examples_of)
    some = examples_of(own(), 4)
    cases: list[tuple[Callable[[], Any], str]] = [
        *((lambda its=options: examples(own(**its), 4), line) for options, line in MISTAKES),
        (lambda: examples(lambda n, s: 3, 4), "returned int; expected Examples"),
        (lambda: examples_of(lambda count, seed: by_hand(torch.relu, 7), 4), "read is 7"),
        (lambda: own(chance=0.0), "chance is 0.0"),
        (lambda: examples(lambda n, s: replace(some, chance=0.0), 4), "chance is 0"),
        (lambda: some.leads("hop"), "no relation 'hop' here; the relations are b"),
        (lambda: some.condition("3 hops"), "no condition '3 hops' here; .* are twice"),
        (lambda: some.condition("twice and hop leads"), "no condition 'hop leads'"),
    ]
    for make, line in cases:
        with pytest.raises((CircuitError, ConfigError), match=line) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_every_mistake_in_a_loss_or_an_answer_has_its_line() -> None:
    for its, outputs, line in (
        (own(loss=lambda o, t: o.mean()), OUTPUTS, r"the loss is \[\]"),
        (own(loss=lambda o, t: 3.0), OUTPUTS, "the loss is float"),
        (own(loss=lambda o, t: torch.zeros(4, 5, 3)), OUTPUTS, r"pass OwnTask\(…, hops=3\)"),
        (own(), OUTPUTS[..., :3], r"classes 0 … 4; expected .* with 0 … 2"),
        (
            own(**drawn(targets=zeros(4, 5, number=-1))),
            OUTPUTS,
            r"classes -1 … -1; expected .* 0 … 4",
        ),
        (own(**drawn(targets=torch.zeros(4, 5, 2))), OUTPUTS, r"answers are \[4, 5, 5\]"),
        (by_hand(lambda o: o.mean()), OUTPUTS, r"losses are \[\]"),
        (by_hand(lambda o: o[:, 0, 0]), OUTPUTS, r"losses are \[4\]"),
        (by_hand(lambda o: 3), OUTPUTS, "losses are int"),
        (by_hand(torch.relu, 5), OUTPUTS[:, :2], "last 5 positions; this model answers at 2"),
    ):
        examples = its if isinstance(its, Examples) else examples_of(its, 4)
        with pytest.raises(CircuitError, match=line):
            inspect.unwrap(Examples.losses_of)(examples, outputs)


def test_a_draw_that_does_not_heed_its_seed_is_refused() -> None:
    same = own(draw=lambda count, _: draw(count, 0))
    with pytest.raises(CircuitError, match="gave the same 8 examples for the seeds 3 and 4"):
        same(8, 3)
    assert torch.equal(same(2, 3).inputs, draw(2, 0).inputs)  # so few may be the same by chance
    own()(8, 3)
    # Some rows of a table that the seed chooses: the seeds of all purposes choose the same ones.
    table = draw(1000, 0).inputs
    rows = own(
        draw=lambda count, seed: replace(
            draw(count, 0), inputs=table[(torch.arange(count) + seed * count) % len(table)]
        )
    )
    with pytest.raises(CircuitError, match="same 8 examples for the seeds 3 and 100000003"):
        rows(8, 3)


def test_a_draw_whose_examples_change_in_form_is_refused() -> None:
    usual = draw(4, 0)
    changes: dict[str, dict[str, Any]] = {
        r"inputs torch.int64 \[6\], and in a later call torch.int64 \[7\]; expected the same": {
            "inputs": torch.zeros(4, 7).long(), "roles": ["count", *["letter"] * 6]
        },
        r"later call torch.float32 \[6\]": {"inputs": usual.inputs.float()},
        r"targets torch.int64 \[5\], and in a later call torch.int64 \[1\]": {
            "targets": usual.targets[:, :1], "hop": usual.hop[:, :1],
        },
        "relations before, and in a later call none": {"relations": {}},
        "conditions twice, and in a later call odd": {"conditions": {"odd": usual.inputs % 2}},
    }  # fmt: skip
    for line, change in changes.items():
        calls = iter([{}, change])  # of the first call, and of the next
        task = own(draw=lambda *_, calls=calls: replace(usual, **next(calls)))
        task(4, 0)
        with pytest.raises(CircuitError, match=line):
            task(4, 1)


QUERY, VALUES = Role("query"), (Role("value", 0), Role("value", 1))


def onward(role: Tensor, chain: Tensor) -> Tensor:
    """From a query to value 0 of its chain, from there to value 1; from elsewhere nowhere."""
    table = TWO_HOPS.roles()
    steps = {table.index(QUERY): VALUES[0], table.index(VALUES[0]): VALUES[1]}
    found = torch.full(role.shape, -1)
    for example, place in np.ndindex(*role.shape):
        source = steps.get(int(role[example, place]))
        for there in range(role.shape[1]) if source else ():
            same = chain[example, there] == chain[example, place]
            if same and table[int(role[example, there])] == source:
                found[example, place] = there
    return found


def draw_related(count: int, seed: int) -> Drawn:
    drawn = as_own(TWO_HOPS).draw(count, seed)
    first = torch.arange(count) < count // 2
    return replace(
        drawn,
        relations={"onward": onward(torch.as_tensor(drawn.roles), torch.as_tensor(drawn.chain))},
        conditions={"first half": first, "second half": ~first},
    )


def test_what_relations_lead_to_is_named_by_them_and_conditions_where_they_matter(
    two_hops: Planted,
) -> None:
    circuit = discover(two_hops.model, as_own(TWO_HOPS, draw_related), examples=32)
    assert circuit.verdict.startswith("Explained")  # though no path of roles brings an answer
    last = {(2, 0): along("onward", 2), (1, 0): along("onward")}
    for head, looks in last.items():
        assert circuit.pattern(*head).of(QUERY) == looks
    assert Circuit.from_dict(circuit.to_dict()) == circuit


def test_a_relation_that_leads_everywhere_alike_is_no_look_up(two_hops: Planted) -> None:
    """Each value stands after its key: whether a head looks it up, or goes one back, nobody
    can tell.
    """

    def related(count: int, seed: int) -> Drawn:
        drawn = as_own(TWO_HOPS).draw(count, seed)
        back = (torch.arange(drawn.inputs.shape[1]) - 1).expand(count, -1)
        return replace(drawn, relations={"of its key": back})

    with pytest.warns(UserWarning, match="the relation 'of its key' leads to the same place or of"):
        found = discover(two_hops.model, as_own(TWO_HOPS, related), examples=32)
    assert found.paths == two_hops.paths


def test_a_position_says_where_a_relation_leads() -> None:
    for leads, fixed in (
        ([[2, -1, 0], [2, -1, 0]], True),  # the mirrored place
        ([[-1, 0, 1], [-1, -1, 1]], True),  # one back, where it leads anywhere
        ([[-1, 0, 1], [-1, 0, 0]], False),
        ([[2, -1, 0], [2, -1, -1]], False),  # the same in some examples alone
    ):
        examples = replace(examples_of(own(), 2), relations={"on": torch.tensor(leads)},
                       roles=Roles(*[torch.zeros(2, 3).long()] * 2))  # fmt: skip
        assert examples.by_place("on") == fixed, leads


def test_only_the_repeated_tokens_occur_twice() -> None:
    drawn = repeated_tokens(vocabulary=40, length=5, filler=3, start=7).draw(16, 0)
    roles = torch.as_tensor(drawn.roles)
    for tokens, role in zip(drawn.inputs, roles.expand_as(drawn.inputs), strict=True):
        filler, first, second, start = (tokens[role == n].tolist() for n in range(4))
        assert first == second
        assert start == [7]
        assert len({*filler, *first, 7}) == 3 + 5 + 1


def test_repeated_tokens_are_the_same_for_any_dtype_kind_of_seed_and_when_pickled() -> None:
    task = repeated_tokens(40, length=5)
    inputs = examples_of(task, 8, 1).inputs
    assert torch.equal(inspect.unwrap(examples_of)(task, 8, np.int64(1)).inputs, inputs)
    assert torch.equal(examples_of(pickle.loads(pickle.dumps(task)), 8, 1).inputs, inputs)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(examples_of(task, 8, 1).inputs, inputs)
    finally:
        torch.set_default_dtype(torch.float32)


def test_tokens_that_do_not_suffice_for_repetitions_are_refused() -> None:
    assert repeated_tokens(8, length=5, filler=3).draw(2, 0).inputs.max() < 8
    for vocabulary, start, line in (
        (7, None, "vocabulary is 7; expected at least 8 .*: choose a smaller length"),
        (8, 0, "vocabulary is 8; expected at least 9"),
        (40, 40, "start is 40; expected a token, 0 … 39"),
        (40, -1, "start is -1; expected a token"),
    ):
        with pytest.raises(CircuitError, match=line):
            repeated_tokens(vocabulary, length=5, filler=3, start=start)
