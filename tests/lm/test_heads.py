"""Heads that look things up: found in a model made to have one, and switched off."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
import torch
from slow import hooked

from hopscope.circuits import progress
from hopscope.circuits.progress import watched
from hopscope.cli.lm_text import effect_text, heads_piece
from hopscope.configs import Prompts
from hopscope.errors import LmError
from hopscope.facts import Role, parse_facts, parse_role
from hopscope.lm.heads import (
    HeadScores,
    RoleRoute,
    head_scores,
    printed_backwards,
    routes,
    switch_off,
    thresholds,
)
from hopscope.lm.model import LanguageModel
from hopscope.lm.pairs import Paired, role_table, unpaired
from hopscope.lm.patching import decoder
from hopscope.lm.prompts import questions
from hopscope.lm.results import best_heads

Make = Callable[..., LanguageModel]
EQUATIONS = Prompts(formulation="equations", hops=1)


def same_token_head(local: LanguageModel, layer: int = 0, head: int = 1) -> LanguageModel:
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


def places(each: Paired, name: str, chain: int = 0) -> list[int]:
    """The positions of a role in a chain."""
    number = role_table(EQUATIONS).index(parse_role(name))
    both = zip(each.roles, each.chains, strict=True)
    return [n for n, place in enumerate(both) if place == (number, chain)]


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
        assert printed_backwards(questions(Prompts(formulation=name), 0, 1)[0]) == told


def test_a_planted_head_is_found_and_others_are_not(make_tiny: Make) -> None:
    scores = head_scores(same_token_head(make_tiny("raw", 3)), EQUATIONS, 48)
    number = [str(route) for route in scores.routes].index("key 0 → query")
    assert scores.score[number].argmax() == np.ravel_multi_index((0, 1), scores.score[0].shape)
    assert scores.significant[number, 0, 1]
    assert scores.best(1) == [(0, 1)]
    assert scores.as_retrieval_heads()["0-1"][0] == pytest.approx(
        scores.score[1:, 0, 1].max(), abs=1e-5
    )


def test_the_terminal_shows_the_heads_that_the_page_shows() -> None:
    """Of heads that differ only after the sixth digit it is the first, and none is beyond."""
    own, zero = np.array([[[0.5, 0.5 + 1e-8]]]), np.zeros((1, 1, 2))
    route = RoleRoute(Role("query", 0), Role("key", 0), "look-up")
    scores = HeadScores(
        *("x", "y", (route,), own, zero, np.array([0.5]), zero, zero), questions=4, correct=2
    )
    assert "nothing to switch off" in effect_text(None)
    (best,) = best_heads(scores.as_data())
    assert (best["head"], best["beyond"]) == (0, 0)
    (row,) = heads_piece(scores).rows
    assert list(row[2:7]) == ["0.0", "0.500", "0.000", "0.500", "0"], row


@torch.no_grad()
def test_attention_is_the_model_s_own(make_tiny: Make) -> None:
    """In the chain asked about and in the others, over right answers and over wrong ones."""
    local, count = make_tiny("raw", 3), 24
    scores = head_scores(local, EQUATIONS, count)
    number = [str(route) for route in scores.routes].index("value 0 → answer")
    own, others, right = [], [], []
    for each in unpaired(local, EQUATIONS, 0, 0, count):
        out = local.model(torch.tensor([each.tokens]), output_attentions=True)
        whole = torch.stack([layer[0, :, -1] for layer in out.attentions])
        first, *rest = (whole[..., places(each, "value 0", n)].sum(-1) for n in range(4))
        own.append(first.numpy())
        others.append(np.mean([chain.numpy() for chain in rest], 0))
        logits = out.logits[0, -1, list(each.acceptable)]
        right.append(each.acceptable[int(logits.argmax())] == each.answer)
    assert scores.correct == sum(right)
    assert 0 < scores.correct < count
    score, correct = np.array(own) - np.array(others), np.array(right)
    np.testing.assert_allclose(scores.own[number], np.mean(own, 0), atol=1e-5)
    np.testing.assert_allclose(scores.others[number], np.mean(others, 0), atol=1e-5)
    difference = score[correct].mean(0) - score[~correct].mean(0)
    np.testing.assert_allclose(scores.right[number], difference, atol=1e-5)


def test_chance_is_kept_over_all_routes_together() -> None:
    """Some route passes in one table of twenty, whatever the routes' scales; each equally often."""
    random, scales = np.random.default_rng(0), np.geomspace(0.001, 1, 15)
    scales = np.append(scales, 0)  # nothing attends along this route
    passed = np.concatenate([
        random.standard_normal((100, 16)) * scales
        > thresholds(random.standard_normal((500, 16)) * scales)
        for _ in range(20)
    ])  # fmt: skip
    assert 0.03 < passed.any(1).mean() < 0.07
    assert passed.sum(0)[:-1].min() > 0
    assert passed.sum(0)[:-1].max() < 25


def test_models_that_see_only_positions_have_no_head_beyond_chance(make_tiny: Make) -> None:
    found = []
    for seed in range(10):
        local = make_tiny("raw", seed + 10)
        weights = local.model.model.embed_tokens.weight.data
        weights.copy_(weights[0].expand_as(weights).clone())
        scores = head_scores(local, EQUATIONS, 24, seed)
        found.append(bool(scores.best(1)))
    assert sum(found) <= 1


def test_heads_switched_off_bring_nothing(make_tiny: Make) -> None:
    """As hooks say it; random heads are others of the same layers."""
    local, heads = make_tiny("raw", 3), [(0, 1), (1, 2), (1, 3)]
    found = switch_off(local, EQUATIONS, heads, 5, 6)

    def silence(layer: int, x: torch.Tensor) -> torch.Tensor:
        parts = x.unflatten(-1, (4, -1)).clone()
        parts[..., [h for at, h in heads if at == layer], :] = 0
        return parts.flatten(-2)

    def accuracy() -> float:
        shares = []
        for each in unpaired(local, EQUATIONS, 0, 5, 6):
            with torch.no_grad():
                logits = local.model(torch.tensor([each.tokens])).logits[0, -1]
            acceptable = each.acceptable
            chances = logits[list(acceptable)].softmax(-1)
            shares.append(float(chances[acceptable.index(each.answer)]))
        return float(np.mean(shares))

    assert found.model.mean == pytest.approx(accuracy(), abs=1e-5)
    with ExitStack() as silent:
        for n, layer in enumerate(local.model.model.layers):
            silent.enter_context(hooked(layer.self_attn.o_proj, partial(silence, n)))
        assert found.without.mean == pytest.approx(accuracy(), abs=1e-5)
    assert found.more.mean == pytest.approx(found.random.mean - found.without.mean, abs=1e-6)
    assert found.random.mean not in (found.model.mean, found.without.mean)
    for share in (found.model, found.without, found.random):  # of six questions, and of no others
        assert 0 <= share.low < share.mean < share.high <= 1
    every = [(layer, head) for layer in range(local.model.config.num_hidden_layers)
             for head in range(4)]  # fmt: skip
    alone = switch_off(local, EQUATIONS, every[1:], 5, 2)
    assert alone.random is alone.more is None
    assert switch_off(local, EQUATIONS, heads, 5, 6, seed=1).model != found.model


def test_long_readings_tell_how_much_is_done(
    make_tiny: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0)
    local, said = make_tiny("raw", 3), list[str]()
    with watched(said.append):
        head_scores(local, EQUATIONS, 4)
    assert said[-1] == "questions read: 4 of 4, about 0 s left"
    with watched(said.append):
        switch_off(local, EQUATIONS, [(0, 1)], 4, 3)
    assert said[-3].startswith("questions without heads: 1 of 3, about ")


def test_a_model_whose_heads_cannot_be_patched_is_refused(tiny: LanguageModel) -> None:
    """The error gives no advice that only works in Python."""
    from transformers import GPTNeoConfig, GPTNeoForCausalLM

    config = GPTNeoConfig(
        vocab_size=16, hidden_size=8, num_layers=1, num_heads=1, attention_types=[[["global"], 1]],
        bos_token_id=None, eos_token_id=0,
    )  # fmt: skip
    its = LanguageModel(GPTNeoForCausalLM(config), tiny.tokenizer, "neo", "raw", 4)
    with pytest.raises(LmError, match="^GPTNeoForCausalLM does not use .*: take a model") as raised:
        decoder(its)
    assert "CallbackModel" not in str(raised.value)
