"""The experiments of Chen et al., *Unveiling Induction Heads* (NeurIPS 2024), over seeds.

They are: the paper's own setting; other settings (stages, parents, alphabets, windows, and open
choices); how fast a grows; which set wins stage I.
"""

from collections.abc import Callable, Mapping

from hopscope.configs import NgramExperiment, Recipe
from hopscope.papers.chen.rows import (
    ChoiceRow,
    CourseRow,
    GrowthRow,
    SeedRow,
    SettingRow,
    TransferRow,
)
from hopscope.papers.chen.settings import choices, settings
from hopscope.papers.experiment import PaperExperiment, Protocol, measured_by


def _seeds(count: int) -> Callable[[], tuple[Recipe, ...]]:
    """Return a function that makes the recipe of the paper's setting, over this many seeds."""
    return lambda: (NgramExperiment(seeds=tuple(range(count))),)


OVER_SEEDS: Mapping[Protocol, Callable[[], tuple[Recipe, ...]]] = {
    "full": _seeds(20),
    "reduced": _seeds(5),
}
"""The recipes of the paper's setting, by protocol."""
FEWER = "5 seeds instead of 20"

EXPERIMENTS: tuple[PaperExperiment, ...] = (
    PaperExperiment(
        "chen/training",
        "three stages: a set is selected, its heads become copiers, a grows; other chains",
        (SeedRow, TransferRow, CourseRow),
        measured_by("chen.measure_runs:training_rows"),
        OVER_SEEDS,
        method="Appendix B: three symbols, parents at lags 1 and 2, α = 0.1, chains of 100; "
        "descent on 9,000 chains at rate 1, for 2,000, 50,000 and 5,000 epochs. Each seed has "
        "chains of its own. Other lengths and priors are 1,000 fresh chains each.",
        reduced=FEWER,
    ),
    PaperExperiment(
        "chen/settings",
        "other stages, parents, alphabets, windows, and what the paper leaves open",
        (SettingRow,),
        measured_by("chen.measure_runs:setting_rows"),
        {
            "full": lambda: tuple(settings(3).values()),
            "reduced": lambda: tuple(settings(1).values()),
        },
        method="Three models of each setting, each with chains of its own, trained by the paper's "
        "epochs where nothing else is said, beside the set that the paper's rule names. Losses and "
        "distances are over the 1,000 validation chains.",
        reduced="1 seed instead of 3",
    ),
    PaperExperiment(
        "chen/growth",
        "how fast a grows, as trained and by the counts of matches alone",
        (GrowthRow,),
        measured_by("chen.measure_runs:growth_rows"),
        OVER_SEEDS,
        method="The runs of chen/training. Descent on a alone, under the loss that a chain has if "
        "all matches are equally similar and all other positions, too: with the counts of every "
        "chain, and with assumptions taken away.",
        reduced=FEWER,
    ),
    PaperExperiment(
        "chen/choices",
        "which set wins stage I, over seeds, where blurred heads decide",
        (ChoiceRow,),
        measured_by("chen.measure_runs:choice_rows"),
        {
            "full": lambda: tuple(choices(20).values()),
            "reduced": lambda: tuple(choices(5).values()),
        },
        method="Stage I alone, 2,000 epochs, in five settings; beside it the set that the paper's "
        "rule names, and the set that the same rule names through the heads as they begin.",
        reduced=FEWER,
    ),
)
