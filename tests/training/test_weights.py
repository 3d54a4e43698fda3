import pytest
import torch

from hopscope.training.weights import ALIGN, FlatWeights


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_module_computes_with_views_of_the_vector(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 5)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    flat = FlatWeights(module, dtype)
    for name, value in before.items():
        assert torch.equal(flat.named()[name], value)
    module(torch.ones(2, 3, dtype=dtype)).sum().backward()
    flat.collect()
    assert flat.master.grad is not None
    assert flat.master.grad[:15].tolist() == [2.0] * 15
    assert flat.master.grad[16:21].tolist() == [2.0] * 5
    assert flat.master.shape == (2 * ALIGN,)
    with torch.no_grad():
        flat.master += 1
    flat.refresh()
    assert torch.equal(module.weight, (before["weight"] + 1).to(dtype))
    assert module.weight.grad is None


def test_loading_replaces_every_value() -> None:
    module = torch.nn.Linear(3, 5)
    flat = FlatWeights(module, torch.bfloat16)
    flat.load({"weight": torch.full((5, 3), 1 / 3), "bias": torch.zeros(5)})
    assert flat.named()["weight"][0, 0] == torch.tensor(1 / 3)
    assert module.weight[0, 0] == torch.tensor(1 / 3).bfloat16()
