"""Arrays over all checkpoints of a training, computed from fresh examples."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hopscope.circuits.maps import KINDS, RoleMaps
from hopscope.configs import Experiment
from hopscope.models import Transformer
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.study import RunStudy
from hopscope.tasks import dataset
from hopscope.training import Run
from hopscope.web.described import name_of
from hopscope.web.tensors import packed

Ask = Callable[[], None]
"""Is called before each model, and raises where nobody waits any more."""
EXAMPLES = 64
"""Examples that are handed out whole, for a page that computes by itself."""


@dataclass(frozen=True)
class Watched(Run):
    """A training whose models are opened as long as somebody waits for what they tell."""

    ask: Ask

    def model_at(self, step: int) -> Transformer:
        """The model (or fleet) after a step."""
        self.ask()
        return super().model_at(step)


def maps(folder: RunFolder, seed: int, ask: Ask = lambda: None) -> bytes:
    """Role maps of every checkpoint, as `hopscope maps` measures them, in half precision."""
    steps = checkpoint_steps(folder)
    found = [RunStudy(Watched(folder, ask), seed, step).attention() for step in steps]
    return _of_maps(found, "steps", steps)


def contents(folder: RunFolder, seed: int, ask: Ask = lambda: None) -> bytes:
    """Which symbols can be read at each role: at every checkpoint, or in full at a single one."""
    model, steps = RunStudy(Watched(folder, ask), seed), checkpoint_steps(folder)
    if len(steps) > 1:
        history = model.probe_history()
        own, roles, symbols = history.own, history.roles, history.symbols
    else:
        found = model.probe()
        own, roles, symbols = found.stream.own[None], found.roles, found.symbols
    about = {"roles": [str(role) for role in roles], "symbols": list(symbols)}
    at: np.ndarray = np.array(steps, np.int32)
    return packed({"steps": at, "own": own.astype(np.float16)}, about)


def emergence(folder: RunFolder, seed: int, ask: Ask = lambda: None) -> bytes:
    """Attention along every path of the circuit, at every checkpoint."""
    story = RunStudy(Watched(folder, ask), seed).emergence()
    about = {
        "paths": [name_of(path) for path in story.paths],
        "emerged": [story.emerged(path) for path in story.paths],
        "learned": None if story.learned_at is None else list(story.learned_at),
    }
    arrays = {
        "steps": np.array(story.steps, np.int32),
        "attention": story.attention.astype(np.float32),
        "losses": story.losses.astype(np.float32),
    }
    return packed(arrays, about)


def fleet(folder: RunFolder, _: int, ask: Ask = lambda: None) -> bytes:
    """Role maps of every model of a fleet, in their last state."""
    seeds = folder.recipe.seeds
    return _of_maps(
        [RunStudy(Watched(folder, ask), seed).attention() for seed in seeds], "seeds", list(seeds)
    )


def examples(folder: RunFolder, _: int, _ask: Ask = lambda: None) -> bytes:
    """The first examples of sample 0, with their targets: what `ablate` is measured on."""
    task = folder.recipe_as(Experiment).task
    batch = dataset(task, 0, EXAMPLES, "validation")
    number = np.float32 if batch.inputs.is_floating_point() else np.int32
    arrays = {
        "inputs": batch.inputs.numpy().astype(number),
        "targets": batch.targets.numpy().astype(number),
        "role": batch.roles.role.numpy().astype(np.int32),
        "chain": batch.roles.chain.numpy().astype(np.int32),
    }
    return packed(arrays, {"roles": [str(role) for role in task.roles()]})


def _of_maps(found: list[RoleMaps], axis: str, values: list[int]) -> bytes:
    """Role maps side by side."""
    arrays = {
        kind: np.stack([getattr(its, kind) for its in found]).astype(np.float16) for kind in KINDS
    }
    about = {"roles": [str(role) for role in found[0].roles]}
    return packed({axis: np.array(values, np.int32), **arrays}, about)


STORIES: dict[str, Callable[[RunFolder, int, Ask], bytes]] = {
    "maps": maps,
    "contents": contents,
    "emergence": emergence,
    "fleet": fleet,
    "examples": examples,
}
"""What computes each array that is not kept."""
