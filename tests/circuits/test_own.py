"""Tasks of one's own: they are examined like hopscope's, and each mistake has its line."""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import (
    Circuit,
    Drawn,
    Exam,
    OwnTask,
    discover,
    exam_of,
)
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError, FactError
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
    begin(task, **{"draw": draw, "roles": ["count", "letter"], "guess": 1.0, "hops": 2, **options})
    return task


def test_answers_everywhere_are_marked_hop_by_hop() -> None:
    exam = exam_of(own(), 4)
    assert exam.read == LENGTH - 1
    outputs = torch.randn(4, LENGTH, CLASSES)
    each = nn.functional.cross_entropy(
        outputs[:, 1:].flatten(0, 1), exam.inputs[:, :-1].flatten(), reduction="none"
    ).view(4, LENGTH - 1)
    expected = [each[0::2].mean().item(), each[1::2].mean().item()]
    assert exam.marks(outputs).mean(0).tolist() == pytest.approx(expected)
    for count in (2, 4):  # as many variants as examples, too
        several = [outputs.roll(number, 0) for number in range(count)]
        expected_of_each = torch.stack([exam.marks(each) for each in several])
        assert torch.equal(exam.marks(torch.stack(several)), expected_of_each)


def test_as_many_hops_as_answers_of_a_short_example_are_no_mistake() -> None:
    """Five positions, answers at the last three, a hop each."""

    def each_its_hop(count: int, seed: int) -> Drawn:
        letters = replace(draw(count, seed), relations={}, conditions={})
        return replace(letters, inputs=letters.inputs[:, :5], targets=letters.targets[:, :3],
                       roles=["letter"] * 5, hop=torch.arange(3).expand(count, 3))  # fmt: skip

    exam = exam_of(own(draw=each_its_hop, hops=3), 4)
    assert exam.marks(torch.randn(4, 5, CLASSES)).shape == (4, 3)


def test_answers_are_read_at_chosen_positions() -> None:
    def chosen(count: int, seed: int) -> Drawn:
        return replace(draw(count, seed), answers_at=[4, 1], targets=torch.zeros(count, 2).long(),
                       hop=None)  # fmt: skip

    exam = exam_of(own(draw=chosen, hops=1), 3)
    outputs = torch.randn(3, LENGTH, CLASSES)
    assert exam.read == 5
    expected = -outputs.log_softmax(-1)[:, [4, 1], 0].mean(1, keepdim=True)
    assert torch.allclose(exam.marks(outputs), expected)


def test_conditions_and_relations_stand_at_every_position() -> None:
    exam = exam_of(own(), 2)
    assert exam.condition("twice").tolist() == [[False] * LENGTH, [True] * LENGTH]
    rows = torch.arange(LENGTH)
    three = exam.sources("before", 3, torch.zeros_like(rows), rows)
    assert torch.equal(three, rows == rows[:, None] - 3)
    leads = [False] * 3 + [True] * 3
    assert exam.leads("before", 3).tolist() == [leads, leads]
    assert exam.condition("before ×3 leads").tolist() == [leads, leads]
    assert exam.condition("twice and before ×3 leads").tolist() == [[False] * LENGTH, leads]


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
        guess=task.guess(),
        hops=task.hops,
        loss=both_hops,
        facts=() if draw else [str(fact) for fact in task.graph().facts],
    )


def test_the_circuit_of_a_task_told_by_hand_is_that_of_ours(
    two_hops: Planted, circuit: Circuit
) -> None:
    found = discover(two_hops.model, as_own(TWO_HOPS), examples=32)
    assert found.paths == circuit.paths
    assert found.flow == circuit.flow
    assert found.losses == circuit.losses


def broken(**changes: Any) -> Callable[[int, int], Drawn]:
    return lambda count, seed: replace(draw(count, seed), **changes)


MISTAKES = {
    "a config": (lambda: own(draw=KHop()), "begins with a function that draws .*; got KHop"),
    "a class": (lambda: own(draw=Drawn), "begins with a function that draws"),
    "no roles": (lambda: own(roles=[]), r"roles are \[\]; expected a list of names"),
    "one name": (lambda: own(roles="count"), "roles are 'count'; expected a list of names"),
    "a strange name": (lambda: own(roles=["a<b"]), "there is no role 'a<b'"),
    "a role twice": (lambda: own(roles=["letter", "count", "count"]), "expected each role once"),
    "another role": (lambda: own(roles=["letter"]), "has the role 'count'; the task's roles are l"),
    "no Drawn": (lambda: own(draw=lambda n, s: 3), "returned int; expected a Drawn"),
    "an exam": (lambda: lambda n, s: 3, "returned int; expected an Exam"),
    "more examples": (
        lambda: own(draw=lambda n, s: draw(n + 1, s)),
        r"inputs are \[5, 6\]; expected a tensor \[example, position, …\] of 4 examples",
    ),
    "one target": (
        lambda: own(draw=broken(targets=torch.zeros(4))),
        r"targets are \[4\]; expected a tensor \[example, answer, …\]",
    ),
    "few names": (lambda: own(draw=broken(roles=["count"])), "1 roles are named for 6 positions"),
    "a role beyond the table": (
        lambda: own(draw=broken(roles=torch.full((4, 6), 2))),
        r"the role of positions has numbers 2 … 2; expected 0 … 1",
    ),
    "roles by halves": (
        lambda: own(draw=broken(roles=torch.zeros(4, 6))),
        "the role of positions has numbers of type torch.float32; expected whole numbers",
    ),
    "roles once": (
        lambda: own(draw=broken(roles=torch.zeros(6).long())),
        r"the role of positions is \[6\]; expected a tensor \[4, 6\]",
    ),
    "answers out of range": (
        lambda: own(draw=broken(answers_at=[2, 3, 4, 5, 6])),
        r"answers stand at positions 2 … 6; expected positions 0 … 5",
    ),
    "fewer answers than targets": (
        lambda: own(draw=broken(answers_at=[2])),
        r"answers_at is \[1\]; expected whole numbers \[5\] or \[4, 5\]",
    ),
    "a hop without answers": (
        lambda: own(draw=broken(hop=torch.full((4, 5), 1))),
        r"hop 0 \(of 0 … 1\) has no answer in 4 examples: draw more",
    ),
    "a rare hop that no example of a small draw has": (
        lambda: own(hops=3),
        r"hop 2 \(of 0 … 2\) has no answer in 4 examples: draw more",
    ),
    "more hops than were said": (
        lambda: own(hops=1),
        r"hop has numbers up to 1, and the task has 1 hop: say OwnTask\(…, hops=2\)",
    ),
    "no hops": (lambda: own(hops=0), "hops is 0; expected how many hops the task has"),
    "hops of examples": (
        lambda: own(draw=broken(hop=torch.zeros(4).long())),
        r"hop is torch.int64 \[4\]; expected a whole number from 0 on for each answer, \[4, 5\]",
    ),
    "a relation beyond": (
        lambda: own(draw=broken(relations={"on": torch.full((4, 6), 6)})),
        r"the relation 'on' has numbers 6 … 6; expected -1 … 5",
    ),
    "a relation of examples": (
        lambda: own(draw=broken(relations={"on": torch.zeros(4).long()})),
        r"the relation 'on' is \[4\]; expected a tensor \[4, 6\]",
    ),
    "a set without sources": (
        lambda: own(draw=broken(relations={"on": torch.ones(4, 6, 5).bool()})),
        r"the relation 'on' is torch.bool \[4, 6, 5\]; expected a position from each, \[4, 6\], or",
    ),
    "a set of numbers": (
        lambda: own(draw=broken(relations={"on": torch.ones(4, 6, 6).long()})),
        r"'on' is torch.int64 \[4, 6, 6\]; .* or a set of them, torch.bool \[4, 6, 6\] \(example",
    ),
    "a condition of nobody": (
        lambda: own(draw=broken(conditions={"if": torch.ones(3)})),
        r"the condition 'if' is \[3\]; expected \[4\] or \[4, 6\]",
    ),
    "a guess of nothing": (lambda: own(guess=0.0), "guess is 0.0; expected the loss of guessing"),
}  # fmt: skip


def test_every_mistake_in_a_task_has_its_line() -> None:
    for mistake, (make, line) in MISTAKES.items():
        with pytest.raises((CircuitError, FactError)) as caught:
            inspect.unwrap(exam_of)(make(), 4)
        assert re.search(line, str(caught.value)), mistake


OUTPUTS = torch.zeros(4, LENGTH, CLASSES)


def by_hand(losses: Callable[[Tensor], Any], read: int | None = None) -> Exam:
    """An exam without a builder."""
    number = torch.zeros(4, 6).long()
    return Exam(number, Roles(number, number), exam_of(own(), 4).table, losses, 1.0, read)


def test_every_mistake_in_a_loss_or_an_answer_has_its_line() -> None:
    vectors = own(draw=broken(targets=torch.zeros(4, 5, 2)))
    for its, outputs, line in (
        (
            own(loss=lambda o, t: o.mean()),
            OUTPUTS,
            r"the loss is \[\]; expected one for each answer",
        ),
        (own(loss=lambda o, t: 3.0), OUTPUTS, "the loss is float; expected one for each answer"),
        (own(loss=lambda o, t: torch.zeros(4, 5, 3)), OUTPUTS, r"say OwnTask\(…, hops=3\)"),
        (own(), OUTPUTS[..., :3], r"classes 0 … 4; expected .* with 0 … 2"),
        (vectors, OUTPUTS, r"answers are \[4, 5, 5\], the targets \[4, 5, 2\]"),
        (by_hand(lambda o: o.mean()), OUTPUTS, r"losses are \[\]; expected one for each"),
        (by_hand(lambda o: o[:, 0, 0]), OUTPUTS, r"losses are \[4\]; .* keep an axis of hops"),
        (by_hand(lambda o: 3), OUTPUTS, "the exam's losses are int"),
        (by_hand(torch.relu, 5), OUTPUTS[:, :2], "last 5 positions; this model answers at 2"),
    ):
        exam = its if isinstance(its, Exam) else exam_of(its, 4)
        with pytest.raises(CircuitError, match=line):
            inspect.unwrap(Exam.marks)(exam, outputs)
    with pytest.raises(CircuitError, match="read is 7; expected a number of last positions, from"):
        exam_of(lambda count, seed: by_hand(torch.relu, 7), 4)


def test_relations_and_conditions_that_are_not_there_are_named_with_those_that_are() -> None:
    exam = exam_of(own(), 4)
    with pytest.raises(CircuitError, match="there is no relation 'hop' here; the relations are b"):
        exam.leads("hop")
    for name in ("3 hops", "twice and hop leads"):
        with pytest.raises(CircuitError, match="there is no condition '.*' here; .* are twice"):
            exam.condition(name)


def test_a_draw_that_does_not_heed_its_seed_is_refused() -> None:
    same = own(draw=lambda count, _: draw(count, 0))
    with pytest.raises(CircuitError, match="gave the same 8 examples for the seeds 3 and 4"):
        same(8, 3)
    assert torch.equal(same(2, 3).inputs, draw(2, 0).inputs)  # so few may be the same by chance
    own()(8, 3)
