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
from hopscope.store.checkpoints import check_step, checkpoint_name, checkpoint_steps

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


def test_half_precision_is_for_keeping_alone() -> None:
    data = saved({"a": torch.tensor([1.5]).half()}, "d", 0, "float32")
    assert weights_of(data, "here")["a"].dtype == torch.float32


def test_steps_are_those_of_the_files(folder: RunFolder) -> None:
    assert last_good(folder) == "none"
    folder.commit({checkpoint_name(step): of(folder, step) for step in (120, 3, 40)})
    assert checkpoint_steps(folder) == [3, 40, 120]
    assert last_good(folder).endswith("checkpoints/step-00000120.safetensors")
    assert own_weights(folder, 40)["b"].tolist() == [1.5, -2.0]


def test_the_next_commit_replaces_the_optimiser_and_what_was_not_planned(folder: RunFolder) -> None:
    optimiser = "checkpoints/optimiser-00000007.safetensors"
    files = {checkpoint_name(step): of(folder, step) for step in (0, 5, 7)}
    folder.commit({**files, optimiser: of(folder)})
    assert outdated(folder, {0, 5, 10}) == (optimiser, checkpoint_name(7))


def test_a_checkpoint_of_another_run_is_refused(folder: RunFolder, tiny: Experiment) -> None:
    other = tiny.model_copy(update={"seeds": (8,)})
    theirs = saved(STATE, other.digest(), 7, "float32")
    folder.commit({checkpoint_name(7): theirs})
    with pytest.raises(RunMismatch, match="it was copied from another run"):
        own_weights(folder, 7)
    folder.commit({checkpoint_name(7): relabelled(theirs, "theirs", tiny)})
    assert set(own_weights(folder, 7)) == set(STATE)


def test_a_file_that_was_renamed_is_refused() -> None:
    about = read_tensors(saved(STATE, "d", 7, "float32"), "here")[1]
    check_named(about, checkpoint_name(7))
    with pytest.raises(RunMismatch, match="step-00000008.safetensors is of step 7: it was renamed"):
        check_named(about, checkpoint_name(8))


def test_a_step_that_has_none_is_told_the_nearest() -> None:
    check_step(5, [0, 5, 10], "mine")
    with pytest.raises(ConfigError, match="step is 7; mine has no checkpoint there, the nearest"):
        check_step(7, [0, 5, 10], "mine")


def damaged(meta: object) -> bytes:
    return safetensors.torch.save(STATE, {META: json.dumps(meta)})


MINE = {"format": 1, "experiment": "d", "step": 7, "precision": "float32"}


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (b"", RunDamaged, "here is not a checkpoint"),
        (saved(STATE, "d", 7, "float32")[:-1], RunDamaged, "here is not a checkpoint"),
        (safetensors.torch.save(STATE), RunDamaged, "here is not a checkpoint"),
        (damaged({**MINE, "step": "x"}), RunDamaged, "here is not a checkpoint"),
        (damaged({**MINE, "format": 2}), RunTooNew, "here has format 2; this hopscope reads up to"),
        (saved({"a": torch.tensor([torch.nan])}, "d", 7, "x"), RunDamaged, "a holds what is not"),
        (saved({"a": torch.tensor([1])}, "d", 7, "x"), RunDamaged, "a holds what is not a number"),
        (
            saved({"a": torch.zeros(2, dtype=torch.float8_e4m3fn)}, "d", 7, "x"),
            RunDamaged,
            "a holds what is not a number",
        ),
    ],
)
def test_what_is_no_checkpoint_is_one_line(data: bytes, error: type, text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        read_tensors(data, "here")
    assert "\n" not in str(caught.value)


def test_a_name_with_two_numbers_is_damage(folder: RunFolder) -> None:
    folder.commit({"checkpoints/step-00000001-00000002.safetensors": b""})
    with pytest.raises(RunDamaged, match="expected checkpoints/step-NUMBER.safetensors"):
        checkpoint_steps(folder)
