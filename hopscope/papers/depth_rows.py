"""Rows of results from theory: how many layers D hops need, and planted proofs that they do."""

from hopscope.configs import Retrieval
from hopscope.papers.results import Protocol, Row
from hopscope.theory import depths, simulated_depth

MOST_HOPS = 64
PLANTED = (1, 2, 3, 4, 5)
EXAMPLES = 64


def depth_rows(protocol: Protocol) -> list[Row]:
    """A row per D: the paper's bound, and the exact minimum by closed form and by simulation."""
    most = MOST_HOPS if protocol != "smoke" else 8
    rows = []
    for hops in range(1, most + 1):
        exact = depths(hops)
        rows.append(
            {
                "hops": hops,
                "theorem_1": exact.theorem_1,
                "bidirectional": exact.bidirectional,
                "causal": exact.causal,
                "simulated": {
                    "bidirectional": simulated_depth(hops, causal=False),
                    "causal": simulated_depth(hops),
                },
            }
        )
    return rows + [_planted(hops) for hops in PLANTED if hops <= most]


def _planted(hops: int) -> Row:
    """A transformer written by hand with one head in each of the fewest layers."""
    import torch

    from hopscope.models.planted import planted
    from hopscope.tasks import dataset, hop_losses

    task = Retrieval(hops=hops, symbols="sphere", dim=64)
    made = planted(task)
    batch = dataset(task, 0, EXAMPLES, "validation")
    with torch.no_grad():
        losses = hop_losses(task, made.model(batch.inputs), batch)
    config = made.model.config
    return {
        "planted": hops,
        "layers": config.layers,
        "heads": config.heads,
        "error": float(losses.mean()),
    }
