"""Measure how many layers D hops need, by theory and by planted transformers."""

from hopscope.configs import Retrieval
from hopscope.papers.musat.rows import DepthRow, Layers, PlantedRow
from hopscope.theory import depths, simulated_depth

MOST_HOPS = 64
"""Largest number of hops for which layers are counted and simulated."""
PLANTED = (1, 2, 3, 4, 5)
"""Numbers of hops for which a transformer is planted."""
EXAMPLES = 64
"""Number of fresh examples for the loss of a planted transformer."""


def depth_rows(most: int = MOST_HOPS) -> list[DepthRow | PlantedRow]:
    """Return a row per D: the paper's bound, and the exact minimum in closed form and simulated.

    Further rows are of planted transformers.
    """
    counted = [_counted(hops) for hops in range(1, most + 1)]
    return [*counted, *(_planted(hops) for hops in PLANTED if hops <= most)]


def _counted(hops: int) -> DepthRow:
    exact = depths(hops)
    simulated = Layers(
        bidirectional=simulated_depth(hops, causal=False), causal=simulated_depth(hops)
    )
    return DepthRow(
        hops=hops,
        theorem_1=exact.theorem_1,
        bidirectional=exact.bidirectional,
        causal=exact.causal,
        simulated=simulated,
    )


def _planted(hops: int) -> PlantedRow:
    """Measure a planted transformer with one head in each of the fewest layers."""
    import torch

    from hopscope.models.planted import planted
    from hopscope.tasks import dataset, hop_losses

    task = Retrieval(hops=hops, symbols="sphere", dim=64)
    made = planted(task)
    batch = dataset(task, 0, EXAMPLES, "validation")
    with torch.no_grad():
        losses = hop_losses(task, made.model(batch.inputs), batch)
    config = made.model.config
    return PlantedRow(
        planted=hops, layers=config.layers, heads=config.heads, error=float(losses.mean())
    )
