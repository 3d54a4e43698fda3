"""The settings in which models of Chen et al. are trained: the paper's, and others."""

from collections.abc import Mapping
from typing import Any

from hopscope.configs import NgramExperiment
from hopscope.errors import ConfigError

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
"""The changes of each setting to the paper's experiment; other fields are the paper's."""

CHOSEN_IN = (
    "the paper's", "parents 1, 2, 3, degree 3", "parents 1, 2, 3, sharp heads", "alphabet 8",
    "alphabet 8, sharp heads",
)  # fmt: skip
"""Settings whose first stage is trained over seeds: some in which the paper's rule is right, and
some in which the initial heads decide."""


def settings(seeds: int) -> dict[str, NgramExperiment]:
    """Return the experiment of each setting, over this number of seeds."""
    return {
        name: NgramExperiment(**fields, seeds=tuple(range(seeds)))
        for name, fields in SETTINGS.items()
    }


def choices(seeds: int) -> dict[str, NgramExperiment]:
    """Return the first stage alone of each setting in CHOSEN_IN, over this number of seeds."""
    return {
        name: NgramExperiment(**first_stage(SETTINGS[name]), seeds=tuple(range(seeds)))
        for name in CHOSEN_IN
    }


def first_stage(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes with only the first stage."""
    return {**changes, "descent": {"stages": "C"}}


def setting_of(experiment: NgramExperiment) -> str:
    """Return the name of a run's setting (of all stages or the first alone); raises ConfigError."""
    for name, changes in SETTINGS.items():
        for fields in (changes, first_stage(changes)):
            if NgramExperiment(**fields, seeds=experiment.seeds) == experiment:
                return name
    raise ConfigError(
        f"no setting of chen/settings is that of {experiment.run_name()}: `hopscope presets` lists "
        "those of the paper"
    )


def is_sharp(changes: Mapping[str, Any]) -> bool:
    """Return whether initial heads have nearly all of their attention at one lag."""
    return "own" in changes.get("model", {})


def apart_from_heads(changes: Mapping[str, Any]) -> str:
    """Return the name of the setting with the same changes, except that its initial heads are as in
    the paper.
    """
    others = {
        group: {name: value for name, value in fields.items() if name != "own"}
        for group, fields in changes.items()
    }
    blurred = {group: fields for group, fields in others.items() if fields}
    return next(name for name, its in SETTINGS.items() if its == blurred)
