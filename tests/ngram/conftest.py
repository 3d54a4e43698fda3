"""A small n-gram experiment, for those that train one."""

from collections.abc import Callable

import pytest

from hopscope.configs import NgramExperiment

SMALL = {
    "stages": "C,W,a", "epochs": (20, 30, 20), "chains": 100, "validation_chains": 30, "records": 8,
}  # fmt: skip


def small(*, descent: dict[str, object] | None = None, **fields: object) -> NgramExperiment:
    return NgramExperiment(descent=SMALL | (descent or {}), **fields)


@pytest.fixture(scope="session")
def experiment() -> Callable[..., NgramExperiment]:
    """Makes one with these fields, and of its descent these."""
    return small
