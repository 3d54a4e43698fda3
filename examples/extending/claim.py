"""A claim: a sentence with a number, measurements, and a judge that gives the verdict.

The sentence: a causal transformer needs one more layer each time the number of hops doubles.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from hopscope.papers.claim import Claim
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.judge import Judge
from hopscope.papers.registry import Registry
from hopscope.papers.results import COMPUTED, machine
from hopscope.papers.row import ResultRow
from hopscope.theory import depths


class LayersRow(ResultRow):
    """One measurement: the layers for a number of hops, and for twice as many."""

    hops: int
    layers: int
    doubled: int


def computed() -> list[LayersRow]:
    """The rows of the experiment. An experiment with trained models has `recipes` and `measure`."""
    return [
        LayersRow(hops=hops, layers=depths(hops).causal, doubled=depths(2 * hops).causal)
        for hops in (1, 2, 4, 8, 16)
    ]


JUDGE = Judge(
    LayersRow,
    holds=lambda row: row.doubled == row.layers + 1,
    ours=lambda rows: " → ".join(str(row.layers) for row in rows),
    who=lambda row: row.hops,
    no_seeds="exact, for 1 to 16 hops",  # with trained models, a verdict needs three seeds
)
"""Turns rows into a verdict: whether the claim holds for each row, and our value as text."""

EXPERIMENT = PaperExperiment("mine/layers", "layers by hops", (LayersRow,), compute=computed)
CLAIM = Claim(
    id="mine/a-layer-for-each-doubling",
    says="Each time the number of hops doubles, one layer more is needed.",
    where="this example",
    paper="+ 1",
    how="the layers for 1, 2, 4, 8, 16 hops, and for twice as many",
    needs=("mine/layers",),
    judge=JUDGE,
)
MINE = Registry(experiments={EXPERIMENT.name: EXPERIMENT}, claims={CLAIM.id: CLAIM})


def main() -> None:
    with TemporaryDirectory() as folder:
        results = MINE.results(Path(folder))
        print("before: ", CLAIM.finding(results).verdict)
        results.keep(EXPERIMENT.name, COMPUTED, EXPERIMENT.compute(), machine(1))
        found = CLAIM.finding(results)
        print("after:  ", found.verdict, f"({found.ours}; {found.evidence})")


if __name__ == "__main__":
    main()
