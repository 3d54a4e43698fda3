"""Probes against least squares and discriminants written out, and of planted models against what
theory says.
"""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from slow import whole
from torch import Tensor, nn

from hopscope.circuits import (
    CallbackModel,
    Drawn,
    Examples,
    OwnTask,
    Probe,
    adapter_of,
    examples_of,
    repeated_tokens,
)
from hopscope.circuits.ablation import Ablation, changes_of
from hopscope.circuits.engine import record
from hopscope.circuits.examples import Purpose, example_seed
from hopscope.circuits.probing import Reader, RolePositions, _cell, discriminants, probe
from hopscope.configs import MQAR, KHop, Model, Retrieval
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role, parse_role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.tasks import symbols
from hopscope.theory import flow

EXAMPLES = 400


def rows_of(model: Transformer, task: Any, drawn: tuple[int, Purpose], place: Any) -> Any:
    """For each position of a role: the stream after a layer (for a head: its output, which is as
    far from another as what it adds), the symbols of its chain, and its example.
    """
    (count, purpose), (layer, head, role) = drawn, place
    examples = examples_of(task, count, purpose=purpose)
    known = symbols(task, example_seed(purpose), count, "validation")
    adapter: Any = adapter_of(model)
    with torch.no_grad():
        seen = record(adapter, examples.inputs)
        x = adapter.normed(seen.streams[layer])
        if head is not None:
            out = model.blocks[layer].attention.out.weight.unflatten(1, (model.config.heads, -1))
            x = seen.brought[layer][:, head] @ torch.linalg.qr(out[:, head]).R.T
    here = (examples.roles.role == examples.number(role)) & (examples.roles.chain < known.shape[1])
    example, position = here.nonzero(as_tuple=True)
    y = known[example, examples.roles.chain[example, position].long()]
    return x[example, position].double().numpy(), y.numpy(), example.numpy()


def least_squares(x: np.ndarray, y: np.ndarray) -> Any:
    """Ridge regression with the penalty that generalised cross-validation prefers."""
    mean, middle, count = x.mean(0), y.mean(0), len(x)
    centred = x - mean
    gram = centred.T @ centred
    found = []
    for penalty in np.linalg.eigvalsh(gram).mean() * 10.0 ** np.arange(-7, 3):
        inverse = np.linalg.inv(gram + penalty * np.eye(len(gram)))
        left = np.eye(count) - centred @ inverse @ centred.T - 1 / count
        score = np.square(left @ y).sum() / np.trace(left) ** 2
        found.append((score, inverse @ centred.T @ (y - middle)))
    best = min(found, key=lambda each: each[0])[1]
    return lambda rows: (rows - mean) @ best + middle


def test_vectors_are_read_by_least_squares(random_model: Transformer) -> None:
    """In the stream and in a head's output; the interval is that of a bootstrap over examples."""
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    found = probe(random_model, task, 60)
    for place in ((0, None, "query"), (2, None, "query"), (2, None, "value 1"), (1, 1, "query")):
        x, y, _ = rows_of(random_model, task, (60, "fitting"), place)
        rows, wanted, example = rows_of(random_model, task, (30, "probing"), place)
        layer, head, role = place
        part = found.stream if head is None else found.heads
        cell = (*([layer] if head is None else (layer, head)), found.roles.index(parse_role(role)))
        for number, symbol in enumerate(found.symbols):
            fitted = least_squares(x, y[:, number])(rows)
            error = np.square(fitted - wanted[:, number]).sum(-1)
            whole = np.square(wanted[:, number] - y[:, number].mean(0)).sum(-1)
            share = 1 - error.sum() / whole.sum()
            assert part.own[*cell, number] == pytest.approx(share, abs=2e-3), (place, symbol)
            each = np.stack([np.bincount(example, its, 30) for its in (error, whole)])
            drawn = each[:, np.random.default_rng(0).integers(0, 30, (2000, 30))].sum(-1)
            spread = 1.96 * (drawn[0] / drawn[1]).std()
            assert part.half[*cell, number] == pytest.approx(spread, rel=0.25, abs=1e-3), place


@pytest.mark.parametrize("scored", [(0,), (0, 1)])
def test_tokens_are_not_read_where_nothing_is(scored: tuple[int, ...]) -> None:
    """Of three classes that were fitted, the fresh examples have one or two."""

    def rows(classes: tuple[int, ...]) -> RolePositions:
        targets = torch.tensor(classes * 6)[:, None, None].expand(-1, 2, 1)
        number = torch.arange(len(targets))
        return RolePositions(number, torch.zeros_like(number), targets)

    known, fresh = rows((0, 0, 1, 2)), rows(scored)
    nothing = (torch.zeros(len(each.example), 1, 3) for each in (known, fresh))
    assert _cell(*nothing, known, fresh)[0] == pytest.approx([0], abs=1e-9)


def test_tokens_are_read_by_discriminants() -> None:
    """Fisher's, written out: one covariance within classes, all of which are equally likely."""
    task = MQAR(pairs=3, alphabet=12, length=16, queries=2)
    model = Transformer.seeded(Model(layers=1, heads=2, d_model=24), task.interface(), 0)
    found = probe(model, task, 200)
    assert found.measure == "accuracy"
    assert found.at_chance
    for layer, (number, symbol) in product((0, 1), enumerate(found.symbols)):
        x, y, _ = rows_of(model, task, (200, "fitting"), (layer, None, "query"))
        rows, wanted, _ = rows_of(model, task, (100, "probing"), (layer, None, "query"))
        right, there, known = y[:, number], wanted[:, number], np.unique(y[:, number])
        means = np.stack([x[right == c].mean(0) for c in known])
        parts = [x[right == c] - means[n] for n, c in enumerate(known)]
        inverse = np.linalg.pinv(sum(part.T @ part for part in parts) / len(x), rcond=1e-6)
        half = 0.5 * np.einsum("ci,ij,cj->c", means, inverse, means)
        hit = known[(rows @ inverse @ means.T - half).argmax(-1)] == there
        accuracy = np.mean([hit[there == c].mean() for c in np.unique(there)])
        share = (accuracy - 1 / len(known)) / (1 - 1 / len(known))
        assert found.share("query", symbol, layer) == pytest.approx(share, abs=0.05), symbol
    assert found.share("query", "x0", 0) > 0.95
    assert abs(found.share("query", "x1", 0)) < 0.15
    assert np.isnan(found.stream.own[:, found.roles.index(Role("other"))]).all()
    assert Probe(**found.to_dict()).to_dict() == found.to_dict()
    khop = KHop(hops=2, length=12, alphabet=4)  # has a single chain
    single = probe(Transformer.seeded(model.config, khop.interface(), 0), khop, 200)
    assert single.share("query", "x0", 0) > 0.95
    assert np.isnan(single.stream.other_chain).all()


def test_a_token_that_was_not_fitted_is_never_read() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 3, generator=generator)
    fitted = discriminants(x, 2 * (x[:, :1] > 0).long())  # tokens 0 and 2
    assert sorted(fitted(x)[:, 0].argmax(-1).unique().tolist()) == [0, 2]


def test_a_callback_model_is_probed_by_the_streams_that_it_hands_out(two_hops: Planted) -> None:
    task, model = two_hops.task, two_hops.model

    def handed_out(inputs: Tensor) -> list[Tensor]:
        return record(adapter_of(model), inputs).streams  # type: ignore[arg-type]

    given: Any = {"shape": (3, 1), "answers": model.interface.read}
    expected = probe(model, task, EXAMPLES)
    found = probe(whole(model, **given, streams=handed_out), task, EXAMPLES)
    for layer, role in product(range(found.layers + 1), found.roles):
        assert found.decodable(role, layer) == expected.decodable(role, layer), (layer, role)
    assert found.loss == pytest.approx(expected.loss, abs=1e-6)
    with pytest.raises(CircuitError, match="the outputs of single heads are unknown"):
        found.added((0, 0), "query")
    with pytest.raises(CircuitError, match="give CallbackModel a function `streams`"):
        probe(whole(model, **given), task, EXAMPLES)


def test_examples_of_your_own_name_their_symbols(two_hops: Planted) -> None:
    """The last symbol never varies, so it counts as 0."""
    task = two_hops.task

    def bare(examples: int, seed: int) -> Examples:
        return examples_of(task, examples, seed - example_seed("search"), "search")

    def named(examples: int, seed: int) -> Examples:
        known = symbols(task, seed, examples, "validation").clone()
        known[:, :, 2] = 0.5
        return replace(bare(examples, seed), symbols=known, names=("a", "b", "c"))

    found, expected = (probe(two_hops.model, each, EXAMPLES) for each in (named, task))
    assert (found.symbols, found.task) == (("a", "b", "c"), None)
    assert np.allclose(found.stream.own[..., :2], expected.stream.own[..., :2])
    assert not found.stream.own[..., 2].any()
    assert not found.stream.half[..., 2].any()
    with pytest.raises(CircuitError, match="inputs are not tokens .* pass a function that draws"):
        probe(two_hops.model, bare, EXAMPLES)


def test_tokens_and_those_that_relations_lead_to_are_probed() -> None:
    """A module that tells letters apart, and puts the letter before beside each, in its only layer.
    Before, it tells a from the rest: of eight in ten letters, but of one class in three.
    """

    def letters(count: int, seed: int) -> Drawn:
        drawn = torch.randint(10, (count, 3), generator=torch.Generator().manual_seed(seed))
        tokens = (drawn - 7).clamp_min(0)
        before = torch.tensor([-1, 0, 1]).expand(count, -1)
        return Drawn(tokens, tokens[:, -1:], roles=["letter"] * 3, relations={"before": before})

    def handed_out(tokens: Tensor) -> list[Tensor]:
        own = torch.nn.functional.one_hot(tokens, 4).float()
        before = torch.cat((torch.zeros_like(own[:, :1]), own[:, :-1]), 1)
        is_a = torch.nn.functional.one_hot(tokens.clamp_max(1), 8).float()
        return [is_a, torch.cat((own, before), -1)]

    def forward(tokens: Tensor, attention: Any) -> Tensor:
        attention(0, torch.eye(3).expand(len(tokens), 1, 3, 3))
        return 9.0 * torch.nn.functional.one_hot(tokens, 3).float()

    module = CallbackModel(forward, nn.Linear(1, 1), (1, 1), answers=1, streams=handed_out)
    found = probe(module, OwnTask(letters, roles=["letter"], chance=1.1), 200)
    assert found.symbols == ("itself", "before", "before ×2")
    shares = [[found.share("letter", name, layer) for name in found.symbols] for layer in (0, 1)]
    assert shares[0][0] == pytest.approx(0.5, abs=0.1)
    assert shares[1][0] == shares[1][1] == 1.0
    assert shares[0][1] < 0.2
    assert shares[1][2] < 0.5  # only that it leads nowhere can be read

    def alone(count: int, seed: int) -> Drawn:
        return replace(letters(count, seed), relations={})

    found = probe(module, OwnTask(alone, roles=["letter"], chance=1.1), 200)
    assert found.symbols == ("itself",)
    assert [found.share("letter", "itself", layer) for layer in (0, 1)] == [shares[0][0], 1.0]


def test_what_cannot_be_probed_is_refused_in_a_line(two_hops: Planted) -> None:
    model, task = two_hops.model, two_hops.task
    found = probe(model, task, 40)
    assert not found.at_chance
    assert (found.first("query", "x2"), found.first("query", "x0")) == (3, 0)
    assert found.added((1, 0), "query") == {"x1"}
    all_known = found.stream.model_copy(update={"own": np.ones_like(found.stream.own)})
    known = found.model_copy(update={"stream": all_known})
    assert not known.added((1, 0), "query")
    alone = Retrieval(hops=1, chains=1)
    fresh = probe(
        Transformer.seeded(Model(layers=1, heads=1, d_model=8), alone.interface(), 0), alone, 40
    )
    assert fresh.chance == 0 < fresh.loss
    assert not fresh.at_chance
    broken = Transformer(model.config, model.interface)
    for parameter in broken.parameters():
        nn.init.constant_(parameter, float("nan"))
    for ask, line in (
        (lambda: Reader(model, task, 2), "key 0 has only 4 positions in 2 examples, too few"),
        (lambda: probe(model, task, 2), "take 45 examples .`--examples 45`"),
        (lambda: probe(model, task, 1), "examples is 1"),
        (lambda: probe(broken, task, 40), "after layer 0 is not a finite number"),
        (lambda: found.first("key 1", "x2"), "x2 is never decodable at key 1"),
        (lambda: found.share("query", "x9", 0), "no symbol 'x9' here"),
        (lambda: found.share("key 7", "x1", 0), "no role 'key 7' here"),
        (lambda: found.share("query", "x1", 9), "layer is 9"),
        (lambda: found.added((3, 0), "query"), "there is no head 3.0"),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()


def test_more_streams_than_the_machine_holds_are_refused_before_it_runs(
    two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.circuits.budget.memory_bytes", lambda: 2**21)
    with pytest.raises(CircuitError, match=r"streams of 400 examples of 10 .*: take fewer ex"):
        probe(two_hops.model, two_hops.task, 400)


def test_tokens_that_are_not_fitted_or_do_not_fit_into_memory_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def streams(tokens: Tensor) -> list[Tensor]:
        return [words[tokens] + words[tokens.roll(1, 1)]] * 2

    def forward(tokens: Tensor, attention: Any) -> Tensor:
        attention(0, torch.eye(tokens.shape[1]).expand(len(tokens), 1, -1, -1))
        return torch.nn.functional.one_hot(tokens, 400).float()

    words = torch.randn(400, 8, generator=torch.Generator().manual_seed(0))
    module = CallbackModel(forward, nn.Linear(1, 1), (1, 1), streams=streams)
    task = repeated_tokens(vocabulary=400, length=4)
    with pytest.raises(CircuitError, match=r"tokens scored at filler \(itself\), 33% are"):
        probe(module, task, 20)
    found = probe(module, task, 300)
    monkeypatch.setattr("hopscope.circuits.probing.call_bytes", lambda _: 1)
    assert probe(module, task, 300).to_dict() == found.to_dict()  # scored a row at a time
    monkeypatch.setattr("hopscope.circuits.budget.memory_bytes", lambda: 2**20)
    with pytest.raises(CircuitError, match="maps from 8 numbers to 401 tokens"):
        probe(module, task, 300)


def test_a_changed_model_is_read_by_the_maps_of_the_unchanged_one(
    two_hops: Planted, random_model: Transformer
) -> None:
    """With nothing changed it holds what the probe finds; without a path, what came along it is
    gone from there on, and nothing else is.
    """
    for model in (two_hops.model, random_model):
        reader, found = Reader(model, two_hops.task, 60), probe(model, two_hops.task, 60)
        with pytest.raises(IndexError):
            reader.own(Ablation(), ask=[1, 1].pop)  # stopped after two layers, it goes on there
        np.testing.assert_allclose(reader.own(Ablation()), found.stream.own, atol=1e-9)
    drawn = two_hops.model, two_hops.task, 200
    reader, found = Reader(*drawn), probe(*drawn)
    for path in two_hops.paths:
        row = f"{path.layer}.{path.head}:{path.destination}=itself"
        lost = found.stream.own - reader.own(Ablation.of(changes_of([row])))
        here = found.roles.index(path.destination)
        assert np.abs(lost[: path.layer + 1]).max() < 1e-6, row
        before, after = (found.stream.own[path.layer + n, here] for n in (0, 1))
        brought = (after > 0.9) & (before < 0.5)
        assert brought.any()
        assert (lost[path.layer + 1, here, brought] > 0.3).all(), row


@pytest.mark.slow
def test_planted_chains_hold_what_theory_says() -> None:
    for hops in range(1, 8):
        dim = 2 * (hops + 1)
        grown = planted(Retrieval(hops=hops, chains=2, symbols="one-hot", dim=max(4, dim)))
        found = probe(grown.model, grown.task, EXAMPLES, heads=False)
        theory = flow(grown.task.graph(), heads=1)
        assert theory.layers == found.layers
        for layer, role in product(range(found.layers + 1), found.roles):
            expected = theory.holdings[layer][theory.roles.index(role)] & {*found.symbols}
            assert found.decodable(role, layer) == expected, (hops, layer, role)
            for symbol in found.symbols:
                share = found.share(role, symbol, layer)
                # A head that finds nothing reads one chain's symbol: in half of the cases its own.
                right = share > 0.99 if symbol in expected else share < 0.35
                assert right, (hops, layer, role, symbol)
        assert np.abs(found.stream.other_example).max() < 0.1, hops
        assert found.stream.other_chain[0].max() < 0.15, hops


def test_a_probe_is_saved_as_json(two_hops: Planted, tmp_path: Path) -> None:
    found, path = probe(two_hops.model, two_hops.task, 40), tmp_path / "p.json"
    found.save(path)
    again = Probe.load(path)
    assert again.model == adapter_of(two_hops.model).digest()
    assert np.allclose(again.stream.own, found.stream.own, atol=1e-5, equal_nan=True)
    assert again.heads.own.shape == (3, 1, 5, 3)
    saved = json.loads(path.read_text())
    for wrong in ({"format": 7}, {"roles": ["query"]}, {"stream": {}}, {"symbols": 3}):
        path.write_text(json.dumps(saved | wrong))
        with pytest.raises(ConfigError, match="Probe|Decodability"):
            Probe.load(path)
    path.write_text("[")
    with pytest.raises(ConfigError, match="Invalid JSON"):
        Probe.load(path)
