"""Examples in words are the examples that models are trained on."""

import pytest
import torch

from hopscope.configs import MQAR, ConditionalRetrieval, KHop, Retrieval, Task
from hopscope.errors import ConfigError
from hopscope.tasks import dataset, question_losses, rendered

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
    shown = rendered(task, 5, 3)
    torch.testing.assert_close(shown.inputs, batch.inputs[3])
    torch.testing.assert_close(shown.roles.role, batch.roles.role[3])
    outputs = torch.randn(4, task.interface().read, task.interface().outputs)
    losses = question_losses(task, outputs, batch)[3]
    length = task.interface().length
    mine = [
        [said.loss for said in shown.predictions(asked, outputs[3, asked.position - length])]
        for asked in shown.questions
    ]
    torch.testing.assert_close(torch.tensor(mine).mean(0), losses)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_what_is_typed_as_it_was_drawn_is_the_example(task: Task) -> None:
    shown, reordered = rendered(task, 5, 3), rendered(task, 5, 3, order=8)
    assert reordered.texts != shown.texts
    assert sorted(reordered.texts) == sorted(shown.texts)
    for given, order in ((shown, None), (reordered, 8)):
        again = rendered(task, 5, 3, words=given.texts, order=order)
        torch.testing.assert_close(again.inputs, given.inputs)
        torch.testing.assert_close(again.roles.role, given.roles.role)
        assert again.questions == given.questions
        roles = given.roles
        own = [not task.roles()[role].kind.startswith("decoy") for role in roles.role.tolist()]
        torch.testing.assert_close(again.roles.chain[own], roles.chain[own])


def test_a_typed_fact_changes_what_is_true() -> None:
    task = Retrieval(hops=2, chains=2)
    shown = rendered(task, 0, 0)
    texts = list(shown.texts)
    here = texts.index("a1", 4)  # the value of a0 now is b1
    texts[here] = "b1"
    found = rendered(task, 0, 0, words=texts)
    truth = {
        shown.texts[asked.position]: [found.candidates[n] for n in asked.truth if n is not None]
        for asked in found.questions
    }
    assert truth == {"a0": ["b1", "b2"], "b0": ["b1", "b2"]}
    number = found.candidates.index("b1")
    torch.testing.assert_close(found.inputs[here, :4], shown.vectors[number])
    texts[here] = "b2"  # and from b2 nothing leads on
    lost = rendered(task, 0, 0, words=texts)
    asked = next(each for each in lost.questions if shown.texts[each.position] == "a0")
    assert asked.truth == (lost.candidates.index("b2"), None)
    said = lost.predictions(asked, torch.zeros(8))
    assert (said[0].loss is None, said[1].loss) == (False, None)
    twice = ["a1" if text == "b1" else text for text in shown.texts]  # two facts have the key a1
    asked = next(each for each in rendered(task, 0, 0, words=twice).questions if each.chain == 0)
    assert asked.truth == (shown.candidates.index("a1"), None)


K = KHop(hops=2, alphabet=3, length=6)
PAIRS = MQAR(pairs=2, alphabet=8, length=8, filler="blank")


@pytest.mark.parametrize(
    ("task", "words", "expected"),
    [
        (K, "c a b a c a", [(5, 0, ["c", "a"])]),
        (K, "b b b b b a", [(5, 0, ["none", "none"])]),
        (PAIRS, "k0 v1 k2 v3 · k2 k1 k0", [(5, 1, ["v3"]), (7, 0, ["v1"])]),
        (PAIRS, "k0 v1 k0 v3 · · · k0", [(7, 0, [None])]),
    ],
)
def test_typed_tokens_are_followed_by_the_rule_of_the_task(
    task: Task, words: str, expected: list[object]
) -> None:
    found = rendered(task, 0, 0, words=words.split())
    names = dict(enumerate(found.candidates))
    questions = [
        (asked.position, asked.chain, [names.get(number) for number in asked.truth])  # type: ignore[arg-type]
        for asked in found.questions
    ]
    assert questions == expected


def test_a_symbol_that_the_task_does_not_have_is_refused() -> None:
    letters = KHop(alphabet=3, length=4)
    for task, words, text in (
        (letters, "abcz", "there is no symbol 'z' here; the symbols are a, b, c"),
        (letters, ("a", "b", "c", "none"), "there is no symbol 'none' here"),
        (letters, "abc", "the sequence has 3 symbols; expected 4"),
        (Retrieval(chains=2), ("c1",), "there is no symbol 'c1' here; the symbols are a0, a1"),
    ):
        with pytest.raises(ConfigError, match=text):
            rendered(task, 0, 0, words=tuple(words))


def test_what_the_model_says_is_the_nearest_or_likeliest() -> None:
    shown = rendered(Retrieval(hops=1, chains=2), 0, 0)
    asked = shown.questions[0]
    other = (asked.truth[0] + 2) % 4
    said = shown.predictions(asked, shown.vectors[other])[0]
    assert (said.answer, said.distance, said.probability) == (other, 0.0, None)
    assert said.loss > 0.1
    tokens = rendered(KHop(hops=1, alphabet=3, length=6), 0, 0)
    logits = torch.tensor([0.0, 5.0, 0.0, 0.0])
    likeliest = tokens.predictions(tokens.questions[0], logits)[0]
    assert (likeliest.answer, likeliest.distance) == (1, None)
    assert likeliest.probability == pytest.approx(float(logits.softmax(-1)[1]))
