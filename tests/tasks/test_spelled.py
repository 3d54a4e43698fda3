"""Examples in words are the examples that models are trained on."""

import pytest
import torch

from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Retrieval, Task
from hopscope.tasks import dataset, question_losses, spelled
from hopscope.tasks.spelled import letters

TASKS = [
    Retrieval(hops=2),
    Retrieval(hops=2, chains=3, order="shuffled", curriculum=False),
    ConditionalRetrieval(decoys=1, chains=3),
    ConditionalRetrieval(facts=("a,b->x", "x->y"), chains=2),
    KHop(hops=2, alphabet=4, length=12),
    KHop(hops=2, alphabet=4, length=12, curriculum=False),
    MQAR(pairs=3, queries=2, alphabet=12, length=16, filler="blank"),
    MQAR(pairs=3, alphabet=12, length=16),
]


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_an_example_in_words_is_the_example(task: Task) -> None:
    batch = dataset(task, 5, 4, "validation")
    shown = spelled(task, 5, 3)
    torch.testing.assert_close(shown.inputs, batch.inputs[3])
    torch.testing.assert_close(shown.roles.role, batch.roles.role[3])
    outputs = torch.randn(4, task.interface().read, task.interface().outputs)
    losses = question_losses(task, outputs, batch)[3]
    length = task.interface().length
    mine = [
        [said.loss for said in shown.said(asked, outputs[3, asked.position - length])]
        for asked in shown.asked
    ]
    torch.testing.assert_close(torch.tensor(mine).mean(0), losses)


def test_symbols_are_called_by_chain_and_name() -> None:
    shown = spelled(Retrieval(hops=2, chains=2), 0, 0)
    # Last hop first, then the first hop, then the queries.
    assert sorted(shown.texts[:4]) == ["a1", "a2", "b1", "b2"]
    assert sorted(shown.texts[8:]) == ["a0", "b0"]
    for asked in shown.asked:
        chain = shown.texts[asked.position][0]
        assert [shown.candidates[n] for n in asked.truth] == [f"{chain}1", f"{chain}2"]


def test_what_the_model_says_is_the_nearest_or_likeliest() -> None:
    shown = spelled(Retrieval(hops=1, chains=2), 0, 0)
    asked = shown.asked[0]
    assert shown.vectors is not None
    other = (asked.truth[0] + 2) % 4
    said = shown.said(asked, shown.vectors[other])[0]
    assert (said.answer, said.distance, said.probability) == (other, 0.0, None)
    assert said.loss > 0.1
    tokens = spelled(KHop(hops=1, alphabet=3, length=6), 0, 0)
    logits = torch.tensor([0.0, 5.0, 0.0, 0.0])
    likeliest = tokens.said(tokens.asked[0], logits)[0]
    assert (likeliest.answer, likeliest.distance) == (1, None)
    assert likeliest.probability == pytest.approx(float(logits.softmax(-1)[1]))


def test_letters_go_on_after_z() -> None:
    assert [letters(number) for number in (0, 25, 26, 27, 701)] == ["a", "z", "ba", "bb", "baz"]
