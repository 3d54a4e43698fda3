"""What can be reproduced of Chen et al., *Unveiling Induction Heads* (NeurIPS 2024).

Over seeds: the paper's own setting; all others, with other stages, parents, alphabets and windows,
and with what the paper leaves open; how fast a grows; which set wins stage I. Nothing here imports
torch: what the targets need is known before anything is trained.
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
from hopscope.papers.chen.settings import (
    SETTINGS,
    SMOKE_SETTINGS,
    choices,
    settings,
    shortened,
)
from hopscope.papers.row import Row
from hopscope.papers.table import Protocol
from hopscope.papers.target import Target
from hopscope.store import RunFolder


def _seeds(count: int) -> Callable[[], tuple[Recipe, ...]]:
    """The paper's setting, over this many seeds."""
    return lambda: (NgramExperiment(seeds=tuple(range(count))),)


def _training(folder: RunFolder, protocol: Protocol) -> list[Row]:
    from hopscope.papers.chen.measure_runs import training_rows

    return training_rows(folder, protocol)


def _settings(folder: RunFolder, protocol: Protocol) -> list[SettingRow]:
    from hopscope.papers.chen.measure_runs import setting_rows

    return setting_rows(folder, protocol)


def _growth(folder: RunFolder, protocol: Protocol) -> list[GrowthRow]:  # noqa: ARG001
    from hopscope.papers.chen.measure_growth import growth_rows

    return growth_rows(folder)


def _choices(folder: RunFolder, protocol: Protocol) -> list[ChoiceRow]:
    from hopscope.papers.chen.measure_choices import choice_rows

    return choice_rows(folder, protocol)


_SHORT = "1,500 of 57,000 epochs, 1,000 of 9,000 chains"
OVER_SEEDS: Mapping[Protocol, Callable[[], tuple[Recipe, ...]]] = {
    "full": _seeds(20),
    "reduced": _seeds(5),
    "smoke": lambda: (shortened(NgramExperiment()),),
}
"""The paper's setting."""
FEWER: Mapping[Protocol, str] = {
    "reduced": "5 seeds instead of 20",
    "smoke": f"1 seed; {_SHORT}",
}
"""What the shorter protocols of it leave out."""

TARGETS: tuple[Target, ...] = (
    Target(
        name="chen/training",
        shows="three stages: a set is selected, its heads become copiers, a grows; other chains",
        rows=(SeedRow, TransferRow, CourseRow),
        measure=_training,
        recipes=OVER_SEEDS,
        method="Appendix B: three symbols, parents at lags 1 and 2, α = 0.1, chains of 100; "
        "descent on 9,000 chains at rate 1, for 2,000, 50,000 and 5,000 epochs. Each seed has "
        "chains of its own. Other lengths and priors are 1,000 fresh chains each.",
        remarks=FEWER,
    ),
    Target(
        name="chen/settings",
        shows="other stages, parents, alphabets, windows, and what the paper leaves open",
        rows=(SettingRow,),
        measure=_settings,
        recipes={
            "full": lambda: tuple(settings(3, "full").values()),
            "reduced": lambda: tuple(settings(1, "reduced").values()),
            "smoke": lambda: tuple(settings(1, "smoke").values()),
        },
        method="Three models of each setting, each with chains of its own, trained by the paper's "
        "epochs where nothing else is said, beside the set that the paper's rule names. Losses and "
        "distances are over the 1,000 validation chains.",
        remarks={
            "reduced": "1 seed instead of 3",
            "smoke": f"1 seed; {len(SMOKE_SETTINGS)} of {len(SETTINGS)} settings; {_SHORT}",
        },
    ),
    Target(
        name="chen/growth",
        shows="how fast a grows, as trained and by the counts of matches alone",
        rows=(GrowthRow,),
        measure=_growth,
        recipes=OVER_SEEDS,
        method="The runs of chen/training. Descent on a alone, under the loss that a chain has if "
        "all matches are equally similar and all other positions, too: with the counts of every "
        "chain, and with assumptions taken away.",
        remarks=FEWER,
    ),
    Target(
        name="chen/choices",
        shows="which set wins stage I, over seeds, where blurred heads decide",
        rows=(ChoiceRow,),
        measure=_choices,
        recipes={
            "full": lambda: tuple(choices(20, "full").values()),
            "reduced": lambda: tuple(choices(5, "reduced").values()),
            "smoke": lambda: tuple(choices(1, "smoke").values()),
        },
        method="Stage I alone, 2,000 epochs, in five settings; beside it the set that the paper's "
        "rule names, and the set that the same rule names through the heads as they begin.",
        remarks={"reduced": "5 seeds instead of 20", "smoke": "1 seed, 300 epochs, 1,000 chains"},
    ),
)
