from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from hopscope.configs import Interface, Model
from hopscope.errors import ModelError
from hopscope.models import Transformer, model_from

INTERFACE = Interface(tokens=False, inputs=4, length=5, read=2, outputs=3)
SMALL = Model(d_model=8, layers=1)
Weights = dict[str, Tensor]


def weights() -> Weights:
    return dict(Transformer.seeded(SMALL, INTERFACE, 0).state_dict())


@pytest.mark.parametrize(
    ("shape", "harm", "text"),
    [
        ({}, lambda w: w.pop("head.weight"), "it lacks head.weight"),
        ({}, lambda w: w.update(other=torch.ones(1)), "it has unknown other"),
        ({"layers": 2}, None, "lacks blocks.1"),
        ({"d_model": 16}, None, "expected .16"),
        ({"d_model": 2**20}, None, "a model of another shape"),
        ({"d_model": 2**30}, None, "a model of impossible size"),
        ({"layers": 2**30}, None, "1,073,741,824 layers: it"),
    ],
)
def test_weights_of_another_shape_are_refused_on_one_line(
    shape: dict[str, int], harm: Callable[[Weights], object] | None, text: str
) -> None:
    held = weights()
    if harm is not None:
        harm(held)
    with pytest.raises(ModelError, match=text) as caught:
        model_from(held, SMALL.model_copy(update=shape), INTERFACE, "it")
    assert "\n" not in str(caught.value)
