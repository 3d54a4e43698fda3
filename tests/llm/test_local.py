"""All answers in one pass are each answer alone, and what sampling comes to in the limit."""

from collections import Counter
from collections.abc import Callable

import pytest
import torch

from hopscope.errors import LlmError
from hopscope.llm.answers import answered, forms
from hopscope.llm.backend import raw_text
from hopscope.llm.local import LocalModel

PROMPTS = ["a = 1 b = a b = ?", "c = 2 d", "e = 3 f = e g = f h = g h ?"]
ANSWERS = [["0", "1", "2"], ["New York", "Berlin"], ["0", "New", "New York", "3"]]


@torch.no_grad()
def alone(local: LocalModel, text: str, answer: str) -> float:
    """The probability of an answer, spelling by spelling, token by token, without any cache."""
    total = 0.0
    for form in forms(answer, text):
        tokens = local.tokenizer.encode(form, add_special_tokens=False)
        sequence, chance = list(local.tokens(text)), 1.0
        for token in tokens:
            logits = local.model(torch.tensor([sequence])).logits[0, -1]
            chance *= float(torch.softmax(logits, -1)[token])
            sequence = [*sequence, token]
        logits = local.model(torch.tensor([sequence])).logits[0, -1]
        total += chance * float(torch.softmax(logits, -1)[local.stops].sum())
    return total


def test_all_answers_in_one_pass_are_each_alone(
    tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for prompts in (PROMPTS, [f"a = 1 b = a c = b {end}" for end in ("a = ?", "b = ? c", "?")]):
        expected = [
            pytest.approx([alone(tiny, tiny.text(prompt), answer) for answer in answers], rel=1e-4)
            for prompt, answers in zip(prompts, ANSWERS, strict=True)
        ]
        found = tiny.probabilities(prompts, ANSWERS)
        assert found == expected
        assert all(0 < sum(values) < 1 for values in found)
        with monkeypatch.context() as small:
            small.setattr("hopscope.llm.local.BATCH_TOKENS", 1)
            assert tiny.probabilities(prompts, ANSWERS) == expected


def test_an_opening_is_part_of_the_prompt(tiny: LocalModel) -> None:
    opened = tiny.probabilities(PROMPTS, ANSWERS, ["b is", "e", "3 ,"])
    longer = [raw_text(*each) for each in zip(PROMPTS, ["b is", "e", "3 ,"], strict=True)]
    for text, answers, values in zip(longer, ANSWERS, opened, strict=True):
        assert values == pytest.approx([alone(tiny, text, each) for each in answers], rel=1e-4)
    assert opened != tiny.probabilities(PROMPTS, ANSWERS)
    said = tiny.complete(PROMPTS, 0.0, [0] * 3, ["b is", "e", "3 ,"])
    assert said != tiny.complete(PROMPTS, 0.0, [0] * 3)


def test_answers_come_alone_as_they_come_together(tiny: LocalModel) -> None:
    for temperature in (0.0, 1.0):
        together = tiny.complete(PROMPTS * 4, temperature, range(12))
        alone_ = [tiny.complete([p], temperature, [s])[0] for s, p in enumerate(PROMPTS * 4)]
        assert together == alone_
        assert (len({*together[::3]}) > 1) == bool(temperature)


def test_sampling_comes_to_the_exact_probabilities(tiny: LocalModel) -> None:
    """The paper's protocol, many times: shares of accepted answers."""
    acceptable = ["0", "1", "Berlin"]
    (exact,) = tiny.probabilities(PROMPTS[:1], [acceptable])
    tries = 3_000
    said = tiny.complete(PROMPTS[:1] * tries, 1.0, range(tries))
    # The rules accept "= 0 ?" as well, which is no spelling that is scored; so tidy texts alone.
    tally = Counter(answered(text, acceptable) for text in said if text.strip(" .").isalnum())
    for answer, chance in zip(acceptable, exact, strict=True):
        spread = (chance * (1 - chance) / tries) ** 0.5
        assert abs(tally[answer] / tries - chance) < 4 * spread + 1e-3


def test_greedy_takes_the_likeliest_token(tiny: LocalModel) -> None:
    (text,) = tiny.complete(PROMPTS[:1], 0.0, [0])
    sequence, words = list(tiny.tokens(tiny.text(PROMPTS[0]))), []
    for _ in range(tiny.max_tokens):
        token = int(tiny.model(torch.tensor([sequence])).logits[0, -1].argmax())
        if token in tiny.stops:
            break
        words.append(token)
        sequence.append(token)
    assert text == tiny.tokenizer.decode(words)


def test_what_cannot_be_asked_is_said(make_tiny: Callable[[str], LocalModel]) -> None:
    with pytest.raises(LlmError, match="tiny has no chat template: use --template raw"):
        make_tiny("chat")
    with pytest.raises(LlmError, match="of 73 tokens and 4 for the answer do not fit .* of 64"):
        make_tiny("raw").complete(["a " * 70], 0.0, [0])
