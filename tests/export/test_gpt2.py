"""Exported models, as transformers and TransformerLens load them, beside our own."""

from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch

from hopscope.circuits import examples_of
from hopscope.configs import MQAR, KHop, Model, Retrieval, Task
from hopscope.errors import ModelError
from hopscope.export import gpt2
from hopscope.models import Transformer

KHOP = KHop(hops=2, length=9, alphabet=5)
BLANK = MQAR(pairs=2, alphabet=8, length=9, filler="blank")
CLOSE = {"atol": 1e-5, "rtol": 0}

CASES = {
    "k-hop": (KHOP, Model(layers=3, heads=2, d_model=20)),
    "the last hop alone": (KHop(hops=2, length=9, alphabet=5, curriculum=False), Model(layers=2)),
    "more tokens than answers": (BLANK, Model(layers=2, heads=2, d_model=16, d_mlp=24)),
    "more answers than widths": (MQAR(alphabet=64), Model(layers=2, heads=2, d_model=12)),
    "no MLP": (KHOP, Model(layers=2, heads=2, d_model=20, mlp=False)),
    "narrow heads": (KHOP, Model(layers=2, heads=2, d_model=20, d_head=4)),
}


def random(task: Task, config: Model) -> Transformer:
    """A model in which no number is nearly zero, nor a gain one."""
    config = config.model_copy(update={"init": "fan-in", "input_std": 1.0})
    model = Transformer.seeded(config, task.interface(), 1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(torch.empty_like(parameter).normal_(generator=generator))
    return model


def load(folder: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    found = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    return found.eval()


@pytest.mark.parametrize("case", CASES)
def test_transformers_computes_the_same(case: str, tmp_path: Path) -> None:
    task, config = CASES[case]
    model = random(task, config)
    gpt2.save(model, task, tmp_path, {"step": "6"})
    inputs = examples_of(task, 4).inputs
    with torch.no_grad():
        found = load(tmp_path)(inputs, output_attentions=True)
        expected = model(inputs)
    outputs = model.interface.outputs
    logits = found.logits[:, -model.interface.read :]
    torch.testing.assert_close(logits[..., :outputs], expected, **CLOSE)
    assert (logits[..., outputs:] < -9_000).all()
    patterns = torch.stack(found.attentions)
    torch.testing.assert_close(patterns, model.attention(inputs), **CLOSE)


def test_its_tokenizer_knows_the_symbols_and_its_weights_where_they_come_from(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    gpt2.save(random(*CASES["k-hop"]), KHOP, tmp_path, {"run": "khop-1", "step": "6"})
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer("a b e a")["input_ids"] == [0, 1, 4, 0]
    assert tokenizer.convert_ids_to_tokens([5, 6, 11]) == ["x1=none", "x2=a", "x2=none"]
    with pytest.raises(Exception, match="(?i)unk"):
        tokenizer("a q")
    assert gpt2.vocabulary(BLANK) == ["k0", "k1", "k2", "k3", "v0", "v1", "v2", "v3", "·"]
    with safetensors.safe_open(tmp_path / "model.safetensors", "np") as weights:
        about = weights.metadata()
    assert about.items() >= {"format": "pt", "run": "khop-1", "step": "6"}.items()


def test_what_no_gpt2_computes_is_refused() -> None:
    for config, reason in (
        ({"norm": "none"}, "it has no layer norm"),
        ({"causal": False}, "its attention looks ahead"),
        ({"heads": 3, "d_head": 4}, r"its heads \(d_head = 4\) do not fit into d_model = 20"),
        ({"heads": 2, "d_head": 11}, "do not fit"),
    ):
        model = Transformer(Model(**{"heads": 2, "d_model": 20, **config}), KHOP.interface())
        with pytest.raises(ModelError, match=f"{reason}.*circuit RUN --save FILE.safetensors"):
            gpt2.check(model)
    with pytest.raises(ModelError, match="its inputs are vectors"):
        gpt2.check(Transformer(Model(layers=1), Retrieval(hops=1).interface()))
