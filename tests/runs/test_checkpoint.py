"""Checkpoints: what comes back, what the next commit replaces, and what is refused."""

from itertools import product

import pytest
import safetensors.torch
import torch

from hopscope.circuits.saved import checkpoint_digest
from hopscope.configs import Experiment
from hopscope.errors import RunDamaged
from hopscope.runs.checkpoint import read_tensors, to_safetensors, weights_at
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name, diverged, optimiser_name, outdated

STATE = {"b": torch.tensor([1.5, -2.0]), "a": torch.ones(2, 2)}


@pytest.fixture
def folder(store: Store, tiny: Experiment) -> RunFolder:
    return store.create(tiny)


def test_what_is_written_comes_back(folder: RunFolder) -> None:
    data = to_safetensors(STATE)
    folder.commit({checkpoint_name(7): data})
    state = weights_at(folder, 7)
    assert {name: tensor.tolist() for name, tensor in state.items()} == {
        name: tensor.tolist() for name, tensor in STATE.items()
    }
    assert to_safetensors(STATE) == data  # the same bytes
    for kind, numbers in product((torch.float16, torch.bfloat16), ([1.5, -2.0], 1.5)):
        stored = torch.tensor(numbers).to(kind)  # for keeping alone
        folder.commit({checkpoint_name(8): to_safetensors({"a": stored})})
        found = weights_at(folder, 8)["a"]
        assert (found.dtype, found.tolist()) == (torch.float32, numbers)


def test_the_next_commit_replaces_the_optimiser_and_what_was_not_planned(folder: RunFolder) -> None:
    none = "it broke; the last good checkpoint is none: stop"
    assert str(diverged(folder, "it broke", "stop")) == none
    files = dict.fromkeys(map(checkpoint_name, (0, 5, 7)), to_safetensors(STATE))
    folder.commit({**files, optimiser_name(7): to_safetensors(STATE)})
    assert "/checkpoints/step-00000007.safetensors: stop" in str(diverged(folder, "it", "stop"))
    assert outdated(folder, {0, 5, 10}) == (optimiser_name(7), checkpoint_name(7))


def header(text: bytes) -> bytes:
    """A file of safetensors with this header and no numbers."""
    return len(text).to_bytes(8, "little") + text


def test_what_is_no_checkpoint_is_one_line(folder: RunFolder) -> None:
    no, name = "is not a checkpoint", checkpoint_name(7)
    no_number = "a contains NaN, infinity or a wrong type"
    for data, text in (
        (b"", no),
        (to_safetensors(STATE)[:-1], no),
        (to_safetensors({"a": torch.tensor([torch.nan])}), no_number),
        (to_safetensors({"a": torch.tensor([1])}), no_number),
        (safetensors.torch.save({"a": torch.zeros(2, dtype=torch.float8_e4m3fn)}), no_number),
        (
            header(b'{"a":{"dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0]}}'),
            no,
        ),
        (header(b'{"\\ud800":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'), no),
    ):
        folder.commit({name: data})
        for read in (read_tensors, lambda folder, _: checkpoint_digest(folder, 7, 0)):
            with pytest.raises(RunDamaged, match=text) as caught:
                read(folder, name)
            assert "\n" not in str(caught.value), text


def test_weights_too_large_for_float32_have_a_digest(folder: RunFolder) -> None:
    folder.commit(
        {checkpoint_name(7): to_safetensors({"a": torch.tensor([1e300], dtype=torch.float64)})}
    )
    assert len(checkpoint_digest(folder, 7, 0)) == 64


def test_weights_of_another_fleet_have_no_digest(store: Store, tiny: Experiment) -> None:
    fleet = store.create(tiny.replace(seeds=(0, 1)))
    for weight in (torch.tensor(1.5), torch.ones(1, 2)):
        fleet.commit({checkpoint_name(7): to_safetensors({"a": weight})})
        with pytest.raises(RunDamaged, match="is not of its fleet"):
            checkpoint_digest(fleet, 7, 1)
