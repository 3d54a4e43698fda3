"""Models whose circuits are known, and grades for what a tool finds in them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from hopscope.configs import ConditionalRetrieval, Retrieval, VectorTask
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.tasks import dataset, hop_losses
from hopscope.theory import Path

Head = tuple[int, int]
Row = tuple[int, int, Role]


@dataclass(frozen=True)
class Case:
    """A planted model to be taken apart."""

    name: str
    grown: Planted


@dataclass(frozen=True)
class Score:
    """Precision and recall."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class Found:
    """What a tool makes of a model, at each granularity it knows."""

    seconds: float
    heads: Score
    rows: Score | None = None
    paths: Score | None = None
    notes: tuple[tuple[str, object], ...] = ()


def retrieval(hops: int, chains: int) -> Retrieval:
    symbols = chains * (hops + 1)
    return Retrieval(hops=hops, chains=chains, dim=symbols + symbols % 2, symbols="one-hot")


def triple(chains: int, decoys: int) -> ConditionalRetrieval:
    dim = chains * (4 + decoys)
    return ConditionalRetrieval(chains=chains, decoys=decoys, dim=dim, symbols="one-hot")


def cases(quick: bool) -> Iterator[Case]:
    """Each task plain, with every head doubled, and with an idle layer and idle heads."""
    if quick:
        yield Case("retrieval, 1 hop, 2 chains", planted(retrieval(1, 2)))
        yield Case("retrieval, 2 hops, 2 chains, twins", planted(retrieval(2, 2), twins=True))
        yield Case("triple, 2 chains", planted(triple(2, 0)))
        return
    tasks: dict[str, VectorTask] = {
        f"retrieval, {hops} hop{'s' * (hops > 1)}, {chains} chains": retrieval(hops, chains)
        for hops in (1, 2, 3, 4, 5, 6, 7)
        for chains in ((2, 4) if hops <= 4 else (2,))
    }
    tasks |= {"triple, 2 chains": triple(2, 0), "triple, 2 chains, decoy": triple(2, 1)}
    tasks |= {"triple, 3 chains": triple(3, 0)}
    for name, task in tasks.items():
        yield Case(name, planted(task))
        yield Case(f"{name}, twins", planted(task, twins=True))
        heads = 3 if isinstance(task, Retrieval) else 4
        yield Case(f"{name}, spares", planted(task, spare_layers=[1], heads=heads))


def more_cases() -> Iterator[Case]:
    """Unit vectors in place of one-hot symbols, other numbers of chains and decoys."""
    for hops, chains in ((1, 4), (2, 4), (3, 4), (4, 4), (5, 4), (3, 2), (3, 7)):
        task = Retrieval(hops=hops, chains=chains, symbols="sphere", dim=64)
        yield Case(f"retrieval, {hops} hops, {chains} chains, unit vectors", planted(task))
    for hops, chains in ((1, 7), (2, 7), (3, 3), (3, 7)):
        yield Case(f"retrieval, {hops} hops, {chains} chains", planted(retrieval(hops, chains)))
    for decoys in (0, 1, 3):
        vectors = ConditionalRetrieval(chains=4, decoys=decoys, dim=64, symbols="sphere")
        yield Case(f"triple, 4 chains, {decoys} decoys, unit vectors", planted(vectors))
    yield Case("triple, 4 chains, 3 decoys", planted(triple(4, 3)))


@torch.no_grad()
def add_noise(model: Transformer, level: float) -> None:
    """Gaussian noise on every matrix, relative to the rms of its numbers other than 0."""
    generator = torch.Generator().manual_seed(0)
    for name, weight in model.named_parameters():
        if name.endswith("weight") and weight.any():
            scale = level * weight[weight != 0].square().mean().sqrt()
            weight.add_(scale * torch.randn(weight.shape, generator=generator))


@torch.no_grad()
def loss_over_guess(case: Case, examples: int) -> float:
    """Its loss, where answers that ignore how the facts connect have 1."""
    task = case.grown.task
    batch = dataset(task, 0, examples, "validation")
    loss = hop_losses(task, case.grown.model(batch.inputs), batch).mean()
    return float(f"{loss / task.chance():.2g}")


def grade(found: set[Any], true: set[Any]) -> Score:
    hits = len(found & true)
    return Score(hits / max(1, len(found)), hits / len(true))


def heads_of(paths: Iterable[Path]) -> set[Head]:
    return {(path.layer, path.head) for path in paths}


def rows_of(paths: Iterable[Path]) -> set[Row]:
    return {(path.layer, path.head, path.destination) for path in paths}
