"""Trainings that are killed at random moments end as if nothing had happened."""

import time
from pathlib import Path
from random import Random

import pytest
from torture.harness import committed, done, hopscope_, started, train_words, transformer

pytestmark = pytest.mark.slow
KILLS = 12


def step_of(store: Path) -> int:
    return sum(run.manifest.step for run in _runs(store))


def _runs(store: Path) -> list:  # type: ignore[type-arg]
    from hopscope.store import Store

    return Store(store).readable()[0] if store.exists() else []


def test_a_training_that_is_killed_again_and_again_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Anywhere: while it starts, between checkpoints, and in a commit."""
    chance, recipe = Random(45), transformer(steps=200, every=10)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
        words = train_words(tmp_path / name, recipe)
    assert done(hopscope_, tmp_path / "whole", *words).code == 0
    store, steps = tmp_path / "cut" / "runs", [0]
    for number in range(KILLS):
        process = started(tmp_path / f"said-{number}", hopscope_, tmp_path / "cut", *words)
        while number % 3 and process.is_alive() and step_of(store) <= steps[-1]:
            time.sleep(0.005)
        process.join(chance.uniform(0, 0.1))
        process.kill()
        process.join()
        committed(store)
        steps.append(step_of(store))
    assert steps == sorted(steps)
    assert len(set(steps)) > KILLS // 2
    end = done(hopscope_, tmp_path / "cut", *words)
    assert (end.code, end.rude) == (0, "")
    assert committed(tmp_path / "cut" / "runs") == committed(tmp_path / "whole" / "runs")
