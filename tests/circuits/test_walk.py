"""Many ablations in one walk against one edited forward pass each."""

from typing import Any

import pytest
import torch
from changes import CHANGES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from hopscope.circuits import (
    Ablation,
    Ablator,
    Carried,
    Mechanism,
    budget,
)
from hopscope.circuits.ablation import Change, Head
from hopscope.circuits.mechanism import BY_POSITION
from hopscope.models import Transformer

HEADS = [(layer, head) for layer in range(3) for head in range(2)]


changes = st.dictionaries(st.sampled_from(HEADS), st.sampled_from(CHANGES))


def slow_losses(model: Transformer, ablator: Ablator, ablation: Ablation) -> Tensor:
    """One whole forward pass; what heads usually carry comes from another one."""
    usual: list[Tensor] = []

    def note(_: int, mixed: Tensor) -> Tensor:
        usual.append(mixed)
        return mixed

    model(ablator.exam.inputs, heads=note)

    def attention(layer: int, pattern: Tensor) -> Tensor:
        pattern = pattern.clone()
        for head, change in ablation.at(layer):
            if isinstance(change, Mechanism):
                pattern[:, head] = ablator.painter.attention(change, pattern[:, head])
        return pattern

    def heads(layer: int, mixed: Tensor) -> Tensor:
        mixed = mixed.clone()
        for head, change in ablation.at(layer):
            if change == Carried("mean"):
                mixed[:, head] = usual[layer][:, head].mean(0)
            elif change == Carried("resample"):
                mixed[:, head] = usual[layer][:, head].roll(1, 0)
        return mixed

    return ablator.exam.losses(model(ablator.exam.inputs, attention=attention, heads=heads))


@pytest.mark.slow
@given(st.lists(changes, min_size=1, max_size=9))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_walk_of_many_equals_one_pass_each(
    random_model: Transformer, ablator: Ablator, several: list[dict[Head, Change]]
) -> None:
    ablations = [Ablation.of(each) for each in several]
    with torch.no_grad():
        expected = torch.stack([slow_losses(random_model, ablator, a) for a in ablations])
    assert torch.allclose(ablator.losses(ablations), expected, atol=1e-5)


@pytest.mark.parametrize("call", [1, 200_000, 2**30])
@pytest.mark.parametrize("kept", [0, 30_000, 2**30])
def test_how_much_walks_together_or_is_kept_changes_nothing(
    ablator: Ablator, monkeypatch: pytest.MonkeyPatch, call: int, kept: int
) -> None:
    several = [Ablation.of({head: change}) for head in HEADS for change in CHANGES]
    expected = ablator.losses(several)
    monkeypatch.setattr(budget, "CALL_BYTES", call)
    monkeypatch.setattr(budget, "STREAM_BYTES", kept)
    monkeypatch.setattr(budget, "DRAWN_BYTES", kept)
    other = Ablator(ablator.subject, ablator.exam)
    for _ in range(2):  # the second time some of it is kept
        assert torch.allclose(other.losses(several), expected, atol=1e-6)


def test_layers_that_are_drawn_whole_compute_no_attention(
    random_model: Transformer, ablator: Ablator, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {head: CHANGES[n % 3] for n, head in enumerate(HEADS)}
    several = [Ablation.of(drawn), Ablation.of({**drawn, (1, 0): Mechanism(rest=BY_POSITION)})]
    with torch.no_grad():
        expected = torch.stack([slow_losses(random_model, ablator, a) for a in several])
    asked: list[int] = []
    for layer, block in enumerate(random_model.blocks):
        pattern = block.attention.pattern

        def noted(*inputs: Any, layer: int = layer, pattern: Any = pattern) -> Tensor:
            asked.append(layer)
            found: Tensor = pattern(*inputs)
            return found

        monkeypatch.setattr(block.attention, "pattern", noted)
    assert torch.allclose(ablator.losses(several), expected, atol=1e-5)
    assert asked == [1]
