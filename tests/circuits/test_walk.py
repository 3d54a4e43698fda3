"""Many ablations in one walk against one edited forward pass each."""

import pytest
import torch
from changes import CHANGES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from slow import slow_attention
from torch import Tensor

from hopscope.circuits import Ablation, Ablator, Carried, Exam, Mechanism, budget
from hopscope.circuits.ablation import Change, Head
from hopscope.circuits.subject import TransformerSubject
from hopscope.models import Transformer

HEADS = [(layer, head) for layer in range(3) for head in range(2)]


def slow_losses(model: Transformer, exam: Exam, ablation: Ablation) -> Tensor:
    """One whole forward pass; what heads usually carry comes from another one."""
    usual: list[Tensor] = []

    def note(_: int, mixed: Tensor) -> Tensor:
        usual.append(mixed)
        return mixed

    model(exam.inputs, heads=note, read=exam.length)

    def attention(layer: int, pattern: Tensor) -> Tensor:
        pattern = pattern.clone()
        for head, change in ablation.at(layer):
            if isinstance(change, Mechanism):
                pattern[:, head] = slow_attention(change, exam, pattern[:, head])
        return pattern

    def heads(layer: int, mixed: Tensor) -> Tensor:
        mixed = mixed.clone()
        for head, change in ablation.at(layer):
            if change == Carried("mean"):
                mixed[:, head] = usual[layer][:, head].mean(0)
            elif change == Carried("resample"):
                mixed[:, head] = usual[layer][:, head].roll(1, 0)
        return mixed

    every = model(exam.inputs, attention=attention, heads=heads, read=exam.length)
    return exam.losses(every[:, -model.interface.read :])


@given(
    st.lists(
        st.dictionaries(st.sampled_from(HEADS), st.sampled_from(CHANGES)), min_size=1, max_size=5
    )
)
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_walk_of_many_equals_one_pass_each(
    random_model: Transformer, ablator: Ablator, several: list[dict[Head, Change]]
) -> None:
    ablations = [Ablation.of(each) for each in several]
    with torch.no_grad():
        expected = torch.stack([slow_losses(random_model, ablator.exam, a) for a in ablations])
    assert torch.allclose(ablator.losses(ablations), expected, atol=1e-5)


class Counted(TransformerSubject):
    """A model that notes for how many examples it is asked at once."""

    most = 0

    def write(self, number: int, x: Tensor, mixed: Tensor) -> Tensor:
        self.most = max(self.most, len(x))
        return super().write(number, x, mixed)


def test_how_much_walks_together_or_is_kept_changes_nothing(
    random_model: Transformer, exam: Exam, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = [Ablation.of({head: change}) for head in HEADS for change in CHANGES]
    with torch.no_grad():
        expected = torch.stack([slow_losses(random_model, exam, a) for a in several])
    most = []
    for call, kept in ((1, 0), (200_000, 30_000), (2**30, 2**30)):
        monkeypatch.setattr(budget, "CALL_BYTES", call)
        monkeypatch.setattr(budget, "STREAM_BYTES", kept)
        monkeypatch.setattr(budget, "DRAWN_BYTES", kept)
        subject = Counted(random_model)
        ablator = Ablator(subject, exam)
        for _ in range(2):  # the second time some of it is kept
            assert torch.allclose(ablator.losses(several), expected, atol=1e-5), (call, kept)
        most.append(subject.most)
    assert most[0] == len(exam) < most[1] < most[2]
