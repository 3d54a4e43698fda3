"""Heads that look things up: found in a model made to have one, and switched off."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from hopscope.configs import Prompts
from hopscope.errors import LlmError
from hopscope.facts import Role, parse_facts
from hopscope.llm.heads import head_scores, located, routes, told_backwards
from hopscope.llm.local import LocalModel
from hopscope.llm.prompts import Question, questions
from hopscope.llm.silence import Comparison, Effect, compare, effect, output_maps, silenced

Make = Callable[..., LocalModel]
Asked = list[Question]
EQUATIONS = Prompts(formulation="equations", hops=1)


@pytest.fixture(scope="module")
def asked() -> list[Question]:
    return questions(EQUATIONS, 0, 24)


def same_token_head(local: LocalModel, layer: int = 0, head: int = 1) -> LocalModel:
    """Make one head attend to where its own token stands: queries and keys are the embedding."""
    model = local.model.model
    weights = model.embed_tokens.weight.data
    torch.manual_seed(0)
    weights.copy_(
        torch.linalg.qr(torch.randn(weights.shape[1], weights.shape[1]))[0][: len(weights)]
    )
    attention, size = model.layers[layer].self_attn, local.model.config.head_dim
    shared = head // (
        local.model.config.num_attention_heads // local.model.config.num_key_value_heads
    )
    maps = 3 * torch.randn(size, weights.shape[1])
    maps[[0, size // 2]] = 0  # the one frequency that turns within a prompt
    attention.q_proj.weight.data[head * size : (head + 1) * size] = maps
    attention.k_proj.weight.data[shared * size : (shared + 1) * size] = maps
    return local


def test_routes_follow_the_graph_in_the_order_of_telling() -> None:
    found = [str(route) for route in routes(parse_facts(["a->x", "a->y", "x,y->z"]))]
    assert {*found} >= {
        "key 0 → query", "value 1 → query", "value 2 → query", "key 2 → value 0",
        "key 2.1 → value 1", "value 2 → value 1", "key 2.1 → value 2",
    }  # fmt: skip
    assert found[-2:] == ["key 2 → answer", "value 2 → answer"]
    assert len(set(found)) == len(found)
    assert "value 1 → key 1" not in found
    assert "value 1 → key 1" in map(str, routes(parse_facts(["a->x", "x->y"]), {1}))
    for name, told in {"equations": set(), "kingdoms": {0, 1, 2, 3, 4}, "relatives": set()}.items():
        assert told_backwards(questions(Prompts(formulation=name), 0, 1)[0]) == told


def test_spans_are_found_among_the_tokens(tiny: LocalModel, asked: Asked) -> None:
    for question in asked:
        tokens, places = located(tiny, question)
        assert places[-1, Role("answer")] == [len(tokens) - 1]
        for span in question.spans:
            words = tiny.tokenizer.decode([tokens[n] for n in places[span.chain, span.role]])
            assert question.prompt[span.start : span.end] in words


def test_a_planted_head_is_found_and_others_are_not(make_tiny: Make, asked: Asked) -> None:
    local = same_token_head(make_tiny("raw", 3))
    scores = head_scores(local, EQUATIONS.graph(), EQUATIONS.label, asked)
    number = [str(route) for route in scores.routes].index("key 0 → query")
    assert scores.score[number].argmax() == np.ravel_multi_index((0, 1), scores.score[0].shape)
    assert scores.significant[number, 0, 1]
    assert scores.best(1) == [(0, 1)]
    assert scores.as_retrieval_heads()["0-1"][0] == pytest.approx(
        scores.score[1:, 0, 1].max(), abs=1e-5
    )


def test_right_and_wrong_are_compared_where_there_are_both(make_tiny: Make, asked: Asked) -> None:
    scores = head_scores(make_tiny("raw", 3), EQUATIONS.graph(), EQUATIONS.label, asked)
    assert 0 < scores.correct < scores.questions
    assert np.isfinite(scores.right).all()
    alike = [replace(each, acceptable=(each.correct,)) for each in asked]
    alone = head_scores(make_tiny("raw", 3), EQUATIONS.graph(), EQUATIONS.label, alike)
    assert alone.correct == alone.questions
    assert np.isnan(alone.right).all()
    assert "right" not in alone.as_data()


def test_chance_is_kept_in_its_place(make_tiny: Make, asked: Asked) -> None:
    """Random models pass the threshold of a route about once in twenty."""
    passed = []
    for seed in range(10):
        scores = head_scores(make_tiny("raw", seed + 10), EQUATIONS.graph(), "chance", asked)
        answers = [n for n, route in enumerate(scores.routes) if route.purpose == "answer"]
        passed += [bool(scores.significant[n].any()) for n in answers]
    assert sum(passed) <= 3


def test_models_that_show_no_attention_are_refused(make_tiny: Make, asked: Asked) -> None:
    local = make_tiny("raw")
    local.model.set_attn_implementation("sdpa")
    with pytest.raises(LlmError, match="eager"):
        head_scores(local, EQUATIONS.graph(), "sdpa", asked[:2])


def test_silence_is_zero_behind_the_head_and_ends_with_the_block(
    tiny: LocalModel, asked: Asked
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


def test_found_heads_beside_random_ones(tiny: LocalModel, asked: Asked) -> None:
    found = compare(tiny, asked[:6], [(0, 0), (1, 1)], draws=3)
    assert found.clean.heads == ()
    assert len(found.random) == 3
    assert all((0, 0) not in each.heads and len(each.heads) == 2 for each in found.random)
    with pytest.raises(LlmError, match="5 heads were found, too many"):
        compare(tiny, asked[:2], [(0, h) for h in range(4)] + [(1, 0)], draws=1)
    # A draw that lowers the accuracy as much counts.
    worse, same, better = (Effect((), accuracy, 0.0) for accuracy in (0.3, 0.5, 0.7))
    assert Comparison(better, same, (worse, same, better)).rank == 2
