"""Three claims, which are reproduced, not reproduced and not measured. Some of their words would be
markup in a terminal, on a page or in a table.
"""

from pathlib import Path

from hopscope.configs import Experiment
from hopscope.papers.claim import Claim, Reason
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.judge import Judge
from hopscope.papers.registry import Registry
from hopscope.papers.results import COMPUTED, Results
from hopscope.papers.row import ResultRow


class Measured(ResultRow):
    loss: float


def judge(holds: bool, ours: str) -> Judge[ResultRow]:
    """Says so of any rows."""
    return Judge(ResultRow, lambda _: holds, lambda _: ours, no_seeds="all <seeds>")


COMMAND = 'hopscope ablate gallery/x --head "5.0:value 1=uniform"'
ABOVE, BELOW, WINNER = (
    Claim(
        "musat/above-0.7", "The loss stays high & flat", "§7", "> 0.7", "8 seeds",
        ("musat/fig4",), judge(True, "0.72 [seed 3]"),
    ),
    Claim(
        "musat/below-0.5", "The loss is low", "§7", "< 0.5", "8 seeds", ("musat/fig4",),
        judge(False, "0.72; 0.8 (one; two)"), reason=Reason("It is <0.72>.", COMMAND),
    ),
    Claim(
        "chen/winner", "The parents win | none", "theorem 3", "all", "20 seeds", ("chen/stages",),
        judge(False, "19"), origin="ours",
    ),
)  # fmt: skip
THREE = Registry(
    experiments={
        "musat/fig4": PaperExperiment("musat/fig4", "Figure 4: losses", (Measured,)),
        "musat/fig5": PaperExperiment(
            "musat/fig5", "Figure 5: maps", (Measured,), reduced="2 seeds instead of 8",
            recipes={"reduced": lambda: (Experiment(),)},
        ),
        "chen/stages": PaperExperiment("chen/stages", "Three stages", (Measured,)),
    },
    claims={claim.id: claim for claim in (ABOVE, BELOW, WINNER)},
)  # fmt: skip


def measured(root: Path) -> Results:
    """Results that decide the first two, and others."""
    made = THREE.results(root)
    for name, run in (("musat/fig4", COMPUTED), ("musat/fig5", Experiment().run_name())):
        made.keep(name, run, [Measured(loss=0.72)], "here")
    return made
