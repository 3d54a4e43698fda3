"""A claim: a sentence with a number in it, what was measured, and a judge that says which it is.

The sentence: a causal transformer needs one layer more each time the number of hops doubles.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hopscope.papers.claim import Claim, Finding, verdict
from hopscope.papers.registry import Registry
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.theory import depths


class LayersRow(Row):
    """One measurement: so many hops need so many layers."""

    hops: int
    layers: int


def computed(_: Protocol) -> Sequence[LayersRow]:
    """The rows of the target. One that needs trained models has `recipes` and `measure` instead."""
    return [LayersRow(hops=hops, layers=depths(hops).causal) for hops in (1, 2, 4, 8, 16)]


def judge(tables: Sequence[Table]) -> Finding:
    """From rows alone: a value as the paper would write it, a verdict, and what it rests on."""
    layers = [row.layers for row in tables[0].of(LayersRow)]
    steps = [after - before for before, after in pairwise(layers)]
    ours = " → ".join(map(str, layers))
    return Finding(ours, verdict({*steps} == {1}), "exact, for 1 to 16 hops")


TARGET = Target("mine/layers", "layers by hops", (LayersRow,), compute=computed)
CLAIM = Claim(
    id="mine/a-layer-for-each-doubling",
    says="Each time the number of hops doubles, one layer more is needed.",
    where="this example",
    paper="+ 1",
    how="the difference between neighbours of 1, 2, 4, 8, 16 hops is 1",
    targets=("mine/layers",),
    judge=judge,
)
MINE = Registry(targets={TARGET.name: TARGET}, claims={CLAIM.id: CLAIM})


def main() -> None:
    with TemporaryDirectory() as folder:
        results = MINE.results(Path(folder))
        print("before: ", CLAIM.finding(results).verdict)
        results.save(Table(TARGET.name, "full", tuple(TARGET.compute("full"))))
        found = CLAIM.finding(results)
        print("after:  ", found.verdict, f"({found.ours}; {found.evidence})")


if __name__ == "__main__":
    main()
