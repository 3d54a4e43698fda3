"""Without torch's private functions a step comes out the same."""

import pytest
import torch
from torch import Tensor

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.models import torch_private
from hopscope.training.trainer import Trainer


def stepped() -> tuple[Tensor, Tensor]:
    """The loss of the second step, and the gradients that it had."""
    experiment = Experiment(
        task=Retrieval(hops=2, chains=2),
        model=Model(layers=2, heads=2, d_model=32, init="fan-in"),
        training=Training(batch=16, validation_examples=8),
    )
    trainer = Trainer(experiment, torch.device("cpu"), "float32")
    trainer.advance()
    losses = trainer.advance()
    return losses, trainer.weights.master.grad


def test_a_step_is_the_same_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with_them = stepped()
    for name in ("_COPY_ALL", "_SOFTMAX_BACKWARD"):
        assert getattr(torch_private, name) is not None
        monkeypatch.setattr(torch_private, name, None)
    for query in ("avx512_bf16", "amx_tile"):
        monkeypatch.delattr(torch.cpu, f"_is_{query}_supported", raising=False)
        assert not torch_private.processor_has(query)
    for ours, torchs in zip(stepped(), with_them, strict=True):
        torch.testing.assert_close(ours, torchs)
        assert ours.any()
