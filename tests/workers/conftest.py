"""Small recipes, and a Ray of two machines, which takes seconds to start."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stopping import TINY
from waiting import smallest

from hopscope.configs import Experiment, NgramExperiment

DESCENT = {"chains": 60, "validation_chains": 20, "records": 4, "epochs": (4, 4, 4)}


@pytest.fixture
def members(tiny: Experiment) -> tuple[Experiment, ...]:
    """Of a fleet of six, the recipe of each."""
    return tuple(tiny.replace(seeds=(seed,)) for seed in range(6))


@pytest.fixture(scope="session")
def five() -> tuple[Experiment, ...]:
    """Recipes of six steps that differ in their seeds alone."""
    short = smallest(TINY, steps=6, batch=4, checkpoint_every=4)
    return tuple(short.replace(seeds=(seed,)) for seed in (2, 0, 1, 4, 3))


@pytest.fixture(scope="session")
def ngram() -> NgramExperiment:
    """A recipe of another kind, twelve epochs long."""
    return NgramExperiment.model_validate({"descent": DESCENT})


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The folder of a Ray of two machines, which holds its address and its token."""
    folder = Path(tempfile.mkdtemp(prefix="hs-", dir="/tmp"))  # names of sockets: 107 bytes
    command = [sys.executable, str(Path(__file__).with_name("mini_cluster.py")), str(folder)]
    # The tests see no GPU; those of this cluster are numbers only.
    settings = {name: each for name, each in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=settings
        )
    try:
        until = time.monotonic() + 240
        while not (folder / "address").exists():
            assert started.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.1)
        yield folder
    finally:
        started.communicate(timeout=240)
        shutil.rmtree(folder)


@pytest.fixture
def ray(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of that Ray, in whose environment this test runs."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(cluster / "token"))
    return (cluster / "address").read_text()
