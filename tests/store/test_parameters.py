"""Parameters of small models in Parquet: they come back as they went in, by parts or merged."""

import numpy as np
import pytest

from hopscope.configs import MarkovExperiment
from hopscope.errors import RunDamaged
from hopscope.store import RunFolder, Store, parameters


@pytest.fixture
def folder(store: Store) -> RunFolder:
    return store.create(MarkovExperiment(seeds=(3, 1)))


def numbers(steps: range, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng([seed, steps.start])
    return {name: generator.random(len(steps)) for name in ("w[0]", "a")}


def test_parts_come_back_as_one_whether_merged_or_not(folder: RunFolder) -> None:
    stretches = (range(3), range(3, 5))
    parts = {}
    for steps in stretches:
        rows = {seed: numbers(steps, seed) for seed in (3, 1)}
        data = parameters.to_parquet(np.array(steps, np.int32), rows)
        parts[parameters.part_name(steps.start, steps.stop)] = data
    folder.commit(parts)
    before = {seed: parameters.values(folder, seed) for seed in (3, 1)}
    for seed, found in before.items():
        assert found["step"].tolist() == list(range(5))
        for name in ("w[0]", "a"):
            expected = np.concatenate([numbers(steps, seed)[name] for steps in stretches])
            np.testing.assert_array_equal(found[name], expected)
    folder.commit({parameters.VALUES: parameters.merged(folder)}, drop=tuple(parts))
    for seed, found in before.items():
        again = parameters.values(folder, seed)
        assert set(again) == set(found)
        assert all((again[name] == found[name]).all() for name in found)


def test_a_run_without_any_has_no_steps(folder: RunFolder) -> None:
    assert parameters.values(folder, 3)["step"].tolist() == []


def test_a_name_that_is_none_is_damage(folder: RunFolder) -> None:
    long = parameters.to_parquet(np.array([0], np.int32), {3: {"a" * 81: np.zeros(1)}})
    folder.commit({parameters.part_name(0, 1): long})
    with pytest.raises(RunDamaged, match="have a name of more than 80 letters, aaaa.*…: no train"):
        parameters.values(folder, 3)


def test_a_name_without_a_row_at_a_step_is_damage(folder: RunFolder) -> None:
    two = parameters.to_parquet(np.array([0, 1], np.int32), {3: {"a": np.zeros(2)}})
    one = parameters.to_parquet(np.array([2], np.int32), {3: {"b": np.zeros(1)}})
    folder.commit({parameters.part_name(0, 2): two, parameters.part_name(2, 3): one})
    with pytest.raises(RunDamaged, match="have not one row for each step and name: restore"):
        parameters.values(folder, 3)
