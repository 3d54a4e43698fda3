"""Heads that are switched off: what is zero, and how they do beside random ones."""

import pytest
import torch

from hopscope.configs import Prompts
from hopscope.errors import LlmError
from hopscope.llm.local import LocalModel
from hopscope.llm.prompts import Question, questions
from hopscope.llm.silence import Comparison, Effect, compare, effect, output_maps, silenced

EQUATIONS = Prompts(formulation="equations", hops=1)


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return questions(EQUATIONS, 0, 24)


def test_silence_is_zero_behind_the_head_and_ends_with_the_block(
    tiny: LocalModel, asked: list[Question]
) -> None:
    before = effect(tiny, asked, ())
    seen = []
    handle = output_maps(tiny.model)[1].register_forward_hook(lambda m, i, o: seen.append(i[0]))
    with silenced(tiny.model, [(1, 2), (0, 0)]):
        tiny.model(torch.tensor([[2, 3, 4]]))
    handle.remove()
    parts = seen[0].unflatten(-1, (4, -1))
    assert (parts[..., 2, :] == 0).all()
    assert (parts[..., 1, :] != 0).any()
    assert effect(tiny, asked, ()) == before
    assert effect(tiny, asked, [(1, 2), (0, 0)]).accuracy != before.accuracy


def test_found_heads_beside_random_ones(tiny: LocalModel, asked: list[Question]) -> None:
    found = compare(tiny, asked[:6], [(0, 0), (1, 1)], draws=3)
    assert found.clean.heads == ()
    assert len(found.random) == 3
    assert all((0, 0) not in each.heads and len(each.heads) == 2 for each in found.random)
    with pytest.raises(LlmError, match="5 heads were found, too many"):
        compare(tiny, asked[:2], [(0, h) for h in range(4)] + [(1, 0)], draws=1)


def test_a_draw_that_lowers_the_accuracy_as_much_counts() -> None:
    worse, same, better = (Effect((), accuracy, 0.0) for accuracy in (0.3, 0.5, 0.7))
    assert Comparison(better, same, (worse, same, better)).rank == 2
