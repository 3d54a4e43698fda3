"""Devices and precisions; estimates of memory beside measurements, and refusals by them."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    Model,
    Retrieval,
    Task,
    Training,
)
from hopscope.errors import ConfigError
from hopscope.machine import memory_bytes
from hopscope.models import Transformer
from hopscope.training import train
from hopscope.training.device import (
    check_training,
    device_of,
    precision_of,
    training_bytes,
    weight_count,
)

CODE = """
import json, os, resource, sys, tempfile
import torch
from hopscope import Experiment, Model, Training, train
from hopscope.training.device import training_bytes

torch.set_num_threads(1)
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def held():  # now: imports may have taken more for a moment
    return resource.getpagesize() * int(open("/proc/self/statm").read().split()[1])
def measured(asked):
    small = Training(steps=2, batch=2, examples=4, validation_examples=2, precision="float32")
    with tempfile.TemporaryDirectory() as store:
        train(Experiment(model=Model(layers=1, heads=1, d_model=8), training=small), store)
        before = held()
        train(asked, store)
    print(json.dumps([peak() - before, training_bytes(asked)]), flush=True)
for text in sys.argv[1:]:  # each in a process of its own, all of which know torch
    if not os.fork():
        measured(Experiment.from_json(text))
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
def test_the_estimate_is_near_what_is_measured() -> None:
    cases: list[tuple[Task, Model, int]] = [
        (Retrieval(), Model(layers=2, heads=2, d_model=1024), 4),  # mostly weights
        (Retrieval(), Model(layers=4, heads=4, d_model=64), 512),  # mostly activations
        (MQAR(pairs=8, alphabet=8192, length=64), Model(layers=2, heads=1, d_model=32), 64),
    ]  # the last: mostly answers
    texts = []
    for task, model, batch in cases:
        training = Training(steps=2, batch=batch, validation_examples=16, precision="float32")
        experiment = Experiment(task=task, model=model, training=training)
        texts.append(experiment.canonical_json())
    command = [sys.executable, "-c", CODE, *texts]
    done = subprocess.run(command, capture_output=True, check=True, timeout=600)
    for text, line in zip(texts, done.stdout.splitlines(), strict=True):
        measured, said = json.loads(line)
        assert measured / 2.5 < said < measured * 2.5, text


def test_shapes_and_weights_are_those_of_the_model() -> None:
    for task in (
        Retrieval(hops=3), Retrieval(hops=1, chains=2, dim=6, curriculum=False), Induction(),
        ConditionalRetrieval(), KHop(), MQAR(),
    ):  # fmt: skip
        experiment = Experiment(task=task, model=Model(layers=2, heads=2, d_model=64))
        made = Transformer(experiment.model, task.interface()).parameters()
        assert weight_count(experiment) == sum(p.numel() for p in made if p.ndim == 2), task


@pytest.mark.parametrize(
    ("experiment", "text"),
    [
        (Experiment(model=Model(d_model=1_000_000)), r"a model of 48,[\d,]{15} weights"),
        (Experiment(training=Training(batch=100_000_000)), "100,000,000 examples of 28 positions"),
        (Experiment(task=Retrieval(chains=1_000_000)), "of 7,000,000 positions a step"),
        (Experiment(task=MQAR(length=10**9)), "of 1,000,000,000 positions a step"),
        (Experiment(seeds=tuple(range(100_000))), "training 100000 models of"),
    ],
)
def test_what_cannot_fit_is_refused_at_once_and_leaves_no_run(
    tmp_path: Path, experiment: Experiment, text: str
) -> None:
    begun = time.monotonic()
    with pytest.raises(ConfigError, match=text) as caught:
        train(experiment, tmp_path / "runs")
    assert time.monotonic() - begun < 5
    assert f"this machine has {memory_bytes() / 2**30:,.0f}: take a smaller" in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_a_gpu_refuses_what_it_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def memory(gib: int) -> None:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (0, gib * 2**30))

    gpus(monkeypatch, 2)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    memory(1)
    training = Training(validation_examples=2**18)
    with pytest.raises(ConfigError, match="would take about .*, and this GPU has 1: take a small"):
        train(Experiment(training=training), tmp_path / "runs", device="cuda:1")
    memory(2**40)  # but its weights are drawn and kept in the machine's memory
    with pytest.raises(ConfigError, match="training 100000 models of .*, and this machine has"):
        train(Experiment(seeds=tuple(range(100_000))), tmp_path / "runs", device="cuda:1")
    assert not (tmp_path / "runs").exists()
    check_training(Experiment(), torch.device("cuda:1"))


def test_the_usual_training_is_small_and_many_validation_examples_are_named() -> None:
    assert training_bytes(Experiment()) < 2**30
    with pytest.raises(ConfigError, match="fleet, or fewer validation_examples$"):
        check_training(Experiment(training=Training(validation_examples=2**31 - 1)))


@pytest.mark.parametrize(("native", "expected"), [(True, "bf16"), (False, "float32")])
def test_auto_is_bf16_only_where_it_is_native(
    monkeypatch: pytest.MonkeyPatch, native: bool, expected: str
) -> None:
    cpu, second = torch.device("cpu"), torch.device("cuda:1")

    def capability(device: torch.device) -> tuple[int, int]:
        return (8, 0) if native and device == second else (7, 5)

    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: native)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", capability)
    for device in (cpu, second):
        assert precision_of(Training(), device) == expected
        for asked in ("float32", "bf16"):
            assert precision_of(Training(precision=asked), device) == asked


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_any_gpu_that_is_there_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    for name in ("cpu", "cuda", "cuda:0", "cuda:1"):
        assert device_of(name) == torch.device(name)
    assert device_of("auto") == torch.device("cuda")
    gpus(monkeypatch, 0)
    assert device_of("auto") == torch.device("cpu")


@pytest.mark.parametrize(
    ("name", "count", "text"),
    [
        ("cuda", 0, "device is 'cuda', but torch sees no GPU: use --device cpu"),
        ("cuda:7", 2, "but torch sees cuda:0, cuda:1: use one of these, or --device cpu"),
        ("gpu9", 1, "device is 'gpu9'; expected auto, cpu, cuda or cuda:N"),
    ],
)
def test_a_device_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, count: int, text: str
) -> None:
    gpus(monkeypatch, count)
    with pytest.raises(ConfigError, match=re.escape(text)):
        device_of(name)
