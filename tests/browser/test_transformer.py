"""The page's forward pass is torch's: attention and outputs, of trained, planted and odd models."""

from typing import Any

import pytest
import torch

from hopscope.tasks import dataset
from tests.browser.parity import NAMES, opened

ALL = """() => {
  const { model, exam } = globalThis.bench;
  const rows = exam.length, seen = [];
  let x = model.enter(exam, 0, exam.count);
  for (let layer = 0; layer < model.layers; layer++) {
    x = model.layer(layer, x, exam, {
      from: 0, to: exam.count, read: rows,
      seen: (example, head, pattern) => seen.push(...pattern),
    });
  }
  return { attention: seen, outputs: [...model.leave(x, exam.count * rows)] };
}"""


@pytest.mark.parametrize("name", NAMES)
def test_attention_and_outputs_are_those_of_torch(page: Any, site: str, name: str) -> None:
    its = opened(page, site, name, 2)
    found = page.evaluate(ALL)
    batch = dataset(its.recipe.task, 0, 2, "validation")
    with torch.no_grad():
        attention = its.model.attention(batch.inputs)
        outputs = its.model(batch.inputs, read=attention.shape[-1])
    assert torch.allclose(
        torch.tensor(found["attention"]), attention.float().flatten(), rtol=0, atol=1e-4
    )
    off = (torch.tensor(found["outputs"]) - outputs.float().flatten()).abs().max()
    assert off < 1e-4 * max(1.0, float(outputs.abs().max()))


def test_a_checkpoint_of_another_model_is_refused(page: Any, site: str) -> None:
    opened(page, site, "k hops", 1)
    told = page.evaluate("""async () => {
      const { Transformer } = await import("/transformer.js");
      const { model } = globalThis.bench, told = [];
      const config = { layers: 3, heads: 2, d_model: 32, d_head: 16, d_mlp: 128, norm: true };
      for (const wrong of [{ outputs: 15, layers: 4 }, { outputs: 16 }]) {
        try { new Transformer({ ...config, ...wrong }, model.tensors); }
        catch (error) { told.push(error.message); }
      }
      return told;
    }""")
    assert told == [
        "the checkpoint has no blocks.3.attention_norm.weight",
        "head.weight has the shape [15,32]; this model's is [16,32]",
    ]
