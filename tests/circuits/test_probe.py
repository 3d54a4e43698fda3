"""Symbols read off the residual stream, against least squares and discriminants written out; and of
planted models, against what theory says.
"""

import json
import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import CallbackModel, Drawn, Exam, OwnTask, adapter_of, exam_of
from hopscope.circuits.export import transformer_lens_config, transformer_lens_weights
from hopscope.configs import MQAR, KHop, Model, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.tasks import symbols
from hopscope.theory import flow
from hopscope.tracing import Contents

EXAMPLES = 400
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of each position of a role: what stands there, its chain's symbol, and its example."""


def rows_of(
    model: Transformer, task: Any, drawn: tuple[int, int], place: tuple[int, int | None], role: Role
) -> Rows:
    """Example by example, with all symbols of the own chain: of a stream, or of what a head adds,
    in coordinates in which distances are the same.
    """
    (count, seed), (layer, head) = drawn, place
    exam, known = exam_of(task, count, seed), symbols(task, seed, count, "validation")
    xs, ys, examples = [], [], []
    for example in range(count):
        with torch.no_grad():
            x = model.enter(exam.inputs[example : example + 1])
            for number in range(layer):
                x = model.layer(number, x)
            last = layer == model.config.layers
            block: Any = None if last else model.blocks[layer]
            if head is None:
                seen = (model.norm if last else block.attention_norm)(x)[0]
            else:
                carried = block.pattern(x, exam.length, range(model.config.heads)) @ block.values(x)
                out = block.attention.out.weight.unflatten(1, (model.config.heads, -1))
                seen = carried[0, head] @ torch.linalg.qr(out[:, head]).R.T
        for here in range(exam.length):
            chain = int(exam.roles.chain[example, here])
            its = exam.table[int(exam.roles.role[example, here])]
            if its == role and chain < known.shape[1]:
                xs.append(seen[here])
                ys.append(known[example, chain])
                examples.append(example)
    return torch.stack(xs).double().numpy(), torch.stack(ys).numpy(), np.array(examples)


def least_squares(x: np.ndarray, y: np.ndarray) -> Any:
    """Ridge regression with the penalty that leaving one row out likes best."""
    mean, middle, count = x.mean(0), y.mean(0), len(x)
    centred = x - mean
    gram = centred.T @ centred
    best, score = gram, np.inf
    for penalty in np.linalg.eigvalsh(gram).mean() * 10.0 ** np.arange(-7, 3):
        inverse = np.linalg.inv(gram + penalty * np.eye(len(gram)))
        left = np.eye(count) - centred @ inverse @ centred.T - 1 / count
        its = np.square(left @ y).sum() / np.trace(left) ** 2
        if its < score:
            best, score = inverse @ centred.T @ (y - middle), its
    return lambda rows: (rows - mean) @ best + middle


def test_every_cell_is_least_squares_of_its_symbol_alone(random_model: Transformer) -> None:
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    found = contents(random_model, task, 60)
    query, value = Role("query"), Role("value", 1)
    for *place, role in ((0, None, query), (2, None, query), (2, None, value), (1, 1, query)):
        x, y, _ = rows_of(random_model, task, (60, 1), place, role)
        rows, wanted, example = rows_of(random_model, task, (30, 0), place, role)
        layer, head = place
        held = found.stream if head is None else found.heads
        cell = (*([layer] if head is None else place), found.roles.index(role))
        for number, symbol in enumerate(found.symbols):
            said = least_squares(x, y[:, number])(rows)
            error = np.square(said - wanted[:, number]).sum(-1)
            whole = np.square(wanted[:, number] - y[:, number].mean(0)).sum(-1)
            assert held.own[*cell, number] == pytest.approx(
                1 - error.sum() / whole.sum(), abs=2e-3
            ), (place, symbol)
            # As a bootstrap over examples says.
            each = np.stack([np.bincount(example, its, 30) for its in (error, whole)])
            drawn = each[:, np.random.default_rng(0).integers(0, 30, (2000, 30))].sum(-1)
            spread = 1.96 * (drawn[0] / drawn[1]).std()
            assert held.half[*cell, number] == pytest.approx(spread, rel=0.25, abs=1e-3), (
                place,
                symbol,
            )


def test_tokens_are_told_by_discriminants() -> None:
    """Fisher's, written out: one covariance within classes, all of which are equally likely."""
    task = MQAR(pairs=3, alphabet=12, length=16, queries=2)
    model = Transformer.seeded(Model(layers=1, heads=2, d_model=24), task.interface(), 0)
    found = contents(model, task, 200)
    assert found.measure == "accuracy"
    assert found.guesses
    for layer in (0, 1):
        x, y, _ = rows_of(model, task, (200, 1), (layer, None), Role("query"))
        rows, wanted, _ = rows_of(model, task, (100, 0), (layer, None), Role("query"))
        for number, symbol in enumerate(found.symbols):
            right, known = y[:, number], np.unique(y[:, number])
            means = np.stack([x[right == c].mean(0) for c in known])
            parts = [(x[right == c] - means[n]) for n, c in enumerate(known)]
            inverse = np.linalg.pinv(sum(part.T @ part for part in parts) / len(x), rcond=1e-6)
            half = 0.5 * np.einsum("ci,ij,cj->c", means, inverse, means)
            said = known[(rows @ inverse @ means.T - half).argmax(-1)]
            there = wanted[:, number]
            hits = np.mean([(said == there)[there == c].mean() for c in np.unique(there)])
            share = (hits - 1 / len(known)) / (1 - 1 / len(known))
            assert found.share("query", symbol, layer) == pytest.approx(share, abs=0.03), symbol
    assert found.share("query", "x0", 0) > 0.95
    assert abs(found.share("query", "x1", 0)) < 0.15
    assert found.stream.log_loss[0, found.roles.index(Role("query")), 0] < 0.3
    assert np.isnan(found.stream.own[:, found.roles.index(Role("other"))]).all()
    assert Contents.from_dict(found.to_dict()).to_dict() == found.to_dict()
    khop = KHop(hops=2, length=12, alphabet=4)
    told = contents(Transformer.seeded(model.config, khop.interface(), 0), khop, 200)
    assert told.share("query", "x0", 0) > 0.95
    assert np.isnan(told.stream.other).all()


def whole(model: Transformer, streams: bool) -> CallbackModel:
    def forward(inputs: Tensor, attention: Any) -> Tensor:
        return model(inputs, attention=attention, read=inputs.shape[1])[:, -model.interface.read :]

    def handed(inputs: Tensor) -> list[Tensor]:
        kept = [model.enter(inputs)]
        for layer in range(model.config.layers):
            kept.append(model.layer(layer, kept[-1]))
        return kept

    shape = (model.config.layers, model.config.heads)
    return CallbackModel(
        forward, model, shape, model.interface.read, streams=handed if streams else None
    )


def test_a_module_that_hands_its_streams_out_is_read_as_well(two_hops: Planted) -> None:
    task, model = two_hops.task, two_hops.model
    expected = contents(model, task, EXAMPLES)
    found = contents(whole(model, streams=True), task, EXAMPLES)
    for layer in range(found.layers + 1):
        for role in found.roles:
            assert found.held(role, layer) == expected.held(role, layer), (layer, role)
    assert found.heads is None
    with pytest.raises(CircuitError, match="what heads add alone is not known of this model"):
        found.written((0, 0), Role("query"))
    with pytest.raises(
        CircuitError, match="is not handed out: give CallbackModel a function `streams`"
    ):
        contents(whole(model, streams=False), task, EXAMPLES)


def test_transformer_lens_models_hold_what_ours_hold() -> None:
    task = KHop(hops=1, length=9, alphabet=4)
    model = Transformer.seeded(Model(layers=2, heads=2, d_model=8), task.interface(), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformer_lens")
        from transformer_lens.config import TransformerBridgeConfig
        from transformer_lens.model_bridge.sources.native import boot

    config = transformer_lens_config(model)
    bridge: Any = boot(TransformerBridgeConfig(**config, architecture="TransformerLensNative"))
    bridge.load_state_dict(transformer_lens_weights(model))
    ours, theirs = (contents(each, task, 200, heads=False) for each in (model, bridge))
    assert theirs.loss == pytest.approx(ours.loss, abs=1e-4)
    assert np.allclose(ours.stream.own, theirs.stream.own, atol=0.02, equal_nan=True)
    assert np.nanmax(ours.stream.own) > 0.9


def test_an_exam_of_ones_own_says_what_its_symbols_are(two_hops: Planted) -> None:
    """The last of them is always the same, and of what never varies nothing is told."""
    task = two_hops.task

    def bare(examples: int, seed: int) -> Exam:
        return exam_of(task, examples, seed)

    def told(examples: int, seed: int) -> Exam:
        known = symbols(task, seed, examples, "validation").clone()
        known[:, :, 2] = 0.5
        return replace(exam_of(task, examples, seed), symbols=known, names=("a", "b", "c"))

    found = contents(two_hops.model, told, EXAMPLES)
    expected = contents(two_hops.model, task, EXAMPLES)
    assert found.symbols == ("a", "b", "c")
    assert np.allclose(found.stream.own[..., :2], expected.stream.own[..., :2])
    assert not found.stream.own[..., 2].any()
    assert not found.stream.half[..., 2].any()
    assert found.task is None
    assert Contents.from_dict(found.to_dict()).task is None
    with pytest.raises(CircuitError, match="do not say what their symbols are: make the exam with"):
        contents(two_hops.model, bare, EXAMPLES)


def test_tokens_that_relations_lead_to_are_read() -> None:
    """A module that puts the letter before beside each letter in its only layer."""

    def letters(count: int, seed: int) -> Drawn:
        tokens = torch.randint(3, (count, 3), generator=torch.Generator().manual_seed(seed))
        before = torch.tensor([-1, 0, 1]).expand(count, -1)
        return Drawn(tokens, tokens[:, -1:], roles=["letter"] * 3, relations={"before": before})

    def handed(tokens: Tensor) -> list[Tensor]:
        own = torch.nn.functional.one_hot(tokens, 4).float()
        before = torch.cat((torch.zeros_like(own[:, :1]), own[:, :-1]), 1)
        return [torch.cat((own, 0 * own), -1), torch.cat((own, before), -1)]

    def forward(tokens: Tensor, attention: Any) -> Tensor:
        attention(0, torch.eye(3).expand(len(tokens), 1, 3, 3))
        return 9.0 * torch.nn.functional.one_hot(tokens, 3).float()

    module = CallbackModel(forward, nn.Linear(1, 1), (1, 1), 1, streams=handed)
    found = contents(module, OwnTask(letters, roles=["letter"], guess=1.1), 200)
    assert found.symbols == ("itself", "before", "before ×2")
    shares = [[found.share("letter", name, layer) for name in found.symbols] for layer in (0, 1)]
    assert shares[0][0] == shares[1][0] == shares[1][1] == 1.0
    assert shares[0][1] < 0.2
    assert shares[1][2] < 0.5  # that it leads nowhere can be told, and no more


def test_of_a_single_chain_no_model_only_guesses() -> None:
    task = Retrieval(hops=1, chains=1)
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=8), task.interface(), 0)
    found = contents(model, task, 40)
    assert found.guess == 0 < found.loss
    assert not found.guesses


def test_what_cannot_be_read_is_said_in_a_line(two_hops: Planted) -> None:
    model, task = two_hops.model, two_hops.task
    found = contents(model, task, 40)
    assert not found.guesses
    assert (found.first("query", "x2"), found.first("query", "x0")) == (3, 0)
    broken = Transformer(model.config, model.interface)
    for parameter in broken.parameters():
        nn.init.constant_(parameter, float("nan"))
    few = r"cannot be read off 4 positions: key 0 stands.* in 2 examples; take at least 36 examples"
    for ask, line in (
        (lambda: contents(model, task, 2), few),
        (lambda: contents(model, task, 1), "examples is 1; maps are fitted on at least 2"),
        (lambda: contents(broken, task, 40), "after layer 0 is not a finite number everywhere"),
        (lambda: found.first("key 1", "x2"), "key 1 never holds x2: 0.* of it at most, where more"),
        (lambda: found.share("query", "x9", 0), "no symbol 'x9' here; the symbols are x0, x1, x2"),
        (lambda: found.share("key 7", "x1", 0), "no role 'key 7' here; the roles are key 0"),
        (lambda: found.share("query", "x1", 9), "layer is 9; expected 0 .* … 3"),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()


def one_hot(hops: int, chains: int = 2) -> Retrieval:
    count = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, symbols="one-hot", dim=max(4, count + count % 2))


@pytest.mark.slow
def test_every_cell_of_a_planted_chain_holds_what_theory_says() -> None:
    for hops in range(1, 8):
        grown = planted(one_hot(hops))
        found = contents(grown.model, grown.task, EXAMPLES, heads=False)
        theory = flow(grown.task.graph(), heads=1)
        assert theory.layers == found.layers
        for layer, role in product(range(found.layers + 1), found.roles):
            expected = theory.holdings[layer][theory.roles.index(role)] & {*found.symbols}
            assert found.held(role, layer) == expected, (hops, layer, role)
            for symbol in found.symbols:
                share = found.share(role, symbol, layer)
                # A row that finds nothing reads one chain's symbol: its own every other time, R² ¼.
                right = share > 0.99 if symbol in expected else share < 0.35
                assert right, (hops, layer, role, symbol)


def test_it_is_kept_as_json(two_hops: Planted, tmp_path: FilePath) -> None:
    found = contents(two_hops.model, two_hops.task, 40)
    found.save(tmp_path / "c.json")
    again = Contents.load(tmp_path / "c.json")
    assert again.model == adapter_of(two_hops.model).digest()
    assert np.allclose(again.stream.own, found.stream.own, atol=1e-5, equal_nan=True)
    assert again.heads.own.shape == (3, 1, 5, 3)
    kept = json.loads((tmp_path / "c.json").read_text())
    for text, line in (
        (json.dumps(kept | {"format": 7}), "contents of format 7 cannot be read; this version re"),
        (json.dumps(kept | {"roles": ["query"]}), "these are no contents: .*own has shape"),
        (json.dumps(kept | {"stream": {}}), "these are no contents: KeyError"),
        (json.dumps(kept | {"symbols": 3}), "these are no contents: TypeError"),
        ("[", "c.json is not JSON: expected what Contents.save wrote"),
    ):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(CircuitError, match=line) as caught:
            Contents.load(tmp_path / "c.json")
        assert "\n" not in str(caught.value)
