"""What is kept with a run of its circuits, found without torch."""

import pytest

from hopscope.circuits import subject_of
from hopscope.circuits.kept import checkpoint_digest, kept_circuit
from hopscope.configs import Experiment
from hopscope.runs import train
from hopscope.store import Store, gallery
from hopscope.training import Run


@pytest.mark.parametrize("seeds", [(3,), (4, 9)])
def test_the_digest_of_a_checkpoint_is_its_models(
    store: Store, tiny: Experiment, seeds: tuple[int, ...]
) -> None:
    folder = train(tiny.model_copy(update={"seeds": seeds}), store).folder
    for step in (5, 12):
        model = Run(folder).model_at(step)
        members = [model] if len(seeds) == 1 else [model.member(n) for n in range(len(seeds))]
        mine = [checkpoint_digest(folder, step, seed) for seed in seeds]
        assert mine == [subject_of(member).digest() for member in members]


@pytest.mark.parametrize("name", ["demo", "planted"])
def test_the_gallerys_circuits_were_found_in_its_last_weights(name: str) -> None:
    folder = gallery.find(name)
    circuit = kept_circuit(folder, 0)
    assert circuit is not None
    step = int(folder.files("checkpoints/")[-1].removesuffix(".safetensors")[-8:])
    assert checkpoint_digest(folder, step, 0) == circuit.model
