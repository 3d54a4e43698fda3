"""nanoGPT's checkpoints, against a model written as nanoGPT's is."""

from pathlib import Path

import pytest
import torch
from nano import made, saved
from torch import nn

from hopscope.circuits import adapter_of, nanogpt
from hopscope.circuits.adapters import BlockAdapter
from hopscope.circuits.engine import forward
from hopscope.errors import CircuitError


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
    adapter = nanogpt(made(bias=True))
    for tokens, line in (
        (torch.zeros(1, 17, dtype=torch.long), "17 tokens long; the model has 16 positions"),
        (torch.full((1, 4), 5), "the task has token 5; the model knows 5"),
        (torch.zeros(1, 4, 3), "the task has vectors; the model takes 5 tokens"),
    ):
        with pytest.raises(CircuitError, match=line):
            adapter.embed(tokens)
    del whole["model"]["lm_head.weight"]
    headless = nanogpt(whole)
    with pytest.raises(CircuitError, match=r"no lm_head\.weight: the checkpoint is not whole"):
        headless.unembed(torch.zeros(1, 4, 32))
