"""Arrays over all checkpoints of a training, computed from fresh examples."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hopscope.circuits.maps import MAP_KINDS, RoleMaps
from hopscope.circuits.probe import Probe
from hopscope.circuits.probing import EXAMPLES as PROBED
from hopscope.circuits.probing import HISTORY_EXAMPLES, probe
from hopscope.models import Transformer
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.study import RunStudy
from hopscope.training import Run
from hopscope.web.described import emerged_of
from hopscope.web.questions import Ask
from hopscope.web.tensors import packed


@dataclass(frozen=True)
class Watched(Run):
    """A run that stops opening models when the client no longer waits (`ask` raises)."""

    ask: Ask

    def model_at(self, step: int) -> Transformer:
        """The model (or fleet) after a step."""
        self.ask()
        return super().model_at(step)


def maps(folder: RunFolder, seed: int, ask: Ask) -> bytes:
    """Return the role maps of `hopscope attention` for every checkpoint, in float16."""
    steps = checkpoint_steps(folder)
    found = [RunStudy(Watched(folder, ask), seed, step).attention() for step in steps]
    return maps_of(found, "steps", steps)


def contents(folder: RunFolder, seed: int, ask: Ask, step: int | None = None) -> bytes:
    """Return the results of `hopscope probe` at every checkpoint (or at one).

    With several checkpoints fewer examples are used.
    """
    every = checkpoint_steps(folder)
    examples = HISTORY_EXAMPLES if len(every) > 1 else PROBED
    steps = every if step is None else [step]
    models = (RunStudy(Watched(folder, ask), seed, each) for each in steps)
    return contents_of(
        [probe(each.model, each.task, examples, heads=False) for each in models], steps
    )


def emergence(folder: RunFolder, seed: int, ask: Ask) -> bytes:
    """Return the steps at which each path of the circuit emerged."""
    return packed({}, {"emerged": emerged_of(RunStudy(Watched(folder, ask), seed).emergence())})


def fleet(folder: RunFolder, _: int, ask: Ask) -> bytes:
    """Return the role maps of every model of a fleet, at the last checkpoint."""
    seeds = folder.recipe.seeds
    return maps_of(
        [RunStudy(Watched(folder, ask), seed).attention() for seed in seeds], "seeds", list(seeds)
    )


def maps_of(found: list[RoleMaps], axis: str, values: list[int]) -> bytes:
    """Pack role maps into one file, stacked along a new first axis."""
    arrays = {
        kind: np.stack([getattr(its, kind) for its in found]).astype(np.float16)
        for kind in MAP_KINDS
    }
    about = {"roles": [str(role) for role in found[0].roles]}
    return packed({axis: np.array(values, np.int32), **arrays}, about)


def contents_of(found: list[Probe], steps: list[int]) -> bytes:
    """Pack the results of probes after these steps into one file."""
    about = {"roles": [str(role) for role in found[0].roles], "symbols": list(found[0].symbols)}
    own = np.stack([each.stream.own for each in found]).astype(np.float16)
    return packed({"steps": np.array(steps, np.int32), "own": own}, about)


STORIES: dict[str, Callable[[RunFolder, int, Ask], bytes]] = {
    "maps": maps,
    "contents": contents,
    "emergence": emergence,
    "fleet": fleet,
}
"""Functions that compute arrays, by name."""
