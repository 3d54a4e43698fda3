"""Models under the microscope, and their examples: hopscope's own models, and adapters of one's
own, told apart by their weights.
"""

from dataclasses import replace
from inspect import unwrap

import pytest
import torch
from torch import Tensor, nn

from hopscope import load
from hopscope.circuits import Ablation, Ablator, Examples, adapter_of, attention_maps, examples_of
from hopscope.circuits.adapters import TransformerAdapter
from hopscope.circuits.adapters.proof import prove
from hopscope.circuits.adapters.transformer import TransformerHeads
from hopscope.circuits.baselines import baselines
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.engine import weights_digest
from hopscope.circuits.examples import example_seed
from hopscope.circuits.saved import checkpoint_digest
from hopscope.configs import Experiment, KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted
from hopscope.runs import train
from hopscope.store import Store
from hopscope.tasks import dataset, question_losses
from hopscope.training import Run


def test_a_digest_is_of_names_and_weights() -> None:
    first, second = nn.Linear(3, 2), nn.Linear(3, 2)
    second.load_state_dict(first.state_dict())
    assert weights_digest(first) == weights_digest(second)
    with torch.no_grad():
        second.bias[1] += 1e-7
    assert weights_digest(first) != weights_digest(second)
    assert weights_digest(nn.Sequential(first)) != weights_digest(first)
    counts, more = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    assert weights_digest(counts) == weights_digest(more)
    more.num_batches_tracked += 1  # type: ignore[operator]
    assert weights_digest(counts) != weights_digest(more)  # single numbers count, too


def test_digests_are_those_that_circuits_were_kept_with() -> None:
    module = nn.Linear(3, 2)
    with torch.no_grad():
        module.weight.copy_(torch.arange(6.0).view(2, 3) / 8)
        module.bias.copy_(torch.tensor([-1.0, 0.5]))
    assert weights_digest(module).startswith("d9be5d52fec5445d4a13")
    assert weights_digest(module.to(torch.bfloat16)).startswith("060dceade7b7afb235df")


class Odd(TransformerAdapter):
    """An adapter whose attention sums up to more than 1."""

    def project(self, layer: int, x: Tensor) -> TransformerHeads:
        heads = super().project(layer, x)
        plain = heads.weights
        heads.weights = lambda *asked: 1.15 * plain(*asked)  # type: ignore[method-assign]
        return heads


@torch.no_grad()
def test_an_adapter_is_held_against_its_model(
    random_model: Transformer, examples: Examples
) -> None:
    adapter, x = TransformerAdapter(random_model), random_model.enter(examples.inputs)
    expected = random_model(examples.inputs)
    prove(adapter, x, expected, "mine")
    with pytest.raises(CircuitError, match="the adapter for mine is off by"):
        prove(adapter, x, expected + 0.1 * expected.abs().max(), "mine")
    line = "layer 0 has attention of 0 in a place, and sums up to 1.15;"
    with pytest.raises(CircuitError, match=line):
        Ablator(Odd(random_model), examples).losses([Ablation()])
    with pytest.raises(CircuitError, match=line):
        prove(Odd(random_model), x, expected, "mine")


@pytest.mark.parametrize("seeds", [(3,), (4, 9)])
def test_the_digest_of_a_checkpoint_is_its_models(
    store: Store, tiny: Experiment, seeds: tuple[int, ...]
) -> None:
    folder = train(tiny.model_copy(update={"seeds": seeds}), store).folder
    for step in (5, 12):
        model = Run(folder).model_at(step)
        members = [model] if len(seeds) == 1 else [model.member(n) for n in range(len(seeds))]
        mine = [checkpoint_digest(folder, step, seed) for seed in seeds]
        assert mine == [adapter_of(member).digest() for member in members]


TASK = Retrieval(hops=2, chains=3, dim=4)


def test_positions_are_those_of_the_role() -> None:
    examples = examples_of(TASK, 5)
    assert (len(examples), examples.length) == (5, TASK.interface().length)
    found = examples.positions(Role("value", 1))
    assert found.sum(1).tolist() == [TASK.chains] * 5
    for example, at in found.nonzero().tolist():
        assert examples.table[int(examples.roles.role[example, at])] == Role("value", 1)
    everywhere = sum(examples.positions(role) for role in examples.table)
    assert (everywhere == 1).all()


def test_what_is_read_is_what_is_asked_and_answered() -> None:
    examples = examples_of(Retrieval(hops=1, chains=3, dim=4), 2)
    for asked, answered, read in (
        (None, None, examples.length),
        (2, None, 2),
        (None, 3, 3),
        (2, 3, 2),
    ):
        assert replace(examples, read=asked).read_of(answered) == read, (asked, answered)


def test_examples_are_those_of_the_validation_stream() -> None:
    batch = dataset(TASK, example_seed("search", 3), 4, "validation")
    drawn = examples_of(TASK, 4, 3, "search")
    assert torch.equal(drawn.inputs, batch.inputs)
    answers = torch.zeros(4, TASK.interface().read, TASK.interface().outputs)
    assert drawn.losses(answers).shape == (4, 2)
    assert torch.equal(drawn.losses(answers), question_losses(TASK, answers, batch))

    def mine(examples: int, seed: int) -> Examples:
        return examples_of(TASK, examples, seed - example_seed("search"), "search")

    assert torch.equal(examples_of(mine, 4, 3, "search").inputs, drawn.inputs)


def test_what_cannot_be_examined_is_named(random_model: Transformer, two_hops: Planted) -> None:
    # Without the checks of types that only tests have.
    adapter, examples = unwrap(adapter_of), unwrap(examples_of)
    fleet = Transformer(random_model.config, random_model.interface, models=(0, 1))
    ablator = Ablator(random_model, examples_of(two_hops.task, 2))
    for ask, line in (
        (lambda: adapter(3), "there is no adapter for int: take EncoderAdapter"),
        (lambda: adapter(fleet), "a fleet of 2; examine one member"),
        (
            lambda: adapter(load("gallery/demo")),
            "Study is not a model, but has one: pass its `.model`",
        ),
        (
            lambda: adapter(nn.DataParallel(random_model)),
            "DataParallel is not a model, but has one: pass its `.module`",
        ),
        (lambda: unwrap(baselines)(random_model, KHop(), KHop()), "got KHop"),
        (lambda: unwrap(patch_circuit)(random_model, KHop(), KHop()), "got KHop"),
        (lambda: examples(3, 4), "a model is examined on a task, .*; got int"),
        (lambda: examples(TASK, 2.5), "examples is 2.5"),
        (lambda: examples(TASK, "64"), "examples is '64'"),
        (lambda: examples(TASK, True), "examples is True"),
        (lambda: examples(TASK, 0), "examples is 0"),
        (lambda: examples(KHop(length=100), 10**10), r"would take about [\d,]+ GiB"),
        (lambda: examples_of(TASK, 2).number(Role("value", 7)), "there is no role 'value 7' here"),
        (lambda: unwrap(Ablator.losses)(ablator, []), "a non-empty list"),
        (lambda: unwrap(Ablator.losses)(ablator, Ablation()), "a non-empty list"),
        (
            lambda: unwrap(Ablator.__init__)(object.__new__(Ablator), random_model, TASK),
            "takes Examples",
        ),
        *(
            (lambda task=task: attention_maps(two_hops.model, task, 4), "was made for examples of")
            for task in (Retrieval(hops=3), KHop(), Retrieval(hops=2, dim=4))
        ),
    ):
        with pytest.raises(CircuitError, match=line):
            ask()
