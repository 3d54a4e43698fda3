"""Steps of checkpoints are read off the names of committed files."""

import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import Store
from hopscope.store.checkpoints import check_step, checkpoint_name, checkpoint_steps


def test_steps_come_from_the_names_of_files(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    assert checkpoint_steps(folder) == []
    folder.commit({checkpoint_name(step): b"" for step in (200, 5)})
    assert checkpoint_steps(folder) == [5, 200]
    folder.commit({"checkpoints/step-00000005-00000006.safetensors": b""})
    with pytest.raises(RunDamaged, match=r"names checkpoints/step-0.*, expected checkpoints/step-"):
        checkpoint_steps(folder)


def test_a_step_without_a_checkpoint_is_refused() -> None:
    check_step(5, [0, 5], "it")
    with pytest.raises(ConfigError, match="step is 4; it has no checkpoint there, the nearest is"):
        check_step(4, [0, 5], "it")
