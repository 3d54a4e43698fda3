"""A trainer's state: packed and unpacked it goes on to the bit, and goes nowhere else."""

import pytest
import torch

from hopscope.configs import Experiment
from hopscope.errors import RunMismatch
from hopscope.runs.checkpoint import to_safetensors
from hopscope.store import Store
from hopscope.store.checkpoints import optimiser_name
from hopscope.training.stepper import pack, unpack
from hopscope.training.trainer import Trainer

CPU = torch.device("cpu")


def advanced(experiment: Experiment, steps: int) -> Trainer:
    trainer = Trainer(experiment, CPU, "float32")
    for _ in range(steps):
        trainer.advance()
    return trainer


def test_who_is_unpacked_goes_on_as_if_never_packed(store: Store, tiny: Experiment) -> None:
    trainer, folder = advanced(tiny, 4), store.create(tiny)
    folder.commit(pack(trainer), precision="float32")
    again = Trainer(tiny, CPU, "float32")
    unpack(again, folder)
    assert again.step == 4
    for _ in range(3):
        assert torch.equal(trainer.advance(), again.advance())
    assert pack(trainer) == pack(again)


def test_another_shape_is_refused(store: Store, tiny: Experiment) -> None:
    folder, trainer = store.create(tiny), advanced(tiny, 1)
    cut = {key: value[..., :1].clone() for key, value in trainer.optimiser.state().items()}
    for state, text in ((cut, r"is \(.*\), expected \(.*\)"), ({}, "is missing, expected")):
        files = {**pack(trainer), optimiser_name(1): to_safetensors(state)}
        folder.commit(files, precision="float32")
        with pytest.raises(RunMismatch, match=text):
            unpack(Trainer(tiny, CPU, "float32"), folder)
    with pytest.raises(RunMismatch, match="trained in float32, but this machine computes in bf16"):
        unpack(Trainer(tiny, CPU, "bf16"), folder)
