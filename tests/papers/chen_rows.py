"""Rows of Chen et al. as they would be if all were as the paper says."""

import json
from typing import Any, Literal

from hopscope.papers.chen.rows import (
    ChoiceRow,
    CourseRow,
    GrowthRow,
    MeanLosses,
    SeedRow,
    SettingRow,
    TransferRow,
)
from hopscope.papers.chen.settings import SETTINGS
from hopscope.papers.row import ResultRow

LENGTH = {"length 10": 0.05, "length 20": 0.02, "length 50": 0.01, "length 200": 0.004,
          "length 400": 0.002, "length 1000": 0.001}  # fmt: skip
LOSSES = MeanLosses(model=0.25, gih=0.3, bayes=0.2, truth=0.1)


def seed_row(seed: int) -> SeedRow:
    return SeedRow(
        what="seed", seed=seed, parents=(1, 2), chosen_lags=(1, 2), share_after_stage_1=1.0,
        attention_before=(0.9,), attention_after=(0.995, 0.996), a=6.0 + seed,
        slope_by_log_epoch=1.05, r2=0.999, one_over_gap=1.0, distance_begin=0.3,
        distance_end=0.005, seconds=1.0,
    )  # fmt: skip


def transfer_row(
    seed: int, varied: Literal["length", "alpha"], length: int, alpha: float
) -> TransferRow:
    return TransferRow(
        what="transfer", seed=seed, varied=varied, length=length, alpha=alpha, distance=0.01,
        matched=1.0, loss=LOSSES,
    )  # fmt: skip


def course_row(seed: int) -> CourseRow:
    """Three stages of 10 epochs, each recorded at its end."""
    rising = (0.0, 0.5, 0.9, 1.0)
    return CourseRow(
        what="course", seed=seed, stages=(("C", 10), ("W", 10), ("a", 10)), epochs=(0, 10, 20, 30),
        shares={"{1}": rising[::-1], "{1,2}": rising}, attention={"head 1 to lag 1": rising},
        a=rising, train=rising[::-1], validation=rising[::-1], distance=(None, None, 0.3, 0.1),
    )  # fmt: skip


def growth_row(seed: int) -> GrowthRow:
    slopes = {"trained": 1.4, "counts": 1.39, "found": 1.3, "even": 0.9, "found and even": 1.01}
    courses = dict.fromkeys(slopes, (0.01, 2.0, 4.0))
    return GrowthRow(
        what="growth", seed=seed, one_over_gap=1.0, slopes=slopes, epochs=(0, 10, 100),
        courses=courses, seconds=1.0,
    )  # fmt: skip


def choice_row(setting: str, seed: int) -> ChoiceRow:
    return ChoiceRow(
        what="choice", setting=setting, seed=seed, predicted={"paper": (1, 2), "heads": (1, 2)},
        chosen_lags=(1, 2), share=1.0, seconds=1.0,
    )  # fmt: skip


def setting_row(name: str, seed: int = 0) -> SettingRow:
    return SettingRow(
        what="setting", setting=name, seed=seed, changes=json.loads(json.dumps(SETTINGS[name])),
        seconds=1.0, parents=(1, 2), predicted={"paper": (1, 2), "heads": (1, 2)},
        chosen_lags=(1, 2), share=1.0, attention=(0.995, 0.996), a=6.0, slopes_of_a={"1000": 0.5},
        loss=LOSSES, expected=LOSSES, distance=LENGTH.get(name, 0.006), matched=1.0,
    )  # fmt: skip


def training() -> list[ResultRow]:
    """The table of chen/training, of three seeds."""
    return [
        row
        for seed in range(3)
        for row in (
            seed_row(seed),
            transfer_row(seed, "length", 10, 0.1),
            transfer_row(seed, "alpha", 100, 0.5),
            course_row(seed),
        )
    ]


EPOCHS = {"C": 300, "W": 600, "a": 600}


def _short(changes: dict[str, Any]) -> dict[str, Any]:
    descent = {"stages": "C,W,a", **changes.get("descent", {})}
    epochs = tuple(sum(EPOCHS[one] for one in stage) for stage in descent["stages"].split(","))
    few = {"epochs": epochs, "chains": 500, "validation_chains": 100}
    return {**changes, "descent": {**descent, **few}}


TINY = {name: _short(SETTINGS[name]) for name in ("the paper's", "C and W together", "all at once")}
"""Settings whose trainings are over in a second."""
