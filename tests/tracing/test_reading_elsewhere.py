"""Contents of models of other libraries, where those are installed: from end to end."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hopscope.circuits import Whole
from hopscope.circuits.export import transformer_lens_config, transformer_lens_weights
from hopscope.configs import KHop, Model, Retrieval
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.tracing.reading import contents


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


class Elsewhere(nn.Module):
    """An encoder of x-transformers between two maps of one's own."""

    def __init__(self, task: Retrieval) -> None:
        super().__init__()
        library = pytest.importorskip("x_transformers")
        shape = task.interface()
        self.into = nn.Linear(shape.inputs, 16)
        self.layers = library.Decoder(dim=16, depth=2, heads=2, attn_dim_head=8)
        self.out, self.read = nn.Linear(16, shape.outputs), shape.read

    def attentions(self) -> list[Any]:
        """The modules through which each layer's attention goes, in their order."""
        return [part for name, part in self.named_modules() if name.endswith("attn_dropout")]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.layers(self.into(x))[:, -self.read :])
        return out

    def edited(self, inputs: Tensor, attention: Any) -> Tensor:
        """The answers, with every layer's attention as `attention` gives it back."""
        hooks = [
            part.register_forward_hook(lambda _, __, pattern, n=n: attention(n, pattern))
            for n, part in enumerate(self.attentions())
        ]
        try:
            return self(inputs)
        finally:
            for hook in hooks:
                hook.remove()

    def streams(self, inputs: Tensor) -> list[Tensor]:
        _, its = self.layers(self.into(inputs), return_hiddens=True)
        hiddens = its.layer_hiddens  # before every half of a layer, and behind the last
        return [*hiddens[::2], *([] if len(hiddens) % 2 else hiddens[-1:])]


def test_x_transformers_models_hold_what_they_are_given() -> None:
    """Untrained: keys and queries hold their own symbol; the rest is noise."""
    pytest.importorskip("x_transformers")
    torch.manual_seed(0)
    task = Retrieval(hops=1, chains=2, dim=4)
    module = Elsewhere(task).eval()
    whole = Whole(module.edited, module, (2, 2), task.interface().read, streams=module.streams)
    inputs = torch.randn(3, task.interface().length, task.interface().inputs)
    with torch.no_grad():
        assert torch.allclose(whole.outputs(inputs, lambda _, pattern: pattern), module(inputs))
        blind = whole.outputs(inputs, lambda _, pattern: torch.full_like(pattern, 0.1))
        assert not torch.allclose(blind, module(inputs), atol=1e-3)
    found = contents(whole, task, 200)
    assert found.layers == 2
    assert found.held(Role("query"), 0) == {"x0"}
    assert found.held(Role("value", 0), 0) == {"x1"}
    assert found.share(Role("query"), "x0", 2) > 0.5
    assert found.share(Role("query"), "x1", 0) < 0.1
