"""Shared fixtures: tiny experiments and models, and a store that lives as long as a test."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sparing  # before hopscope, whose functions it wraps
import torch
from hypothesis import HealthCheck, settings

from hopscope.configs import Experiment, Model, Retrieval
from hopscope.store import Store

if TYPE_CHECKING:  # rooms that are imported here would be imported before types are checked
    from hopscope.models import Transformer
    from hopscope.models.planted import Planted

# How busy a machine is, is no property of what is tested.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

TWO_HOPS = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")


def pytest_configure(config: pytest.Config) -> None:
    """Tests, and the processes that they start, see no GPU, unless `-m cuda` asks for one."""
    asked = config.option.markexpr
    if "cuda" not in asked or "not cuda" in asked:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if not torch.cuda.is_available():  # asked by Triton when it is imported: interpret its kernels
        os.environ["TRITON_INTERPRET"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests for a GPU say what they need where there is none."""
    no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU, and -m cuda")
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(no_gpu)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was not tested, and how to get it."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"not tested: {count} of the tests: {reason}")


def pytest_collection_finish() -> None:
    """What is there by now is no garbage: the collector need not look at it again."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    sparing.next_test()


@pytest.fixture(scope="session", autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Whoever starts the tests in the background may have them ignore these signals."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


@pytest.fixture
def tiny() -> Experiment:
    from stopping import TINY

    return TINY


@pytest.fixture(scope="session")
def two_hops() -> "Planted":
    """A planted model that is small and exact."""
    from hopscope.models.planted import planted

    return planted(TWO_HOPS)


@pytest.fixture
def random_model(two_hops: "Planted") -> "Transformer":
    """Three layers of two heads with large random weights: nothing in it is nearly zero."""
    import torch

    from hopscope.models import Transformer

    config = Model(layers=3, heads=2, d_model=12, init="fan-in")
    model = Transformer.seeded(config, two_hops.task.interface(), 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model
