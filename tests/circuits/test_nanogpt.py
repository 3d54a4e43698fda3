"""nanoGPT's checkpoints, against a model written as nanoGPT's is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from nano import made, saved
from torch import nn

from hopscope.circuits import adapter_of, nanogpt
from hopscope.circuits.adapters import BlockAdapter
from hopscope.circuits.engine import forward
from hopscope.errors import CircuitError

Harm = Callable[[dict[str, Any], dict[str, Any]], object]


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
def test_a_checkpoint_computes_what_its_model_does(bias: bool, tmp_path: Path) -> None:
    model, tokens = made(bias), torch.randint(0, 5, (3, 12))
    torch.save(saved(model, "_orig_mod."), tmp_path / "ckpt.pt")
    expected = model(tokens)
    given = (tmp_path / "ckpt.pt", str(tmp_path / "ckpt.pt"), saved(model), model)
    for adapter in map(nanogpt, given):
        assert isinstance(adapter, BlockAdapter)
        found = adapter.unembed(forward(adapter, adapter.embed(tokens)))
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)
        assert (adapter.layers, adapter.heads, adapter_of(adapter)) == (2, 2, adapter)
    assert len({nanogpt(each).digest() for each in given}) == 1


def test_what_is_not_a_nanogpt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CircuitError, match=r"there is no file .*none\.pt"):
        nanogpt(tmp_path / "none.pt")
    for wrong in (nn.Linear(2, 2), {"model": {}}, saved(made(bias=True)) | {"model_args": {}}):
        with pytest.raises(CircuitError, match="is not a nanoGPT; expected its module, or what"):
            nanogpt(wrong)
    for text in ("", "not a checkpoint", "(lp0"):
        (tmp_path / "text.pt").write_text(text)
        with pytest.raises(CircuitError, match=r"text\.pt is not a checkpoint that torch can read"):
            nanogpt(tmp_path / "text.pt")
    with pytest.raises(CircuitError, match="is not a checkpoint that torch can read"):
        nanogpt(tmp_path)
    whole = saved(made(bias=True))
    with pytest.raises(CircuitError, match="n_head is 5, which does not divide the width of 32"):
        nanogpt(whole | {"model_args": {"n_head": 5}})
    with pytest.raises(CircuitError, match="17 tokens long; the model has 16 positions"):
        nanogpt(made(bias=True)).embed(torch.zeros(1, 17, dtype=torch.long))
    nanogpt(made(bias=True)).embed(torch.zeros(1, 16, dtype=torch.long))
    with pytest.raises(CircuitError, match="tokens 5 … 5; the model knows 0 … 4"):
        nanogpt(made(bias=True)).embed(torch.full((1, 4), 5))


@pytest.mark.parametrize(
    ("harm", "line"),
    [
        (lambda w, _: w.pop("transformer.wpe.weight"), "no transformer.wpe.*a BlockAdapter"),
        (lambda w, _: w.update({"lm_head.bias": torch.ones(5)}), "an unknown lm_head.bias"),
        (lambda _, sizes: sizes.update(n_layer=3), "has no transformer.h.2.attn.c_attn.bias"),
        (lambda _, sizes: sizes.update(n_embd=16), r"is \(.*\); by the other sizes it is \("),
        (lambda _, sizes: sizes.update(block_size=8), r"wpe.weight is \(16, 32\); .* \(8, 32\)"),
        (lambda _, sizes: sizes.update(n_layer="two"), "n_layer is 'two'; expected a whole number"),
        (lambda w, _: w.update({"lm_head.weight": w["lm_head.weight"].half()}), "of torch.float16"),
        (lambda w, _: w.update({"lm_head.weight": [1.0]}), "lm_head.weight is not a dense tensor"),
    ],
)
def test_a_checkpoint_that_is_not_whole_is_refused(harm: Harm, line: str) -> None:
    kept = saved(made(bias=True))
    weights, sizes = dict(kept["model"]), {**kept["model_args"], "bias": True}  # type: ignore[call-overload, dict-item]
    harm(weights, sizes)
    with pytest.raises(CircuitError, match=line):
        nanogpt({"model": weights, "model_args": sizes})


def test_a_module_that_computes_something_else_is_refused() -> None:
    other = made(bias=True)
    other.transformer["h"][0].mlp.forward = lambda x: 0 * x  # type: ignore[union-attr, index]
    with pytest.raises(CircuitError, match="off by .* of the largest output"):
        nanogpt(other).embed(torch.zeros(1, 4, dtype=torch.long))
    other.train()
    adapter = nanogpt(made(bias=True).train())
    adapter.embed(torch.zeros(1, 4, dtype=torch.long))
    assert adapter.model is not None
