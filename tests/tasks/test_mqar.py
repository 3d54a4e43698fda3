"""Associative recall against a slow reading of every sequence, and its circuit, written by hand."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.circuits import discover
from hopscope.configs import MQAR, Model
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.tasks import dataset, examples, hop_losses, sampler_of
from hopscope.theory import Path

SMALL = MQAR(pairs=3, alphabet=12, length=16)


@st.composite
def recall_tasks(draw: st.DrawFn) -> MQAR:
    pairs = draw(st.integers(2, 6))
    queries = draw(st.integers(1, pairs))
    return MQAR(
        pairs=pairs,
        queries=queries,
        alphabet=2 * pairs + draw(st.integers(0, 9)),
        length=2 * (pairs + queries) + draw(st.integers(0, 9)),
        power=draw(st.sampled_from([0.01, 0.5, 1.0])),
        filler=draw(st.sampled_from(["random", "blank"])),
    )


@given(recall_tasks(), st.integers(0, 2**31 - 1))
@settings(max_examples=60, deadline=None)
def test_a_slow_reader_finds_every_answer(task: MQAR, seed: int) -> None:
    batch = examples(sampler_of(task), seed, torch.arange(4))
    table = [str(role) for role in task.roles()]
    for row in range(4):
        tokens = batch.inputs[row].tolist()
        roles = [table[number] for number in batch.roles.role[row].tolist()]
        chains = batch.roles.chain[row].tolist()
        context = 2 * task.pairs
        assert roles[:context] == ["key 0", "value 0"] * task.pairs
        assert chains[:context] == [place // 2 for place in range(context)]
        values = dict(zip(tokens[0:context:2], tokens[1:context:2], strict=True))
        assert len(values) == len(set(values.values())) == task.pairs
        assert max(values) < task.alphabet // 2 <= min(values.values())
        asked = [place for place, role in enumerate(roles) if role == "query"]
        assert all(place >= context and place % 2 == 0 for place in asked)
        assert len({tokens[place] for place in asked}) == len(asked) == task.asked
        assert batch.targets[row, :, 0].tolist() == [values[tokens[place]] for place in asked]
        for place in asked:
            assert tokens[2 * chains[place]] == tokens[place]
        for place in range(context, task.length):
            if place not in asked:
                assert (roles[place], chains[place]) == ("other", task.pairs)
                assert tokens[place] not in values
                assert (tokens[place] == task.alphabet) == (task.filler == "blank")


def test_gaps_follow_their_law() -> None:
    for power in (0.01, 0.5, 1.0):
        task = MQAR(pairs=2, queries=1, alphabet=8, length=20, power=power)
        batch = dataset(task, 0, 20_000)
        query = task.roles().index(Role("query"))
        seen = (batch.roles.role == query).float().mean(0)[4::2]
        law = torch.arange(1, 9) ** (power - 1)
        # three standard errors at most
        assert torch.allclose(seen, law / law.sum(), atol=0.012), power


def written(task: MQAR) -> Transformer:
    """Two layers by hand: the token before goes into `before`; a query's token is matched to it.

    The residual stream is four parts: token and position (one-hot), `before`, and the answer.
    """
    tokens, length = task.alphabet, task.length
    token, position, before, answer = 0, tokens, tokens + length, 2 * tokens + length
    config = Model(
        layers=2, heads=1, d_model=3 * tokens + length, d_head=max(tokens, length),
        mlp=False, norm="none",
    )  # fmt: skip
    model = Transformer.seeded(config, task.interface(), 0)
    for parameter in model.parameters():
        parameter.zero_()
    model.input.token[:, token:position] = torch.eye(tokens)
    model.input.position[:, position:before] = torch.eye(length)
    sharp = 60 * config.head_width**0.5
    first, second = (block.attention for block in model.blocks)
    first.query.weight[: length - 1, position + 1 : before] = sharp * torch.eye(length - 1)
    first.key.weight[:length, position:before] = torch.eye(length)
    second.query.weight[:tokens, token:position] = sharp * torch.eye(tokens)
    second.key.weight[:tokens, before:answer] = torch.eye(tokens)
    # The first position has nobody before it and reads itself, so its own token is taken off.
    second.key.weight[:tokens, token:position] = -0.5 * torch.eye(tokens)
    for attention, part in ((first, before), (second, answer)):
        attention.value.weight[:tokens, token:position] = torch.eye(tokens)
        attention.out.weight[part : part + tokens, :tokens] = torch.eye(tokens)
    model.head.weight[:, answer:] = 20 * torch.eye(tokens)
    return model


PREVIOUS_TOKEN = Path(0, 0, Role("value"), Role("key"))
INDUCTION = Path(1, 0, Role("query"), Role("value"))


@torch.no_grad()
def test_its_circuit_is_found() -> None:
    model = written(SMALL)
    batch = dataset(SMALL, 0, 100, "validation")
    assert float(hop_losses(SMALL, model(batch.inputs), batch)) < 1e-6
    circuit = discover(model, SMALL, examples=32)
    assert circuit.paths == (PREVIOUS_TOKEN, INDUCTION)
    assert circuit.components[0].destinations == (Role("value"),)
    assert not circuit.unnamed
    assert circuit.flow.reached == ("x1",)
