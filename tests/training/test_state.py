"""A learner's state: packed and unpacked it goes on to the bit, and goes nowhere else."""

import pytest
import torch

from hopscope.configs import Experiment
from hopscope.errors import RunMismatch
from hopscope.runs.checkpoint import OPTIMISERS, saved
from hopscope.store import Store
from hopscope.training.learner import Learner
from hopscope.training.state import pack, unpack

CPU = torch.device("cpu")


def advanced(experiment: Experiment, steps: int) -> Learner:
    learner = Learner(experiment, CPU, "float32")
    for _ in range(steps):
        learner.advance()
    return learner


def test_who_is_unpacked_goes_on_as_if_never_packed(store: Store, tiny: Experiment) -> None:
    learner, folder = advanced(tiny, 4), store.create(tiny)
    folder.commit(pack(learner))
    again = Learner(tiny, CPU, "float32")
    unpack(again, folder)
    assert again.step == 4
    for _ in range(3):
        assert torch.equal(learner.advance(), again.advance())
    assert pack(learner) == pack(again)


def test_another_shape_is_refused(store: Store, tiny: Experiment) -> None:
    folder, learner = store.create(tiny), advanced(tiny, 1)
    files = pack(learner)
    (name,) = [name for name in files if name.startswith(OPTIMISERS)]
    cut = {key: value[..., :1].clone() for key, value in learner.optimiser_state().items()}
    folder.commit({**files, name: saved(cut, tiny.digest(), 1, "float32")})
    with pytest.raises(RunMismatch, match=r"is \(.*\), expected \(.*\)"):
        unpack(Learner(tiny, CPU, "float32"), folder)
