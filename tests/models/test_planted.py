"""Planted circuits solve their tasks, in the fewest layers, and by exactly the paths they state."""

from typing import Any

import pytest
import torch
from every_task import one_hot
from torch import Tensor

from hopscope.configs import ConditionalRetrieval, KHop, Retrieval, VectorTask
from hopscope.errors import ModelError
from hopscope.models import AttentionEdit
from hopscope.models.planted import Planted, planted
from hopscope.tasks import Batch, dataset, hop_losses
from hopscope.theory import Path, depths, flow

EXAMPLES = 64


def sphere(hops: int, chains: int = 4, dim: int = 64) -> Retrieval:
    return Retrieval(hops=hops, chains=chains, symbols="sphere", dim=dim)


def conditional(decoys: int, symbols: str = "one-hot") -> ConditionalRetrieval:
    dim = 4 * (4 + decoys) if symbols == "one-hot" else 64
    return ConditionalRetrieval(symbols=symbols, dim=dim, decoys=decoys)


def losses(grown: Planted, batch: Batch, edit: AttentionEdit | None = None) -> Tensor:
    with torch.no_grad():
        return hop_losses(grown.task, grown.model(batch.inputs, attention=edit), batch)


TASKS = [
    *(one_hot(hops) for hops in range(1, 8)),
    *(sphere(hops) for hops in range(1, 8)),
    *(one_hot(3, chains) for chains in (1, 2, 7)),
    *(sphere(5, chains, dim=128) for chains in (1, 2, 7)),
    *(conditional(decoys, s) for decoys in (0, 1, 3) for s in ("one-hot", "sphere")),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda t: f"{t.kind}-{t.symbols}-{t.chains}-{t.dim}")
def test_it_solves_the_task_with_fresh_examples(task: VectorTask) -> None:
    grown = planted(task)
    assert grown.model.interface == task.interface()
    batch = dataset(task, 3, EXAMPLES, "validation")
    bound = 1e-6 if task.symbols == "one-hot" else 1e-3
    worst = losses(grown, batch).max()
    assert worst < bound
    # Unit vectors vary by 1/dim per number: hold the error against that as well.
    if task.chains > 1:
        assert worst < 0.01 * task.chance()


def test_it_has_the_fewest_causal_layers_and_one_head_each() -> None:
    for hops in (*range(1, 8), 15):
        config = planted(one_hot(hops)).model.config
        assert config.layers == depths(hops).causal
        assert (config.heads, config.causal, config.mlp, config.norm) == (1, True, False, "none")
    task = conditional(1)
    assert planted(task).model.config.layers == flow(task.graph()).minimum["z"]


def even(pattern: Tensor) -> Tensor:
    """Attention of this shape that is the same for every position that may be seen."""
    seen = torch.ones_like(pattern).tril(pattern.shape[-1] - pattern.shape[-2])
    return seen / seen.sum(-1, keepdim=True)


def without(path: Path, task: VectorTask, batch: Batch) -> AttentionEdit:
    """An edit that makes the destination of one path, in its head alone, attend evenly."""
    destination = batch.roles.role == task.roles().index(path.destination)

    def edit(layer: int, pattern: Tensor) -> Tensor:
        if layer != path.layer:
            return pattern
        edited, rows = pattern.clone(), destination[:, -pattern.shape[-2] :, None]
        edited[:, path.head] = torch.where(rows, even(pattern)[:, path.head], edited[:, path.head])
        return edited

    return edit


BROKEN: list[tuple[VectorTask, dict[str, Any]]] = [
    (one_hot(1), {}),
    (one_hot(5), {}),
    (one_hot(7), {}),
    (sphere(6), {}),
    (conditional(1), {}),
    (one_hot(3), {"spare_layers": (0, 3), "heads": 3}),
]


@pytest.mark.parametrize(("task", "more"), BROKEN, ids=lambda its: str(its)[:40])
def test_its_paths_are_needed_attended_fully_and_enough(
    task: VectorTask, more: dict[str, Any]
) -> None:
    grown = planted(task, **more)
    batch = dataset(task, 0, 50, "validation")
    attention = grown.model.attention(batch.inputs)
    same = batch.roles.chain[:, :, None] == batch.roles.chain[:, None, :]
    whole = losses(grown, batch).mean()
    for path in grown.paths:
        cut = losses(grown, batch, without(path, task, batch)).mean()
        assert cut > max(1e3 * whole, 0.02 * task.chance()), path
        destination, source = (
            batch.roles.role == task.roles().index(role) for role in (path.destination, path.source)
        )
        looked = attention[path.layer, :, path.head] * (source[:, None, :] & same)
        assert looked.sum(-1)[destination].min() > 0.999, path

    def only_paths(layer: int, pattern: Tensor) -> Tensor:
        """Every row that belongs to no path becomes even."""
        edited = even(pattern)
        for path in grown.paths:
            if path.layer == layer:
                destination = batch.roles.role == task.roles().index(path.destination)
                rows, head = destination[:, -pattern.shape[-2] :, None], path.head
                edited[:, head] = torch.where(rows, pattern[:, head], edited[:, head])
        return edited

    assert losses(grown, batch, only_paths).max() < 1e-6


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: planted(Retrieval()), "gaussian with dim 4, .* use one-hot, or sphere"),
        (lambda: planted(sphere(2, dim=16)), "sphere with dim 16, .* dim >= 64"),
        (lambda: planted(one_hot(120, chains=9)), "make 2169 positions; .* up to 2000"),
        (lambda: planted(KHop()), "task is khop; planted are retrieval and conditional"),
        (lambda: planted(ConditionalRetrieval(facts=("a->b",))), "the facts are a->b; planted"),
        (lambda: planted(one_hot(2).ordered("shuffled")), "'backward'.*got order 'shuffled'"),
        (lambda: planted(conditional(0), heads=1), "heads is 1; this circuit has 2 in one layer"),
        (lambda: planted(one_hot(1), spare_layers=(7,)), r"spare layers are \[7\]; .* 0 … 2"),
        (lambda: planted(Retrieval(hops=1, chains=1, symbols="one-hot", dim=2)), "turns 2.0 rad"),
    ],
)
def test_what_cannot_be_planted_is_refused(ask: object, text: str) -> None:
    with pytest.raises(ModelError, match=text) as caught:
        ask()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
