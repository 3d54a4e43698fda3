"""Look at a model's attention, replace it through an argument, and compare the losses."""

import tempfile

import torch
from torch import Tensor

from hopscope import Experiment, Model, Retrieval, Training, train
from hopscope.tasks import examples, hop_losses, sampler_of


def main() -> None:
    task = Retrieval(hops=1, chains=3)
    training = Training(steps=20, batch=16, validation_examples=16)
    experiment = Experiment(
        task=task, model=Model(layers=2, heads=2, d_model=32), training=training
    )
    with tempfile.TemporaryDirectory() as store:
        model = train(experiment, store=store).model
    batch = examples(sampler_of(task), seed=0, index=torch.arange(64), split="validation")

    seen = model.attention(batch.inputs)
    print("attention:", tuple(seen.shape), "= layer, batch, head, query, key")

    def uniform_in_layer_0(layer: int, pattern: Tensor) -> Tensor:
        if layer != 0:
            return pattern
        allowed = (pattern > 0).to(pattern.dtype)
        return allowed / allowed.sum(-1, keepdim=True)

    for name, edit in (("as it is", None), ("layer 0 uniform", uniform_in_layer_0)):
        outputs = model(batch.inputs, attention=edit)
        print(f"{name:16} loss {hop_losses(task, outputs, batch).mean().item():.4f}")


if __name__ == "__main__":
    main()
