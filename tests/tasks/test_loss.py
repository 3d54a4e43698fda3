"""Losses beside sums written out, answer by answer."""

from collections import Counter

import pytest
import torch
from every_task import TASKS
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from hopscope.configs import ConditionalRetrieval, KHop, Retrieval, Task
from hopscope.configs.tasks import Order
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.tasks import Batch, answer_losses, dataset, hop_losses, question_losses, total

SEVERAL_KNOWN = ConditionalRetrieval(facts=("f,i->o",), chains=2)


def slow_losses(task: Task, outputs: Tensor, batch: Batch) -> Tensor:
    """Of every example, answer and hop. A question of several known symbols asks at the last."""
    query, read = Role("query"), task.interface().read
    losses = torch.empty(*batch.targets.shape[:2], len(task.asked_hops()))
    for example, wanted in enumerate(batch.targets):
        places = range(read)
        if task.kind == "mqar":
            asks = batch.roles.role[example, -read:] == task.roles().index(query)
            places = asks.nonzero().flatten().tolist()
        step = len(places) // len(wanted)
        for answer, place in enumerate(places[step - 1 :: step]):
            for hop, part in enumerate(outputs[example, place].chunk(losses.shape[-1])):
                target = wanted[answer, hop]
                error = cross_entropy if task.interface().tokens else mse_loss
                losses[example, answer, hop] = error(part, target)
    return losses


@pytest.mark.parametrize("task", [*TASKS, SEVERAL_KNOWN], ids=lambda task: task.kind)
def test_losses_are_those_of_every_answer(task: Task) -> None:
    batch, shape = dataset(task, 0, 6), task.interface()
    outputs = torch.randn(2, 6, shape.read, shape.outputs)  # of two variants of a model
    slow = torch.stack([slow_losses(task, each, batch) for each in outputs])
    torch.testing.assert_close(answer_losses(task, outputs, batch), slow)
    torch.testing.assert_close(hop_losses(task, outputs, batch), slow.mean((1, 2)))
    last = task.labelled_positions() or slow.shape[2]
    torch.testing.assert_close(question_losses(task, outputs, batch), slow[:, :, -last:].mean(2))
    fleet = hop_losses(task, outputs[0].unflatten(0, (2, 3)), batch.stacked(2))
    torch.testing.assert_close(fleet, slow[0].unflatten(0, (2, 3)).mean((1, 2)))
    torch.testing.assert_close(total(fleet), fleet.mean(1))


def test_the_mean_of_the_candidates_reaches_the_level_of_chance() -> None:
    for symbols in ("gaussian", "sphere", "one-hot"):
        task = Retrieval(hops=2, symbols=symbols, dim=12)
        batch = dataset(task, 0, 20_000)
        candidates = batch.targets.mean(dim=1, keepdim=True).expand_as(batch.targets)
        losses = hop_losses(task, candidates.flatten(2), batch)
        assert losses.tolist() == pytest.approx([task.chance()] * 2, rel=0.01), symbols


@pytest.mark.parametrize(
    "task",
    [
        KHop(),
        KHop(hops=3, alphabet=2, length=12),
        KHop(hops=4, alphabet=16, length=16, curriculum=False),
    ],
)
def test_chance_of_k_hop_is_the_entropy_of_answers_for_who_knows_the_own_token(task: KHop) -> None:
    batch, letters = dataset(task, 0, 40_000), task.alphabet
    answers = batch.targets
    after_own = (answers - batch.inputs[..., None]) % letters  # all tokens but 0 are alike
    answers = torch.where(answers < letters, after_own, answers)
    shares = torch.stack([(answers == c).double().mean(0) for c in range(letters + 1)])
    entropies = -torch.special.xlogy(shares, shares).sum(0)  # [position, hop]
    assert task.chances() == pytest.approx(entropies.mean(0).tolist(), abs=0.01)
    assert task.chances(1) == pytest.approx(entropies[-1].tolist(), abs=0.02)
    assert task.chance() == pytest.approx(float(entropies.mean()), abs=0.01)


def test_decoys_are_candidates_as_well() -> None:
    task = ConditionalRetrieval(chains=2, decoys=1)
    assert task.chances() == (0.5, 0.5, 0.75)
    assert task.model_copy(update={"decoys": 0}).chances() == (0.5, 0.5, 0.5)
    assert task.ordered("shuffled").chances() == (0.5, 0.5, 0.75)


@pytest.mark.parametrize("order", ["backward", "forward", "shuffled"])
@pytest.mark.parametrize("facts", [("a->x", "a,x->y", "y->z"), ("a->x", "x->y", "x->z", "y->w")])
def test_candidates_are_the_values_that_are_the_same_keys(
    facts: tuple[str, ...], order: Order
) -> None:
    """Counted in an example: which keys a symbol is, and which values its group has."""
    task = ConditionalRetrieval(facts=facts, decoys=2, order=order)
    batch, roles, asked = dataset(task, 0, 1), task.roles(), task.asked_hops()
    role = [roles[number] for number in batch.roles.role[0].tolist()]
    symbol = [tuple(row) for row in batch.inputs[0, :, : task.dim].tolist()]
    keys = [len(fact.keys) for fact in task.graph().facts]
    seen = {s: ([], Counter()) for s in symbol}  # of its own fact, and as a key of others
    for s, r in zip(symbol, role, strict=True):
        if r.kind.endswith("value"):
            seen[s][0].append(keys[r.fact])
        elif r.kind.endswith("key"):
            seen[s][1][keys[r.fact], r.slot] += 1
    for hop, answer in zip(asked, batch.targets[0, 0].tolist(), strict=True):
        alike = [
            s
            for s, r in zip(symbol, role, strict=True)
            if r.kind.endswith("value") and seen[s] == seen[tuple(answer)]
            if order == "shuffled" or r.fact == hop - 1
        ]
        assert task.candidates(hop) == len(alike), hop


@pytest.mark.parametrize(
    "task",
    [
        *(Retrieval(hops=hops, chains=2, dim=12, order="shuffled") for hops in (1, 2, 3)),
        ConditionalRetrieval(
            facts=("a,b->x", "a,b->y", "x,y->z"), chains=2, dim=12, order="shuffled"
        ),
    ],
)
def test_chance_with_facts_shuffled_is_what_fixed_sums_of_all_positions_reach(
    task: Retrieval | ConditionalRetrieval,
) -> None:
    """The sums know first and second keys, values and queries, and look nothing up."""
    batch = dataset(task, 0, 5_000)
    kinds = [(r.kind, r.fact if r.kind == "query" else r.slot) for r in task.roles()]
    seen = torch.tensor([sorted(set(kinds)).index(kind) for kind in kinds])
    of_kind = torch.nn.functional.one_hot(seen[batch.roles.role.long()]).float()
    sums = (batch.inputs[..., :12].mT @ of_kind).flatten(0, 1)  # [a number of an example, kind]
    for wanted, level in zip(batch.targets[:, 0].unbind(1), task.chances(), strict=True):
        answer = wanted.flatten()[:, None]
        found = torch.linalg.lstsq(sums, answer, driver="gelsd")  # the default fails at low rank
        best = sums @ found.solution
        assert float((best - answer).square().mean()) == pytest.approx(level, rel=0.02)


def test_a_model_of_another_number_of_classes_is_named() -> None:
    task = KHop(hops=2, alphabet=4, length=6)
    line = "gives 7 numbers at each position; this task needs 10: 5 classes for each of 2 hops"
    with pytest.raises(CircuitError, match=line):
        hop_losses(task, torch.zeros(3, 6, 7), dataset(task, 0, 3))
