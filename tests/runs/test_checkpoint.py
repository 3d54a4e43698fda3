"""Files of tensors: what they belong to, and what is refused."""

import json

import pytest
import safetensors.torch
import torch

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, RunDamaged, RunMismatch, RunTooNew
from hopscope.runs.checkpoint import (
    META,
    check_named,
    last_good,
    outdated,
    own_weights,
    read_tensors,
    relabelled,
    saved,
    weights_of,
)
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import check_step, checkpoint_name

STATE = {"b": torch.tensor([1.5, -2.0]), "a": torch.ones(2, 2)}


@pytest.fixture
def folder(store: Store, tiny: Experiment) -> RunFolder:
    return store.create(tiny)


def of(folder: RunFolder, step: int = 7) -> bytes:
    return saved(STATE, folder.recipe.digest(), step, "float32")


def test_what_is_saved_comes_back_with_what_it_belongs_to() -> None:
    data = saved(STATE, "d" * 64, 7, "bf16")
    state, about = read_tensors(data, "here")
    assert (about.experiment, about.step, about.precision) == ("d" * 64, 7, "bf16")
    assert {name: tensor.tolist() for name, tensor in state.items()} == {
        name: tensor.tolist() for name, tensor in STATE.items()
    }
    assert saved(STATE, "d" * 64, 7, "bf16") == data  # the same bytes
    half = saved({"a": torch.tensor([1.5]).half()}, "d", 0, "float32")
    assert weights_of(half, "here")["a"].dtype == torch.float32  # halves are for keeping alone


def test_the_next_commit_replaces_the_optimiser_and_what_was_not_planned(folder: RunFolder) -> None:
    assert last_good(folder) == "none"
    optimiser = "checkpoints/optimiser-00000007.safetensors"
    files = {checkpoint_name(step): of(folder, step) for step in (0, 5, 7)}
    folder.commit({**files, optimiser: of(folder)})
    assert last_good(folder).endswith("checkpoints/step-00000007.safetensors")
    assert outdated(folder, {0, 5, 10}) == (optimiser, checkpoint_name(7))


def test_a_checkpoint_of_another_run_or_step_is_refused(
    folder: RunFolder, tiny: Experiment
) -> None:
    other = tiny.model_copy(update={"seeds": (8,)})
    theirs = saved(STATE, other.digest(), 7, "float32")
    folder.commit({checkpoint_name(7): theirs})
    with pytest.raises(RunMismatch, match="it was copied from another run"):
        own_weights(folder, 7)
    folder.commit({checkpoint_name(7): relabelled(theirs, "theirs", tiny)})
    assert set(own_weights(folder, 7)) == set(STATE)
    about = read_tensors(theirs, "here")[1]
    check_named(about, checkpoint_name(7))
    with pytest.raises(RunMismatch, match="step-00000008.safetensors is of step 7: it was renamed"):
        check_named(about, checkpoint_name(8))
    check_step(5, [0, 5, 10], "mine")
    with pytest.raises(ConfigError, match="step is 7; mine has no checkpoint there, the nearest"):
        check_step(7, [0, 5, 10], "mine")


def test_what_is_no_checkpoint_is_one_line() -> None:
    mine = {"format": 1, "experiment": "d", "step": 7, "precision": "float32"}

    def damaged(**changes: object) -> bytes:
        return safetensors.torch.save(STATE, {META: json.dumps(mine | changes)})

    def holding(tensor: torch.Tensor) -> bytes:
        return saved({"a": tensor}, "d", 7, "x")

    no_number = "a holds what is not a number"
    for data, error, text in (
        (b"", RunDamaged, "here is not a checkpoint"),
        (saved(STATE, "d", 7, "float32")[:-1], RunDamaged, "here is not a checkpoint"),
        (safetensors.torch.save(STATE), RunDamaged, "here is not a checkpoint"),
        (damaged(step="x"), RunDamaged, "here is not a checkpoint"),
        (damaged(format=2), RunTooNew, "here has format 2; this hopscope reads up to"),
        (holding(torch.tensor([torch.nan])), RunDamaged, no_number),
        (holding(torch.tensor([1])), RunDamaged, no_number),
        (holding(torch.zeros(2, dtype=torch.float8_e4m3fn)), RunDamaged, no_number),
    ):
        with pytest.raises(error, match=text) as caught:
            read_tensors(data, "here")
        assert "\n" not in str(caught.value), text
