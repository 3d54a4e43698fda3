"""One model of a run for trackers: a name, settings, and numbers by step, without torch.

`hopscope.configs.kinds` names the curves of each kind of run. While a run trains, its numbers end
at its last commit, so that no step is sent incompletely.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hopscope.circuits.saved import saved_circuit, saved_emergence
from hopscope.configs.kinds import KINDS, fetched
from hopscope.configs.recipe import SPLITS
from hopscope.store import RunFolder
from hopscope.store.folder import born
from hopscope.store.metrics import losses, parameter_series

StepNumbers = tuple[int, dict[str, float]]
"""A step, and its numbers by the names of their series."""
Curve = tuple[str, Iterable[float], Iterable[float]]
"""A curve: its name, its steps, and a value for each step."""


@dataclass(frozen=True)
class Tracked:
    """One model of a run."""

    folder: RunFolder
    seed: int

    @property
    def alone(self) -> bool:
        """Whether this is the only model of its run."""
        return len(self.folder.recipe.seeds) == 1

    @property
    def id(self) -> str:
        """The run's hash, for a fleet with the seed; equal on all machines for one recipe."""
        digest = self.folder.recipe.digest()[:10]
        return digest if self.alone else f"{digest}-{self.seed}"

    @property
    def name(self) -> str:
        """A unique name: the run's, for a fleet with the seed."""
        name, digest = self.folder.name.replace("/", "-"), self.folder.recipe.digest()[:10]
        name = name if digest in name else f"{name}-{digest}"
        return name if self.alone else f"{name}-seed-{self.seed}"

    @property
    def group(self) -> str | None:
        """The name of the fleet's run, which groups its models; None for a run of one model."""
        return None if self.alone else self.folder.name

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe as a flat dictionary (`model.layers`), with only the seed of this model."""
        recipe = self.folder.recipe
        fields = {**recipe.model_dump(mode="json"), "seeds": self.seed}
        named = {"seed" if name == "seeds" else name: value for name, value in flat(fields)}
        return {"run": self.folder.name, "kind": recipe.kind, **named}

    def time(self, step: int) -> float:
        """Estimate when the training reached a step (seconds since 1970), at a constant rate."""
        manifest = self.folder.manifest
        return born(self.folder.path) + step * manifest.seconds / max(1, manifest.step)

    def rows(self) -> list[StepNumbers]:
        """Return the numbers of every step, in order, without NaN and infinity (some trackers
        refuse these).
        """
        known = self.folder.manifest.step
        found: dict[int, dict[str, float]] = {}
        for series in KINDS[self.folder.recipe.kind].series:
            for name, steps, curve in fetched(series)(self, known):
                for step, value in zip(map(int, steps), map(float, curve), strict=True):
                    if step <= known and math.isfinite(value):
                        found.setdefault(step, {})[name] = value
        return sorted(found.items())


def tracked(folder: RunFolder) -> list[Tracked]:
    """Every model of a run, in the order of its seeds."""
    return [Tracked(folder, seed) for seed in folder.recipe.seeds]


def flat(fields: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value with its dotted name; lists become JSON.

    >>> dict(flat({"model": {"layers": 2}, "lags": [1, 2]}))
    {'model.layers': 2, 'lags': '[1, 2]'}
    """
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, list) else value


def losses_of(run: Tracked, _: int) -> Iterator[Curve]:
    """Yield the losses of each split; a hop's loss is named by the asked symbol."""
    recipe = run.folder.recipe
    number = recipe.seeds.index(run.seed)
    for split in SPLITS:
        steps, found = losses(run.folder, split)
        columns = range(found.shape[2])
        for column, named in zip(columns, recipe.loss_names(len(columns)), strict=False):
            name = named.replace("hop ", "loss/x")
            yield f"{split}/{name}", steps, found[:, number, column]


def attention_of(run: Tracked, _: int) -> Iterator[Curve]:
    """Yield the attention along the circuit's paths, if their emergence is kept with the run."""
    story = saved_emergence(run.folder, saved_circuit(run.folder, run.seed)) if run.alone else None
    for number, path in enumerate(() if story is None else story.paths):
        name = f"attention/{path.layer}.{path.head}/{path.source}→{path.destination}"
        assert story is not None
        yield name, story.steps, story.attention[number]


def parameters_of(run: Tracked, _: int) -> Iterator[Curve]:
    """Yield every parameter of an n-gram model."""
    found = parameter_series(run.folder, run.seed)
    for name, curve in found.items():
        if name != "step":
            yield f"parameters/{name}", found["step"], curve


def accuracies_of(run: Tracked, known: int) -> Iterator[Curve]:
    """Yield the accuracy of a benchmark after the questions so far, for each kind of question."""
    for each in fetched("hopscope.lm.results:results")(run.folder):
        low, high = each.interval or (None, None)
        told = {
            "accuracy": each.accuracy,
            "accuracy_low": low,
            "accuracy_high": high,
            "chance": each.chance,
            "acceptance": each.acceptance,
        }
        for name, value in told.items():
            if value is not None:
                yield f"{name}/{each.kind}", [known], [value]


def findings_of(run: Tracked, known: int) -> Iterator[Curve]:
    """Yield the answers and proofs of a language model's circuit, once it is complete."""
    if not run.folder.manifest.complete:
        return
    found = fetched("hopscope.lm.findings:LmCircuitRun")(run.folder).findings
    yield "answers/right", [known], [found.answered.right / found.answered.count]
    yield "answers/chance", [known], [found.answered.chance]
    for proof in found.proofs():
        for name in ("circuit", "random", "rest", "everything"):
            if (share := getattr(proof, name)) is not None:
                yield f"proof/{proof.exchange}/{name}", [known], [share.mean]
