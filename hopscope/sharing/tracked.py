"""One model of a run as trackers know it: a name, settings, and numbers by step; no torch here.

`SERIES` says for each kind of run what its curves are. Of a run that is being trained, only steps
are told up to its last commit, so that whoever asks again later gets what is missing, and no step
in two halves.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hopscope.circuits.kept import kept_circuit, kept_emergence
from hopscope.configs.kinds import fetched
from hopscope.store import RunFolder
from hopscope.store.metrics import SPLITS, losses, parameters

Row = tuple[int, dict[str, float]]
"""A step, and what is known of it, by names."""
Series = tuple[str, Iterable[float], Iterable[float]]
"""A curve: its name, its steps, and a value for each."""


@dataclass(frozen=True)
class Tracked:
    """One model of a run."""

    folder: RunFolder
    seed: int

    @property
    def alone(self) -> bool:
        """Is it the only model of its run?"""
        return len(self.folder.recipe.seeds) == 1

    @property
    def id(self) -> str:
        """The same for everyone who trains the same: the run's hash, and of a fleet the seed."""
        digest = self.folder.recipe.digest()[:10]
        return digest if self.alone else f"{digest}-{self.seed}"

    @property
    def name(self) -> str:
        """What it is called: the run, and of a fleet the seed. No other has this name."""
        name, digest = self.folder.name.replace("/", "-"), self.folder.recipe.digest()[:10]
        name = name if digest in name else f"{name}-{digest}"
        return name if self.alone else f"{name}-seed-{self.seed}"

    @property
    def group(self) -> str | None:
        """The run, of a fleet: what its models are listed under."""
        return None if self.alone else self.folder.name

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe, flat (`model.layers`), with the seed of this model alone."""
        recipe = self.folder.recipe
        fields = {**recipe.model_dump(mode="json"), "seeds": self.seed}
        named = {"seed" if name == "seeds" else name: value for name, value in flat(fields)}
        return {"run": self.folder.name, "kind": recipe.kind, **named}

    def rows(self) -> list[Row]:
        """What is known of every step, in order. What is not a number is left out: some trackers
        cannot keep it.
        """
        known = self.folder.manifest.step
        found: dict[int, dict[str, float]] = {}
        for series in SERIES.get(self.folder.recipe.kind, (_losses,)):
            for name, steps, curve in series(self, known):
                for step, value in zip(map(int, steps), map(float, curve), strict=True):
                    if step <= known and math.isfinite(value):
                        found.setdefault(step, {})[name] = value
        return sorted(found.items())


def tracked(folder: RunFolder) -> list[Tracked]:
    """Every model of a run, in the order of its seeds."""
    return [Tracked(folder, seed) for seed in folder.recipe.seeds]


def flat(fields: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every value by its name with dots; lists as JSON.

    >>> dict(flat({"model": {"layers": 2}, "lags": [1, 2]}))
    {'model.layers': 2, 'lags': '[1, 2]'}
    """
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, list) else value


def _losses(run: Tracked, _: int) -> Iterator[Series]:
    """Partial losses: that of a hop by the symbol that is asked for."""
    recipe = run.folder.recipe
    number = recipe.seeds.index(run.seed)
    for split in SPLITS:
        steps, found = losses(run.folder, split)
        columns = range(found.shape[2])  # none where nothing was measured
        for column, named in zip(columns, recipe.loss_names(len(columns)), strict=False):
            name = named.replace("hop ", "loss/x")
            yield f"{split}/{name}", steps, found[:, number, column]


def _attention(run: Tracked, _: int) -> Iterator[Series]:
    """Attention along the paths of the circuit, where the story of their emergence is kept."""
    story = kept_emergence(run.folder, kept_circuit(run.folder, run.seed)) if run.alone else None
    for number, path in enumerate(() if story is None else story.paths):
        name = f"attention/{path.layer}.{path.head}/{path.source}→{path.reader}"
        assert story is not None
        yield name, story.steps, story.attention[number]


def _parameters(run: Tracked, _: int) -> Iterator[Series]:
    """Every number of an n-gram model."""
    found = parameters(run.folder, run.seed)
    for name, curve in found.items():
        if name != "step":
            yield f"parameters/{name}", found["step"], curve


def _accuracies(run: Tracked, known: int) -> Iterator[Series]:
    """What a benchmark has come to after so many questions, for each kind of question."""
    for each in fetched("hopscope.llm.results:results")(run.folder):
        told = {
            "accuracy": each.accuracy,
            "accuracy_low": each.interval[0],
            "accuracy_high": each.interval[1],
            "guessing": each.guessing,
            "acceptance": each.acceptance,
        }
        for name, value in told.items():
            yield f"{name}/{each.kind}", [known], [value]


def _findings(run: Tracked, known: int) -> Iterator[Series]:
    """How a language model answers, and what proves its circuit; once all is measured."""
    if not run.folder.manifest.complete:
        return
    found = fetched("hopscope.llm.mechanism:MechanismRun")(run.folder).findings
    yield "answers/right", [known], [found.answered.right / found.answered.count]
    yield "answers/guessing", [known], [found.answered.guessing]
    for proof in found.proofs():
        for name in ("knocked", "alone", "everything"):
            yield f"proof/{proof.name}/{name}", [known], [getattr(proof, name).mean]
        if proof.random:
            mean = sum(proof.random) / len(proof.random)
            yield f"proof/{proof.name}/random", [known], [mean]


SERIES: Mapping[str, tuple[Callable[[Tracked, int], Iterator[Series]], ...]] = {
    "facts": (_losses, _attention),
    "ngram": (_losses, _parameters),
    "llm": (_accuracies,),
    "llm-mechanism": (_findings,),
}
"""The curves of each kind of run; of a kind that is not listed, the losses."""
