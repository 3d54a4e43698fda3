"""The trainer against plain PyTorch: torch's AdamW on the module, one loss, no flat vectors."""

from collections.abc import Callable

import pytest
import torch

from hopscope.configs import MQAR, Experiment, KHop, Model, Retrieval, Task, Training
from hopscope.tasks import dataset, examples, hop_losses, sampler_of, visited
from hopscope.training import graph
from hopscope.training.trainer import DRAWING, Trainer, initial_model, steps_ahead

CPU = torch.device("cpu")
GPU = torch.device("cuda")
TASKS = [Retrieval(hops=2, chains=3), KHop(length=12), MQAR(length=18)]


def experiment(d_model: int = 16, **training: object) -> Experiment:
    settings = {"batch": 16, "examples": 256, "validation_examples": 32, "warmup": 10, **training}
    return Experiment(
        task=Retrieval(hops=2, chains=3),
        model=Model(layers=2, heads=2, d_model=d_model),
        training=Training(**settings),
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_steps_are_those_of_plain_pytorch(task: object) -> None:
    config = experiment().replace(task=task)
    trainer = Trainer(config, CPU, "float32")
    model, sampler = initial_model(config), sampler_of(config.task)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    for step in range(18):  # past the end of an epoch of 16 steps
        optimiser.param_groups[0]["lr"] = config.training.rate(step)
        index = visited(torch.tensor([0]), step, 16, 256)[0]
        batch = examples(sampler, 0, index)
        losses = hop_losses(config.task, model(batch.inputs), batch)
        optimiser.zero_grad()
        losses.mean().backward()
        optimiser.step()
        assert torch.allclose(trainer.advance()[0], losses.detach(), atol=1e-6)
    for name, weight in trainer.weights.named().items():
        assert torch.allclose(weight, model.get_parameter(name), atol=1e-5), name


@pytest.mark.parametrize(
    ("optimiser", "seeds", "steps"),
    [("adamw", (4, 0, 9), 20), ("muon", tuple(range(10, 0, -1)), 5)],
)
def test_a_fleet_is_its_members_trained_alone(
    optimiser: str, seeds: tuple[int, ...], steps: int
) -> None:
    """Muon's updates have the size of a matrix: not that of a fleet of more members than rows."""
    config = experiment(d_model=8, optimiser=optimiser)
    fleet = Trainer(config.replace(seeds=seeds), CPU, "float32")
    alone = [Trainer(config.replace(seeds=(s,)), CPU, "float32") for s in seeds]
    for _ in range(steps):
        separate = torch.cat([trainer.advance() for trainer in alone])
        assert (fleet.advance() - separate).abs().max() < 1e-5
    for number, trainer in enumerate(alone):
        for name, weight in trainer.weights.named().items():
            assert (fleet.weights.named()[name][number] - weight).abs().max() < 1e-5, name
        for name, moment in trainer.optimiser.state().items():
            torch.testing.assert_close(fleet.optimiser.state()[name][number], moment)
    assert torch.allclose(fleet.validate(), torch.cat([one.validate() for one in alone]), atol=1e-5)


def test_bf16_keeps_a_float32_master_and_stays_near() -> None:
    exact, rounded = (Trainer(experiment(), CPU, name) for name in ("float32", "bf16"))
    assert rounded.weights.master.dtype == torch.float32
    assert next(rounded.model.parameters()).dtype == torch.bfloat16
    for name, weight in initial_model(experiment()).state_dict().items():
        assert torch.equal(rounded.weights.named()[name], weight), name
    for _ in range(30):
        assert torch.allclose(exact.advance(), rounded.advance(), rtol=0.02, atol=0.01)


@pytest.mark.parametrize("losses", [Trainer.advance, Trainer.validate])
def test_losses_in_bf16_are_those_of_the_weights_after_the_last_step(losses: Callable) -> None:
    trainer, resumed = (Trainer(experiment(lr=0.1, warmup=0), CPU, "bf16") for _ in range(2))
    trainer.advance()
    resumed.restore(trainer.weights.named(), trainer.optimiser.state(), trainer.step)
    assert torch.equal(losses(trainer), losses(resumed))


def test_validation_uses_a_stream_of_its_own() -> None:
    trainer = Trainer(experiment(), CPU, "float32")
    held_out = dataset(trainer.experiment.task, 0, 32, "validation")
    assert torch.equal(trainer.held_out.inputs, held_out.inputs)
    expected = hop_losses(trainer.experiment.task, trainer.model(held_out.inputs), held_out)
    assert torch.allclose(trainer.validate()[0], expected.detach())


@pytest.mark.parametrize("seeds", [(0,), (3, 1)])
def test_examples_drawn_ahead_are_those_of_each_step(seeds: tuple[int, ...]) -> None:
    config = experiment().replace(seeds=seeds)
    one, ahead, late = (Trainer(config, CPU, "float32") for _ in range(3))
    one.ahead, ahead.ahead, late.ahead = 1, 5, 5
    for step in range(23):  # past the end of an epoch of 16 steps
        if step == 12:  # amid what is drawn at once
            late.restore(one.weights.named(), one.optimiser.state(), step)
        losses = one.advance()
        assert torch.equal(losses, ahead.advance())
        if step >= 12:
            assert torch.equal(losses, late.advance())


def test_steps_are_drawn_ahead_as_far_as_there_is_room() -> None:
    small, large = sampler_of(Retrieval()), sampler_of(MQAR(pairs=8, alphabet=8192, length=64))
    for device, room in DRAWING.items():
        assert steps_ahead(small, 8, device) > 8 * steps_ahead(large, 8, device) > 8
        assert steps_ahead(large, 8, device) * 8 * large.example_bytes <= room
        assert steps_ahead(large, 8192, device) == 1


@pytest.mark.parametrize("seeds", [(0,), (3, 1)])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_a_replayed_step_is_given_all_of_its_batch(
    monkeypatch: pytest.MonkeyPatch, task: Task, seeds: tuple[int, ...]
) -> None:
    # Like a recorded graph, the step sees the tensors that it was recorded with, and no others.
    monkeypatch.setattr(graph, "cuda_graph", lambda step, touched: step)
    config = experiment().replace(task=task, seeds=seeds)
    plain, replayed = (Trainer(config, CPU, "float32") for _ in range(2))
    replayed.replays = True
    for _ in range(5):
        assert torch.equal(plain.advance(), replayed.advance())


@pytest.mark.cuda
@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_recorded_steps_on_a_gpu_are_the_steps_of_the_cpu(
    task: Task, seeds: tuple[int, ...]
) -> None:
    config = experiment().replace(task=task, seeds=seeds)
    here, there = Trainer(config, CPU, "float32"), Trainer(config, GPU, "float32")
    assert torch.equal(here.held_out.inputs, there.held_out.inputs.cpu())
    for _ in range(30):
        torch.testing.assert_close(there.advance().cpu(), here.advance(), atol=1e-3, rtol=1e-3)
