"""A learner's state: packed and unpacked it goes on to the bit, and goes nowhere else."""

import pytest
import torch

from hopscope.configs import Experiment
from hopscope.errors import RunMismatch
from hopscope.runs.checkpoint import to_safetensors
from hopscope.store import Store
from hopscope.store.checkpoints import optimiser_name
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
    folder.commit(pack(learner), precision="float32")
    again = Learner(tiny, CPU, "float32")
    unpack(again, folder)
    assert again.step == 4
    for _ in range(3):
        assert torch.equal(learner.advance(), again.advance())
    assert pack(learner) == pack(again)


def test_another_shape_is_refused(store: Store, tiny: Experiment) -> None:
    folder, learner = store.create(tiny), advanced(tiny, 1)
    cut = {key: value[..., :1].clone() for key, value in learner.optimiser.state().items()}
    for state, text in ((cut, r"is \(.*\), expected \(.*\)"), ({}, "is missing, expected")):
        files = {**pack(learner), optimiser_name(1): to_safetensors(state)}
        folder.commit(files, precision="float32")
        with pytest.raises(RunMismatch, match=text):
            unpack(Learner(tiny, CPU, "float32"), folder)
    with pytest.raises(RunMismatch, match="trained in float32, but this machine computes in bf16"):
        unpack(Learner(tiny, CPU, "bf16"), folder)
