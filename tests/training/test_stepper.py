import math
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stopping import Stops, changed, content

from hopscope.configs import MQAR, Experiment, KHop, Model, Retrieval, Task
from hopscope.errors import Diverged, Interrupted, RunMismatch
from hopscope.runs.checkpoint import to_safetensors
from hopscope.store import Store
from hopscope.store.checkpoints import optimiser_name
from hopscope.tasks import Batch
from hopscope.training import stepper, train
from hopscope.training.optimisers import OPTIMISERS
from hopscope.training.stepper import MetricsBuffer, pack, unpack
from hopscope.training.trainer import Trainer

CPU = torch.device("cpu")


def test_a_run_has_its_checkpoints_and_metrics(store: Store, tiny: Experiment) -> None:
    run = train(tiny, store)
    assert run.folder.manifest.complete
    assert run.checkpoints == [0, 5, 10, 12]
    assert run.folder.files("checkpoints/optimiser-") == [
        "checkpoints/optimiser-00000012.safetensors"
    ]
    steps, values = run.losses("train")
    assert steps.tolist() == list(range(1, 13))
    assert values.shape == (12, 1, 2)
    checked, validation = run.losses("validation")
    assert checked.tolist() == list(range(13))  # the last 100 steps are validated one by one
    assert np.allclose(run.final_losses(), validation[1:].mean(0))
    assert run.folder.verify() == []
    trainer = Trainer(tiny, CPU, "float32")
    for _ in range(12):
        trainer.advance()
    assert np.array_equal(trainer.validate().numpy(), validation[-1])
    for name, weight in run.model.state_dict().items():
        assert torch.equal(weight, trainer.weights.named()[name]), name
    untrained = Trainer(tiny, CPU, "float32").model.state_dict()
    assert torch.equal(run.model_at(0).state_dict()["head.weight"], untrained["head.weight"])


def test_losses_are_fetched_after_a_time_and_at_the_end(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    update = Trainer.update

    def slow(trainer: Trainer, batch: Batch) -> torch.Tensor:
        nonlocal now
        now += 0.1
        return update(trainer, batch)

    watcher = Stops(0)
    monkeypatch.setattr(Trainer, "update", slow)
    monkeypatch.setattr(stepper, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setitem(stepper.FETCH_AFTER, "cpu", 0.45)  # as on a GPU
    run = train(changed(tiny, steps=20, checkpoint_every=10), store, watcher=watcher)
    assert watcher.seen == [1, 5, 9, 10, 14, 18, 20]
    assert run.losses("train")[0].tolist() == list(range(1, 21))


@pytest.mark.parametrize(
    ("step", "number", "exit_code", "seeds", "optimiser", "precision"),
    [
        (1, signal.SIGTERM, 75, (0,), "adamw", "float32"),
        (5, signal.SIGINT, 130, (0,), "muon", "bf16"),
        (6, signal.SIGTERM, 75, (5, 1), "muon", "float32"),
        (7, signal.SIGTERM, 75, (5, 1), "adamw", "bf16"),
    ],
)
def test_a_stopped_run_ends_as_if_it_had_not_been_stopped(
    tmp_path: Path, tiny: Experiment, step: int, number: int, exit_code: int,
    seeds: tuple[int, ...], optimiser: str, precision: str,
) -> None:  # fmt: skip
    config = changed(tiny, optimiser=optimiser, precision=precision).replace(seeds=seeds)
    whole = content(train(config, tmp_path / "whole").folder)
    with pytest.raises(Interrupted, match=f"at step {step}, .*hopscope resume") as caught:
        train(config, tmp_path / "cut", watcher=Stops(step, number))
    assert caught.value.exit_code == exit_code
    folder = Store(tmp_path / "cut").create(config)
    assert folder.manifest.step == step
    assert folder.verify() == []
    resumed = train(config, tmp_path / "cut")
    assert content(resumed.folder) == whole
    assert resumed.final_losses().shape == (len(seeds), 2)


@pytest.mark.cuda
@pytest.mark.parametrize("seeds", [(0,), (5, 1)], ids=["one", "fleet"])
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize(
    "task", [Retrieval(hops=2, chains=2), KHop(length=12), MQAR(length=18)], ids=lambda x: x.kind
)
def test_on_a_gpu_a_stopped_run_ends_with_the_same_bits(
    tmp_path: Path, tiny: Experiment, monkeypatch: pytest.MonkeyPatch,
    task: Task, optimiser: str, precision: str, seeds: tuple[int, ...],
) -> None:  # fmt: skip
    monkeypatch.setitem(stepper.FETCH_AFTER, "cuda", 0.0)  # a watcher sees every step
    model = Model(layers=2, heads=2, d_model=64)  # that Triton's kernels can compute
    config = changed(tiny, precision=precision, optimiser=optimiser)
    config = config.replace(task=task, model=model, seeds=seeds)
    whole = train(config, tmp_path / "whole", device="cuda")
    with pytest.raises(Interrupted, match="at step 7"):
        train(config, tmp_path / "cut", device="cuda", watcher=Stops(7))
    cut = train(config, tmp_path / "cut", device="cuda")
    assert content(cut.folder) == content(whole.folder)
    (stretch,) = cut.folder.manifest.computed
    assert "CUDA" in stretch.torch
    assert stretch.kernels.startswith("triton ")


def test_divergence_names_the_last_good_checkpoint(store: Store, tiny: Experiment) -> None:
    wild = changed(tiny, lr=1e6, checkpoint_every=1)
    with pytest.raises(Diverged, match="loss of hop . is .* at step .*step-0000000") as caught:
        train(wild, store)
    assert "lower training.lr" in str(caught.value)
    folder = store.find("retrieval")
    assert folder.verify() == []
    assert not folder.manifest.complete


def test_a_checkpoint_without_numbers_is_not_committed(
    store: Store, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Trainer.update
    # Long enough that step 7 is not validated, which would notice as well.
    longer = changed(tiny, steps=200)

    def spoiled(trainer: Trainer, index: torch.Tensor) -> torch.Tensor:
        losses = update(trainer, index)
        if trainer.step == 7:
            trainer.weights.master.data[3] = float("nan")
        return losses

    monkeypatch.setattr(Trainer, "update", spoiled)
    with pytest.raises(Diverged, match="weight is not a number after step 7.*step-00000005"):
        train(longer, store, watcher=Stops(7))
    assert store.create(longer).manifest.step == 5


def test_another_shape_is_refused(store: Store, tiny: Experiment) -> None:
    folder, trainer = store.create(tiny), Trainer(tiny, CPU, "float32")
    cut = {key: value[..., :1].clone() for key, value in trainer.optimiser.state().items()}
    for state, text in ((cut, r"is \(.*\), expected \(.*\)"), ({}, "is missing, expected")):
        files = {**pack(trainer), optimiser_name(0): to_safetensors(state)}
        folder.commit(files, precision="float32")
        with pytest.raises(RunMismatch, match=text):
            unpack(Trainer(tiny, CPU, "float32"), folder)
    with pytest.raises(RunMismatch, match="trained in float32, but this machine computes in bf16"):
        unpack(Trainer(tiny, CPU, "bf16"), folder)


@pytest.mark.parametrize(("value", "what"), [(math.nan, "is not a number"), (1e4, "is 1e\\+04")])
def test_the_first_bad_loss_is_named(store: Store, value: float, what: str) -> None:
    recipe = Experiment(task=Retrieval(hops=3, curriculum=False), seeds=(5, 6))
    buffer = MetricsBuffer(recipe, store.create(recipe), 0)
    buffer.add("train", 1, torch.tensor([[0.5], [0.5]]))
    buffer.add("train", 2, torch.tensor([[0.5], [value]]))
    assert buffer.take(2) == {}  # nothing was fetched yet
    with pytest.raises(Diverged, match=f"hop 3 {what} at step 2 .seed 6.; .* is none: lower"):
        buffer.fetch()
