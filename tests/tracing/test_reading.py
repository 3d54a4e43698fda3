"""Symbols read off the residual stream, against least squares written out."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import Drawn, Encoder, Exam, OwnTask, Whole, exam_of
from hopscope.configs import MQAR, KHop, Model, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.tasks import symbols
from hopscope.tracing import Contents
from hopscope.tracing.linear import Moments, ridge
from hopscope.tracing.lot import Lot
from hopscope.tracing.reading import contents
from hopscope.tracing.streams import Streams

EXAMPLES = 400


def cells(found: Contents) -> dict[tuple[int, Role], frozenset[str]]:
    return {
        (layer, role): found.held(role, layer)
        for layer in range(found.layers + 1)
        for role in found.roles
    }


@pytest.mark.slow
def test_the_read_out_is_least_squares_cell_by_cell(random_model: Transformer) -> None:
    """All that is batched, written out: one cell, one symbol, one example at a time."""
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    found = contents(random_model, task, 30)
    fitted, marked = Lot.pair(task, 30, 15, 0)
    for layer in (0, 2):
        for role in (Role("query"), Role("value", 1)):
            for number, symbol in enumerate(found.symbols):
                x, y, _ = slow_rows(random_model, fitted, (layer, role, number))
                sums = Moments(x.shape[-1], 1, y.shape[-1])
                sums.add(x, y[:, None])
                fit = ridge(sums)
                rows, wanted, _ = slow_rows(random_model, marked, (layer, role, number))
                error = (fit(rows)[:, 0] - wanted).square().sum()
                whole = (wanted - y.mean(0)).square().sum()
                expected = float(1 - error / whole)
                assert found.share(role, symbol, layer) == pytest.approx(expected, abs=2e-3)


def slow_rows(
    model: Transformer, lot: Lot, at: tuple[int, Role, int]
) -> tuple[Tensor, Tensor, list[int]]:
    layer, role, symbol = at
    xs, ys, examples = [], [], []
    exam = lot.exam
    with torch.no_grad():
        for example in range(len(exam)):
            x = model.enter(exam.inputs[example : example + 1])
            for number in range(layer):
                x = model.layer(number, x)
            norm = (
                model.norm if layer == model.config.layers else model.blocks[layer].attention_norm
            )
            seen = norm(x)[0]  # type: ignore[operator]
            for place in range(exam.length):
                if exam.table[int(exam.roles.role[example, place])] == role:
                    chain = int(exam.roles.chain[example, place])
                    xs.append(seen[place])
                    ys.append(lot.symbols[example, chain, symbol])
                    examples.append(example)
    return torch.stack(xs), torch.stack(ys), examples


@pytest.mark.parametrize(
    "task", [KHop(hops=2, length=12, alphabet=4), MQAR(pairs=3, alphabet=12, length=16, queries=2)]
)
def test_tokens_are_told_by_classifiers(task: KHop | MQAR) -> None:
    model = Transformer.seeded(Model(layers=1, heads=2, d_model=24), task.interface(), 0)
    found = contents(model, task, 200)
    assert found.measure == "accuracy"
    assert found.guesses
    assert found.share(Role("query"), "x0", 0) > 0.95
    assert abs(found.share(Role("query"), "x1", 0)) < 0.15
    assert found.stream.log_loss is not None
    assert found.stream.log_loss[0, found.roles.index(Role("query")), 0] < 0.3
    assert np.isnan(found.stream.own[:, found.roles.index(Role("other"))]).all() == (
        task.kind == "mqar"
    )
    assert np.isnan(found.stream.other).all() == (task.kind == "khop")
    assert Contents.from_dict(found.to_dict()).to_dict() == found.to_dict()


def whole(model: Transformer, streams: bool) -> Whole:
    def forward(inputs: Tensor, attention: Any) -> Tensor:
        return model(inputs, attention=attention, read=inputs.shape[1])[:, -model.interface.read :]

    def handed(inputs: Tensor) -> list[Tensor]:
        kept = [model.enter(inputs)]
        for layer in range(model.config.layers):
            kept.append(model.layer(layer, kept[-1]))
        return kept

    shape = (model.config.layers, model.config.heads)
    return Whole(forward, model, shape, model.interface.read, streams=handed if streams else None)


def test_a_module_that_hands_its_streams_out_is_read_as_well(two_hops: Planted) -> None:
    task, model = two_hops.task, two_hops.model
    expected = contents(model, task, EXAMPLES)
    found = contents(whole(model, streams=True), task, EXAMPLES)
    assert cells(found) == cells(expected)
    assert found.heads is None
    with pytest.raises(CircuitError, match="what heads add alone is not known of this model"):
        found.written((0, 0), Role("query"))
    with pytest.raises(CircuitError, match="is not handed out: give Whole a function `streams`"):
        contents(whole(model, streams=False), task, EXAMPLES)


def test_an_exam_of_ones_own_says_what_its_symbols_are(two_hops: Planted) -> None:
    task = two_hops.task

    def bare(examples: int, seed: int) -> Exam:
        return exam_of(task, examples, seed)

    def told(examples: int, seed: int) -> Exam:
        exam = exam_of(task, examples, seed)
        known = symbols(task, seed, examples, "validation")
        return replace(exam, symbols=known, names=("a", "b", "c"))

    found = contents(two_hops.model, told, EXAMPLES)
    expected = contents(two_hops.model, task, EXAMPLES)
    assert found.symbols == ("a", "b", "c")
    assert found.task is None
    assert np.allclose(found.stream.own, expected.stream.own)
    assert Contents.from_dict(found.to_dict()).task is None
    with pytest.raises(CircuitError, match="do not say what their symbols are: make the exam with"):
        contents(two_hops.model, bare, EXAMPLES)


def letters(count: int, seed: int) -> Drawn:
    """Three letters each: whoever has an earlier letter is led to the one before."""
    tokens = torch.randint(3, (count, 3), generator=torch.Generator().manual_seed(seed))
    before = torch.tensor([-1, 0, 1]).expand(count, -1)
    return Drawn(tokens, tokens[:, -1:], roles=["letter"] * 3, relations={"before": before})


def test_the_loss_of_an_exam_that_names_no_positions_is_that_of_all_answers() -> None:
    task = Retrieval(hops=1, chains=2)
    shape, layer = task.interface(), nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    torch.manual_seed(0)
    inside = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    subject = Encoder(inside, enter=nn.Linear(shape.inputs, 8))

    def losses(outputs: Tensor) -> Tensor:
        return outputs.cumsum(-1).square().mean((-2, -1))[..., None]

    exam = replace(exam_of(task, 5), losses=losses, read=None)
    with torch.no_grad():
        wanted = float(losses(inside(subject.enter(exam.inputs))).mean())
        assert Streams(subject, heads=False).loss(exam) == pytest.approx(wanted, rel=1e-5)


def test_tokens_that_relations_lead_to_are_read() -> None:
    """A module that puts the letter before beside each letter in its only layer."""

    def handed(tokens: Tensor) -> list[Tensor]:
        own = torch.nn.functional.one_hot(tokens, 4).float()
        before = torch.cat((torch.zeros_like(own[:, :1]), own[:, :-1]), 1)
        return [torch.cat((own, 0 * own), -1), torch.cat((own, before), -1)]

    def forward(tokens: Tensor, attention: Any) -> Tensor:
        attention(0, torch.eye(3).expand(len(tokens), 1, 3, 3))
        return 9.0 * torch.nn.functional.one_hot(tokens, 3).float()

    module = Whole(forward, nn.Linear(1, 1), (1, 1), 1, streams=handed)
    found = contents(module, OwnTask(letters, roles=["letter"], guess=1.1), 200)
    assert found.symbols == ("itself", "before", "before ×2")
    letter = Role("letter")
    shares = [[found.share(letter, name, layer) for name in found.symbols] for layer in (0, 1)]
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
    with pytest.raises(CircuitError, match=r"numbers cannot be read off 4 positions: key 0 stands.*"
                       r"in 2 examples; take at least 36 examples"):  # fmt: skip
        contents(model, task, 2)
    with pytest.raises(CircuitError, match="examples is 1; maps are fitted on at least 2"):
        contents(model, task, 1)
    found = contents(model, task, 40)
    assert not found.guesses
    assert found.first(Role("query"), "x2") == 3
    assert found.first(Role("query"), "x0") == 0
    with pytest.raises(CircuitError, match="key 1 never holds x2: 0.* of it at most, where more"):
        found.first(Role("key", 1), "x2")
    with pytest.raises(CircuitError, match="no symbol 'x9' here; the symbols are x0, x1, x2"):
        found.share(Role("query"), "x9", 0)
    with pytest.raises(CircuitError, match="no role 'key 7' here; the roles are key 0"):
        found.share(Role("key", 7), "x1", 0)
    with pytest.raises(CircuitError, match="layer is 9; expected 0 .* … 3"):
        found.share(Role("query"), "x1", 9)


def test_damaged_weights_are_named(two_hops: Planted) -> None:
    broken = Transformer(two_hops.model.config, two_hops.model.interface)
    for parameter in broken.parameters():
        nn.init.constant_(parameter, float("nan"))
    with pytest.raises(CircuitError, match="after layer 0 is not a finite number everywhere"):
        contents(broken, two_hops.task, 40)
