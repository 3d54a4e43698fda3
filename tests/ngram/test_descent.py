"""Descent by counts is that of the model that walks all positions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import Descent, InductionModel, NgramExperiment, NgramProcess
from hopscope.configs.recipe import SPLITS
from hopscope.ngram import train
from hopscope.ngram.counts import pattern_counts
from hopscope.ngram.evaluation import mean_loss, model_answers
from hopscope.ngram.model import InductionTransformer
from hopscope.ngram.parameters import Parameters, initial, sets
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.similarity import MatchSimilarity
from hopscope.ngram.trainer import ChainLoss, NgramTrainer, batches, chains_of, loss_slope

Make = Callable[..., NgramExperiment]


def test_a_full_first_layer_is_drawn_by_its_seed() -> None:
    config = InductionModel(first="full", noise=0.1)
    one, same, other = (InductionTransformer(config, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(one.w_q, same.w_q)
    assert not torch.equal(one.w_q, other.w_q)
    assert (one.w_v - torch.eye(3)).abs().max() < 1 < (one.w_v[:, 0, 0]).sum()


def walked_loss(
    module: InductionTransformer, descent: Descent, tokens: np.ndarray
) -> tuple[torch.Tensor, np.ndarray]:
    """The mean loss by walking all positions, and the answers."""
    chains = torch.from_numpy(tokens.astype(np.int64))
    answers, targets = module(chains[:, :-1]), chains[:, -1]
    if descent.loss == "softmax":
        loss = torch.nn.functional.cross_entropy(answers, targets)
    else:
        loss = -torch.log(answers[torch.arange(len(targets)), targets] + descent.epsilon).mean()
    return loss, answers.detach().numpy()


def check(chains: Chains, model: InductionModel, descent: Descent, at: Parameters) -> None:
    """Answers, loss and gradients by counts, by the sparse products and row by row."""
    module = InductionTransformer(model, chains.process.alphabet)
    for name, value in at.named().items():
        getattr(module, name).data = torch.tensor(value)
    loss, answers = walked_loss(module, descent, chains.tokens)
    loss.backward()
    expected = {name: getattr(module, name).grad.numpy() for name in ("c", "w", "a")}

    alphabet = chains.process.alphabet
    symbols, matches = pattern_counts(chains.tokens, alphabet, model.window, model.unit_copies)
    rows = symbols.for_loss(chains.targets, descent.loss == "softmax")
    on, similarity = ChainLoss(descent, rows), MatchSimilarity(model, matches)

    def row_by_row(scaled: np.ndarray) -> np.ndarray:
        return loss_slope(descent, rows, scaled)

    for slope in (on.slope, row_by_row):
        similarity.restore(at.named())
        scaled = similarity.scaled()
        np.testing.assert_allclose(symbols.answers(scaled), answers, atol=1e-10)
        assert mean_loss(descent, answers, chains) == pytest.approx(loss.item(), abs=1e-10)
        assert on.value(scaled) == pytest.approx(loss.item(), abs=1e-10)
        similarity.descend(slope(scaled), lr=1.0)
        for name, value in similarity.state().items():
            np.testing.assert_allclose(at.named()[name] - value, expected[name], atol=1e-10)


@st.composite
def settings_of(draw: st.DrawFn) -> tuple[NgramProcess, InductionModel, Descent]:
    parents = draw(st.sets(st.integers(1, 4), min_size=1, max_size=3))
    window = draw(st.integers(max(parents), 5))
    heads = draw(st.integers(1, 4))
    process = NgramProcess(
        alphabet=draw(st.integers(2, 5)),
        parents=tuple(parents),
        alpha=draw(st.sampled_from([0.1, 1.0])),
        length=draw(st.integers(window + 1, 24)),
        start="uniform",
    )
    model = InductionModel(
        heads=heads,
        window=window,
        degree=draw(st.integers(1, heads)),
        constant=draw(st.booleans()),
        unit_copies=draw(st.booleans()),
    )
    return process, model, Descent(loss=draw(st.sampled_from(["log", "softmax"])))


@settings(max_examples=60, deadline=None)
@given(chosen=settings_of(), seed=st.integers(0, 10_000))
def test_loss_and_gradients_are_those_of_walking(
    chosen: tuple[NgramProcess, InductionModel, Descent], seed: int
) -> None:
    process, model, descent = chosen
    generator = np.random.default_rng(seed)
    kept = generator.integers(2, size=len(sets(model)))  # a coefficient of 0 stays 0
    kept[generator.integers(len(kept))] = 1
    at = Parameters(
        c=generator.normal(size=len(sets(model))) * kept,
        w=generator.normal(size=(model.heads, model.window)),
        a=np.array(generator.normal() * 3),
    )
    check(sample_chains(process, 30, seed), model, descent, at)


def test_wide_windows_and_attention_of_any_sharpness_are_those_of_walking() -> None:
    """Nine lags have more matches than a number has bits; one shift of all exponents would leave
    some chains nothing but zeros.
    """
    process = NgramProcess(alphabet=3, length=30, start="uniform")
    wide = InductionModel(window=9, heads=2, unit_copies=True)
    at = Parameters(np.ones(3), np.random.default_rng(0).normal(size=(2, 9)), np.array(2.0))
    check(sample_chains(process, 20, 1), wide, Descent(), at)
    model, chains = InductionModel(), sample_chains(NgramProcess(length=6), 40, 2)
    start = initial(model)
    for scale in (900.0, -2_000.0):
        for loss in ("log", "softmax"):
            at = Parameters(start.c, start.w, np.array(scale))
            check(chains, model, Descent(loss=loss), at)


def walked(chosen: NgramExperiment) -> InductionTransformer:
    """The whole training by autograd, every position of every chain in every epoch."""
    module = InductionTransformer(chosen.model, chosen.process.alphabet, seed=2)
    names = {"C": ["c"], "W": ["w"], "a": ["a"]}
    if chosen.model.first == "full":
        names["W"] = ["w", "w_q", "w_k", "w_v", "w_o"]
    tokens, size, epoch = chains_of(chosen, 2, "train").tokens, chosen.descent.batch, 0
    for letters, epochs in chosen.descent.plan():
        trained = [getattr(module, name) for letter in letters for name in names[letter]]
        for number in range(epoch, epoch + epochs):
            every = [np.arange(len(tokens))]
            for piece in every if size is None else batches(2, number, len(tokens), size):
                loss, _ = walked_loss(module, chosen.descent, tokens[piece])
                slopes = torch.autograd.grad(loss, trained)
                with torch.no_grad():
                    for each, slope in zip(trained, slopes, strict=True):
                        each.sub_(slope, alpha=chosen.descent.lr)
        epoch += epochs
    return module


@pytest.mark.parametrize(
    ("stages", "first", "batch"),
    [
        ("C,W,a", "copies", None),
        ("CW,a", "copies", 13),
        ("CWa", "copies", None),
        ("a,C", "full", None),
        ("W,Ca", "full", 13),
    ],
)
def test_training_by_counts_is_training_by_walking(
    experiment: Make, stages: str, first: str, batch: int | None, tmp_path: Path
) -> None:
    epochs = tuple(4 for _ in stages.split(","))
    counts = {"train": 30, "validation": 20}
    descent = {"stages": stages, "epochs": epochs, "batch": batch}
    descent |= {"chains": 30, "validation_chains": 20}
    short = {"length": 20}
    chosen = experiment(process=short, model={"first": first}, descent=descent, seeds=(2,))
    run, module = train(chosen, tmp_path), walked(chosen)
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(run.state(2)[name], value.numpy(), rtol=1e-9, atol=1e-12)
    for split in SPLITS:
        chains = chains_of(chosen, 2, split)
        assert len(chains) == counts[split]
        loss, answers = walked_loss(module, chosen.descent, chains.tokens)
        found = model_answers(chosen, run.state(2), chains)
        np.testing.assert_allclose(found, answers, rtol=1e-6, atol=1e-9)
        assert run.losses(split)[1][-1, 0, 0] == pytest.approx(loss.item(), rel=1e-6)


def test_a_training_goes_on_to_the_same_bits_after_a_set_is_gone() -> None:
    """A resumed model leaves out the sets whose coefficients have become zero."""
    chosen = NgramExperiment(
        process={"length": 30}, model={"unit_copies": True},
        descent={"stages": "CWa", "epochs": (400,), "chains": 30, "validation_chains": 2},
    )  # fmt: skip
    whole, resumed = (NgramTrainer(chosen, 0) for _ in range(2))
    whole.model.begin("CWa")
    for epoch in range(200):
        whole.advance(epoch)
    assert 0 in whole.model.state()["c"]
    resumed.model.restore(whole.model.state())
    resumed.model.begin("CWa")
    for epoch in range(200, 250):
        whole.advance(epoch)
        resumed.advance(epoch)
    for name, value in whole.model.state().items():
        np.testing.assert_array_equal(resumed.model.state()[name], value)


def test_batches_are_every_chain_once_in_another_order_each_epoch() -> None:
    one, other = batches(2, 0, 50, 20), batches(2, 1, 50, 20)
    assert [len(piece) for piece in one] == [20, 20, 10]
    assert sorted(np.concatenate(one)) == list(range(50))
    assert (np.concatenate(one) != np.concatenate(other)).any()


def test_a_selector_without_any_set_comes_to_nan() -> None:
    """As a forged checkpoint may hold it: training notices when losses are recorded."""
    trainer = NgramTrainer(NgramExperiment(descent={"chains": 20}), 0)
    zeros = {name: np.zeros_like(value) for name, value in trainer.model.state().items()}
    for letters in ("C", "W", "a", "CWa"):
        trainer.model.restore(zeros)
        trainer.model.begin(letters)
        with np.errstate(all="ignore"):
            trainer.advance(1)
            assert all(np.isnan(loss) for loss in trainer.losses().values())
