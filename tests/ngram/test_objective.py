"""Counting windows gives the loss and the gradients of walking all positions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hopscope.configs import Descent, InductionModel, NgramProcess
from hopscope.ngram.counts import counted
from hopscope.ngram.model import InductionTransformer, loss
from hopscope.ngram.objective import Answering, Objective, loss_of
from hopscope.ngram.parameters import Parameters, initial, sets
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.rows import Products, merged, rows_of


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


def oracle(
    chains: Chains, model: InductionModel, descent: Descent, at: Parameters
) -> tuple[float, dict[str, np.ndarray]]:
    """Loss and gradients of the model that walks all positions."""
    module = InductionTransformer(model, chains.process.alphabet)
    for name, value in at.named().items():
        getattr(module, name).data = torch.tensor(value)
    tokens = torch.from_numpy(chains.tokens.astype(np.int64))
    value = loss(descent, module(tokens[:, :-1]), tokens[:, -1])
    value.backward()
    return value.item(), {name: getattr(module, name).grad.numpy() for name in ("c", "w", "a")}


def check(chains: Chains, model: InductionModel, descent: Descent, at: Parameters) -> None:
    """Loss and gradients by counts, as they are computed in every way, are the oracle's."""
    value, slopes = oracle(chains, model, descent, at)
    counts, matches = counted(chains, model.window, model.unit_copies)
    rows = rows_of(counts, len(matches), descent.loss == "softmax")
    moving, still = merged(rows)
    objective = Objective(model, matches)
    scaled = objective.scaled(at)
    parts = [Answering(part, part, loss_of(descent)) for part in (moving, still) if len(part)]
    assert sum(part.value(scaled) for part in parts) == pytest.approx(value, abs=1e-10)
    assert np.isfinite(counts.attended(scaled)).all()
    for sums in (rows, Products(rows)):
        whole = Answering(rows, sums, loss_of(descent))
        assert whole.value(scaled) == pytest.approx(value, abs=1e-10)
    fast = [Answering(moving, Products(moving), loss_of(descent))] if len(moving) else []
    for answering in (whole, Answering(rows, rows, loss_of(descent)), *fast):
        for name, slope in objective.gradient(at, answering, "CWa").items():
            np.testing.assert_allclose(slope, slopes[name], atol=1e-10)


@settings(max_examples=60)
@given(chosen=settings_of(), seed=st.integers(0, 10_000))
def test_loss_and_gradients_are_the_oracles(
    chosen: tuple[NgramProcess, InductionModel, Descent], seed: int
) -> None:
    process, model, descent = chosen
    generator = np.random.default_rng(seed)
    at = Parameters(
        c=generator.normal(size=len(sets(model))),
        w=generator.normal(size=(model.heads, model.window)),
        a=np.array(generator.normal() * 3),
    )
    check(sample_chains(process, 30, seed), model, descent, at)


def test_wide_windows_need_more_than_one_word_of_bits() -> None:
    process = NgramProcess(alphabet=3, length=30, start="uniform")
    model = InductionModel(window=9, heads=2, unit_copies=True)
    at = Parameters(np.ones(3), np.random.default_rng(0).normal(size=(2, 9)), np.array(2.0))
    check(sample_chains(process, 20, 1), model, Descent(), at)


@pytest.mark.parametrize("kind", ["log", "softmax"])
def test_attention_of_any_sharpness_is_the_oracles(kind: str) -> None:
    """One shift of all exponents would leave some chains nothing but zeros."""
    model, chains = InductionModel(), sample_chains(NgramProcess(length=6), 40, 2)
    start = initial(model)
    for scale in (900.0, -2_000.0):
        at = Parameters(start.c, start.w, np.array(scale))
        check(chains, model, Descent(loss=kind), at)
