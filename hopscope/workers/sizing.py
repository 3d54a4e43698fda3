"""How many models of one shape to train as one: measured, in a process of its own, and remembered.

A few steps are trained as a fleet of 1, 2, 4, … models, until a model's share of a step no longer
falls or memory runs out. What is remembered belongs to a shape, a machine and a way of computing.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hopscope.configs import Config, Experiment, read_recipe
from hopscope.errors import ConfigError, RunDamaged
from hopscope.machine import cache_root, keep_pages, memory_bytes, processor
from hopscope.store.files import read_bytes, sha256, write_bytes
from hopscope.workers.packing import packable

WARM_UPS, STEPS = 2, 5
"""Steps of each size that are trained first, and that are measured."""
GAIN = 0.97
"""Twice as many models are tried as long as a model's share of a step falls below this share."""
LONGEST = 20.0
"""Seconds of a step beyond which no more models are tried."""
MOST = 64
"""The largest fleet that is tried."""
ROOM = 0.8
"""The share of a machine's memory that all fleets beside each other may take."""


class Measured(Config):
    """What steps of fleets of one shape take."""

    seconds: dict[int, float]
    """Of one step, by the number of models."""
    memory: dict[int, int]
    """The most bytes that the process (of a GPU, torch on it) had, by the number of models."""
    room: int
    """The bytes that there are, of the machine or of the GPU."""
    gpus: int = 0
    """How many such GPUs there are."""

    def of(self, models: int) -> float:
        """Seconds of a step of so many models, between those that were measured."""
        if models in self.seconds:
            return self.seconds[models]
        below = max(size for size in self.seconds if size < models)
        above = min(size for size in self.seconds if size > models)
        share = (models - below) / (above - below)
        return self.seconds[below] + share * (self.seconds[above] - self.seconds[below])


Measurement = Callable[[Experiment, int, str, int | None], Measured]
"""Of this shape, up to so many models, on a device, with so many threads."""


def best_size(measured: Measured, count: int, slots: int) -> int:
    """The size of fleets with which so many models are trained soonest, on so many slots."""
    beside = -(-slots // max(1, measured.gpus))
    share = ROOM * measured.room / beside
    fitting = [size for size, taken in measured.memory.items() if taken <= share]
    sizes = range(1, min(count, max(fitting, default=1)) + 1)

    def seconds(size: int) -> float:
        fleets = -(-count // size)
        return -(-fleets // slots) * measured.of(-(-count // fleets))

    return min(sizes, key=seconds)


def measured(recipe: Experiment, most: int, device: str, threads: int | None) -> Measured:
    """The measurement of this shape, from an earlier time or made now."""
    try:
        return remembered(recipe, most, device, threads)
    except LookupError:
        asked = {"recipe": recipe.written().decode(), "most": min(most, MOST), "device": device,
                 "threads": threads}  # fmt: skip
        found = _measured_elsewhere(asked)
        write_bytes(_path(recipe, most, device, threads), found.canonical_json().encode())
        return found


def remembered(recipe: Experiment, most: int, device: str, threads: int | None) -> Measured:
    """The measurement of this shape from an earlier time."""
    path = _path(recipe, most, device, threads)
    try:
        return Measured.from_json(read_bytes(path))
    except (RunDamaged, ConfigError) as error:
        raise LookupError(f"{recipe.title()} was not measured on this machine") from error


def _path(recipe: Experiment, most: int, device: str, threads: int | None) -> Path:
    """Where the answer to this question is kept."""
    from importlib.metadata import version

    asked = {
        "recipe": recipe.seedless(),
        "most": min(most, MOST),
        "device": device,
        "threads": threads,
    }
    machine = {"processor": processor(), "cores": os.cpu_count(), "torch": version("torch"),
               "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}  # fmt: skip
    key = sha256(json.dumps({**asked, **machine}, sort_keys=True).encode())[:20]
    return cache_root() / "fleets" / f"{recipe.title()}-{key}.json"


def _measured_elsewhere(asked: Mapping[str, Any]) -> Measured:
    """Measured in a fresh process: what this one holds would count as memory."""
    from hopscope.workers.processes import environment

    done = subprocess.run(
        [sys.executable, "-P", "-m", "hopscope.workers.sizing"],
        input=json.dumps(asked), capture_output=True, text=True, check=False,
        env=environment(asked["threads"]),
    )  # fmt: skip
    try:
        return Measured.from_json(done.stdout)
    except (ConfigError, ValidationError) as error:
        said = done.stderr.strip().splitlines()[-1:] or ["nothing"]
        raise ConfigError(
            f"cannot measure how large fleets may be ({said[0][:200]}): give a number of models "
            "with --pack, or --pack 1"
        ) from error


def measure(recipe: Experiment, most: int, device: str) -> Measured:
    """Train a few steps at every size up to the first that does not pay."""
    import torch

    from hopscope.training.precision import device_of

    where = device_of(device)
    graphic = where.type == "cuda"
    room = torch.cuda.mem_get_info(where)[1] if graphic else memory_bytes()
    seconds: dict[int, float] = {}
    memory: dict[int, int] = {}
    for size in sizes(most):
        try:
            seconds[size], memory[size] = _step(recipe, size, device)
        except torch.OutOfMemoryError:
            break
        before = seconds.get(size // 2)
        spent = memory[size] > ROOM * room / 2 or seconds[size] > LONGEST
        if spent or (before and seconds[size] > 2 * GAIN * before):
            break
    if not seconds:  # perhaps somebody else's program fills the GPU now: nothing to remember
        raise ConfigError(f"one model of {recipe.title()} does not fit into the free memory")
    gpus = (torch.cuda.device_count() if where.index is None else 1) if graphic else 0
    return Measured(seconds=seconds, memory=memory, room=room, gpus=gpus)


def sizes(most: int) -> list[int]:
    """1, 2, 4, … and the largest that is asked for."""
    return sorted({most, *(2**power for power in range(most.bit_length()))})


def _step(recipe: Experiment, size: int, device: str) -> tuple[float, int]:
    """Seconds of a step of a fleet, and the memory that it took."""
    import resource

    import torch

    from hopscope.training.learner import Learner
    from hopscope.training.precision import device_of, precision_of

    where = device_of(device)
    fleet = Experiment.model_validate({**recipe.model_dump(), "seeds": tuple(range(size))})
    learner = Learner(fleet, where, precision_of(recipe.training, where))
    taken = []
    for _ in range(WARM_UPS + STEPS):
        begun = time.perf_counter()
        learner.advance().sum().item()  # waits for a GPU
        taken.append(time.perf_counter() - begun)
    if where.type == "cuda":
        bytes_ = int(torch.cuda.max_memory_reserved(where))
        del learner
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(where)
    else:
        bytes_ = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return min(taken[WARM_UPS:]), bytes_


def main() -> None:
    """Answer one question: JSON in, JSON out."""
    from hopscope.runs.computing import using_threads

    asked = json.load(sys.stdin)
    recipe = packable(read_recipe(asked["recipe"]))
    assert recipe is not None
    keep_pages()  # as workers do
    with using_threads(asked["threads"]):
        found = measure(recipe, asked["most"], asked["device"])
    sys.stdout.write(found.canonical_json())


if __name__ == "__main__":
    main()
