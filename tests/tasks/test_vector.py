"""Vector tasks against a slow reading of every example: who holds which symbol, and where."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import ConditionalRetrieval, Induction, Retrieval, VectorTask
from hopscope.tasks import Batch, examples, sampler_of

vector_tasks = st.one_of(
    st.builds(
        Retrieval,
        hops=st.integers(1, 5),
        chains=st.integers(1, 4),
        dim=st.sampled_from([4, 32]),
        symbols=st.sampled_from(["gaussian", "sphere"]),
        position=st.sampled_from(["token", "pair"]),
        order=st.sampled_from(["backward", "forward", "shuffled"]),
        curriculum=st.booleans(),
    ),
    st.builds(Retrieval, hops=st.just(3), dim=st.just(16), symbols=st.just("one-hot")),
    st.builds(Induction, chains=st.integers(1, 4)),
    st.builds(
        ConditionalRetrieval,
        chains=st.just(3),
        decoys=st.integers(0, 2),
        order=st.sampled_from(["backward", "forward", "shuffled"]),
        facts=st.sampled_from([("a->x", "a->y", "x,y->z"), ("f,i->o",), ("a->b", "a,b,k->c")]),
    ),
)


def read_chains(task: VectorTask, batch: Batch, row: int) -> list[dict[str, torch.Tensor]]:
    """For each chain, the vector of every symbol, read off the positions by their roles."""
    graph, table = task.graph(), task.roles()
    chains: list[dict[str, torch.Tensor]] = [{} for _ in range(task.chains)]
    for place in range(batch.inputs.shape[1]):
        role = table[int(batch.roles.role[row, place])]
        if role.kind.startswith("decoy"):
            continue
        fact = graph.facts[role.fact] if role.kind != "query" else None
        name = graph.known[role.fact] if fact is None else (*fact.keys, fact.value)[
            role.slot if role.kind == "key" else len(fact.keys)
        ]  # fmt: skip
        vector = batch.inputs[row, place, : task.dim]
        seen = chains[int(batch.roles.chain[row, place])].setdefault(name, vector)
        assert torch.equal(seen, vector), f"{name} has two vectors"
    return chains


def check_decoys(
    task: VectorTask, batch: Batch, row: int, chains: list[dict[str, torch.Tensor]]
) -> None:
    """A decoy's first key is its chain's own; the others are those of one other chain."""
    for place, number in enumerate(batch.roles.role[row].tolist()):
        role, own = task.roles()[number], int(batch.roles.chain[row, place])
        if role.kind != "decoy key":
            continue
        name = task.graph().facts[role.fact].keys[role.slot]
        vector = batch.inputs[row, place, : task.dim]
        (lender,) = (n for n, chain in enumerate(chains) if torch.equal(chain[name], vector))
        assert (lender == own) == (role.slot == 0)


@given(vector_tasks, st.integers(0, 2**31 - 1))
@settings(max_examples=60, deadline=None)
def test_roles_tell_the_truth_and_targets_follow_the_facts(task: VectorTask, seed: int) -> None:
    batch = examples(sampler_of(task), seed, torch.arange(3))
    graph, ends = task.graph(), task.interface()
    assert batch.inputs.shape == (3, ends.length, ends.inputs)
    assert ends.outputs == batch.targets[0, 0].numel()
    wanted = [fact.value for fact in graph.facts]
    wanted = wanted if task.curriculum else wanted[-1:]
    known = len(graph.known)
    for row in range(3):
        chains = read_chains(task, batch, row)
        check_decoys(task, batch, row, chains)
        read = batch.roles.chain[row, -task.chains * known :].tolist()
        assert sorted(read[::known]) == list(range(task.chains))
        for answer, chain in enumerate(read[::known]):
            expected = torch.stack([chains[chain][name] for name in wanted])
            assert torch.equal(batch.targets[row, answer], expected)


def test_facts_come_last_hop_first_and_queries_at_the_end_unless_they_are_shuffled() -> None:
    task = Retrieval(hops=3, chains=2)
    table = [str(role) for role in task.roles()]
    batch = examples(sampler_of(task), 0, torch.arange(20))
    facts = [f"{kind} {hop}" for hop in (2, 1, 0) for _ in range(2) for kind in ("key", "value")]
    for row in batch.roles.role.tolist():
        assert [table[number] for number in row] == [*facts, "query", "query"]
    assert len({tuple(row) for row in batch.roles.chain.tolist()}) > 5


def test_positions_are_rotary_codes_of_tokens_or_pairs() -> None:
    token = examples(sampler_of(Retrieval(hops=2)), 0, torch.tensor([0])).inputs[0, :, 4:]
    pair = examples(sampler_of(Retrieval(hops=2, position="pair")), 0, torch.tensor([0]))
    for place in range(20):
        slow = place * 10_000**-0.5
        expected = [math.cos(place), math.cos(slow), math.sin(place), math.sin(slow)]
        assert token[place].tolist() == pytest.approx(expected, abs=1e-6)
        entry = place // 2 if place < 16 else place - 8
        assert torch.equal(pair.inputs[0, place, 4:], token[entry])
