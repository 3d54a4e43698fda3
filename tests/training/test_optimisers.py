"""Muon beside its formulas; `test_trainer` compares AdamW with torch's."""

import pytest
import torch
from torch import Tensor

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.training.optimisers import orthogonal
from hopscope.training.trainer import Trainer

CPU = torch.device("cpu")


def experiment(optimiser: str, *seeds: int) -> Experiment:
    training = {"batch": 16, "examples": 256, "validation_examples": 8, "optimiser": optimiser}
    return Experiment(
        task=Retrieval(hops=2, chains=2),
        model=Model(layers=2, heads=2, d_model=32, init="fan-in"),
        training=Training.model_validate(training | {"precision": "float32", "lr": 3e-3}),
        seeds=seeds or (0,),
    )


def exact(matrix: Tensor) -> Tensor:
    """What five rounds make of the singular values, each by itself."""
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    s = s / (s.norm() + 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return (u * s) @ v


@pytest.mark.parametrize("shape", [(8, 8), (6, 20), (20, 6)])
def test_a_matrix_is_made_orthogonal(shape: tuple[int, ...]) -> None:
    matrices = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    for matrix, found in zip(matrices, orthogonal(matrices), strict=True):
        assert torch.allclose(found.double(), exact(matrix), atol=1e-4)
        values = torch.linalg.svdvals(found)
        assert ((values > 0.6) & (values < 1.3)).all()


def test_muon_moves_each_matrix_of_a_block_and_adamw_all_else() -> None:
    recipe = experiment("muon")
    trainer = Trainer(recipe, CPU, "float32")
    model = {name: w.clone() for name, w in trainer.weights.named().items()}
    momentum = {name: torch.zeros_like(w) for name, w in model.items()}
    matrices = {name for name, w in model.items() if name.startswith("blocks.") and w.ndim == 2}
    rest = {name: torch.nn.Parameter(w) for name, w in model.items() if name not in matrices}
    adamw = torch.optim.AdamW(rest.values(), lr=3e-3, weight_decay=0.1)
    assert len(matrices) == 12
    for step in range(3):
        trainer.update(trainer._batch(step))
        for name, gradient in trainer.weights.parts(trainer.weights.master.grad).items():
            if name in rest:
                rest[name].grad = gradient.clone()
                continue
            momentum[name] = 0.95 * momentum[name] + 0.05 * gradient
            update = exact(0.05 * gradient + 0.95 * momentum[name]).float()
            size = 0.2 * max(update.shape) ** 0.5
            model[name] = model[name] * (1 - 3e-3 * 0.1) - 3e-3 * size * update
        adamw.step()
        for name, ours in trainer.weights.named().items():
            theirs = rest[name].data if name in rest else model[name]
            torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)
