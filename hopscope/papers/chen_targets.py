"""What can be reproduced of Chen et al., *Unveiling Induction Heads* (NeurIPS 2024).

One target is the paper's own setting over seeds, the other is every other setting once: other
stages, parents, alphabets and windows, and what the paper leaves open. Nothing here imports torch:
what the targets need is known before anything is trained.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hopscope.configs import Descent, MarkovExperiment, Recipe
from hopscope.papers.results import Protocol, Row
from hopscope.papers.target import Target
from hopscope.store import RunFolder

SETTINGS: Mapping[str, dict[str, Any]] = {
    "the paper's": {},
    "C and W together": {"descent": {"stages": "CW,a"}},
    "all at once": {"descent": {"stages": "CWa"}},
    "batches of 1,000": {"descent": {"stages": "CWa", "epochs": (5_000,), "batch": 1_000}},
    "uniform start": {"process": {"start": "uniform"}},
    **{f"length {n}": {"process": {"length": n}} for n in (10, 20, 50, 200, 400, 1_000)},
    **{f"alpha {a}": {"process": {"alpha": a}} for a in (0.05, 0.2, 0.5, 1.0)},
    "parent 1": {"process": {"parents": (1,)}},
    "parents 1, 3": {"process": {"parents": (1, 3)}},
    "parents 2, 3": {"process": {"parents": (2, 3)}},
    "parents 1, 2, 3, degree 3": {"process": {"parents": (1, 2, 3)}, "model": {"degree": 3}},
    "parents 1, 2, 3, sharp heads": {
        "process": {"parents": (1, 2, 3)}, "model": {"degree": 3, "own": 8.0},
    },
    **{f"alphabet {d}": {"process": {"alphabet": d}} for d in (2, 5, 8, 10)},
    **{
        f"alphabet {d}, sharp heads": {"process": {"alphabet": d}, "model": {"own": 8.0}}
        for d in (8, 10)
    },
    "alphabet 10, length 400": {"process": {"alphabet": 10, "length": 400}},
    "alphabet 10, length 400, sharp heads": {
        "process": {"alphabet": 10, "length": 400}, "model": {"own": 8.0},
    },
    "window 2": {"model": {"window": 2, "heads": 2}},
    "window 4": {"model": {"window": 4, "heads": 4}},
    "window 6": {"model": {"window": 6, "heads": 6}},
    "epsilon 0.01": {"descent": {"epsilon": 0.01}},
    "the empty set, too": {"model": {"constant": True}},
    "unit copies": {"model": {"unit_copies": True}},
    "cross-entropy of a softmax": {"descent": {"loss": "softmax"}},
    "other weights 0.1": {"model": {"other": 0.1}},
    "the authors' program": {
        "process": {"start": "uniform"},
        "model": {"constant": True, "unit_copies": True, "other": 0.1},
        "descent": {"stages": "CWa", "loss": "softmax", "epochs": (50_000,)},
    },
    "full first layer, unit copies": {
        "model": {"first": "full", "unit_copies": True},
        "descent": {"epochs": (2_000, 10_000, 5_000)},
    },
    "full first layer, all at once": {
        "model": {"first": "full"}, "descent": {"stages": "CWa", "epochs": (10_000,)},
    },
}  # fmt: skip
"""What of the paper's experiment is changed; unset epochs are the paper's."""

SMOKE_SETTINGS = ("the paper's", "C and W together", "all at once")
SMOKE_EPOCHS = {"C": 300, "W": 600, "a": 600}
SMOKE_CHAINS = {"chains": 1_000, "validation_chains": 200}


def settings(protocol: Protocol) -> dict[str, MarkovExperiment]:
    """The experiment of each setting."""
    found = {name: MarkovExperiment(**fields) for name, fields in SETTINGS.items()}
    if protocol != "smoke":
        return found
    return {name: _shortened(found[name]) for name in SMOKE_SETTINGS}


def _shortened(experiment: MarkovExperiment) -> MarkovExperiment:
    """The same stages, over in a second."""
    epochs = tuple(
        sum(SMOKE_EPOCHS[letter] for letter in letters)
        for letters, _ in experiment.descent.plan()
    )  # fmt: skip
    short = {**experiment.descent.model_dump(), "epochs": epochs, **SMOKE_CHAINS}
    return MarkovExperiment(**{**experiment.model_dump(), "descent": Descent(**short)})


def _seeds(count: int) -> Callable[[], tuple[Recipe, ...]]:
    """The paper's setting, over this many seeds."""
    return lambda: (MarkovExperiment(seeds=tuple(range(count))),)


def _training(folder: RunFolder, protocol: Protocol) -> list[Row]:
    from hopscope.papers.chen_rows import training_rows

    return training_rows(folder, protocol)


def _settings(folder: RunFolder, protocol: Protocol) -> list[Row]:
    from hopscope.papers.chen_rows import setting_rows

    return setting_rows(folder, protocol)


_SHORT = "1,500 of 57,000 epochs, 1,000 of 9,000 chains"

TARGETS: tuple[Target, ...] = (
    Target(
        name="chen/training",
        shows="three stages: a set is selected, its heads become copiers, a grows; other chains",
        measure=_training,
        recipes={
            "full": _seeds(20),
            "reduced": _seeds(5),
            "smoke": lambda: (_shortened(MarkovExperiment()),),
        },
        method="Appendix B: three symbols, parents at lags 1 and 2, α = 0.1, chains of 100; "
        "descent on 9,000 chains at rate 1, for 2,000, 50,000 and 5,000 epochs. Each seed has "
        "chains of its own. Other lengths and priors are 1,000 fresh chains each.",
        remarks={"reduced": "5 seeds instead of 20", "smoke": f"1 seed; {_SHORT}"},
    ),
    Target(
        name="chen/settings",
        shows="other stages, parents, alphabets, windows, and what the paper leaves open",
        measure=_settings,
        recipes={
            "full": lambda: tuple(settings("full").values()),
            "smoke": lambda: tuple(settings("smoke").values()),
        },
        method="One model of each setting, trained by the paper's epochs where nothing else is "
        "said, beside the set that the paper's rule names. Losses and distances are over the 1,000 "
        "validation chains.",
        remarks={"smoke": f"{len(SMOKE_SETTINGS)} of {len(SETTINGS)} settings; {_SHORT}"},
    ),
)
