"""A training over facts for the page; torch is imported when a model is opened."""

from collections.abc import Hashable, Iterator
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hopscope.circuits.saved import checkpoint_digest, circuit_file, saved_circuit
from hopscope.configs import Experiment
from hopscope.errors import RunDamaged
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, chosen_step
from hopscope.web.curves import remembered_curves
from hopscope.web.described import description
from hopscope.web.questions import AblateQuestion, Ask, CostsQuestion, ExampleQuestion
from hopscope.web.shown import Shown, ShownRun
from hopscope.web.tensors import unpacked

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.configs import Task
    from hopscope.models import Transformer
    from hopscope.web.opened import Opened

KEPT_FILES = {"maps": "explorer/maps.safetensors", "contents": "explorer/contents.safetensors"}
"""Arrays of all checkpoints that are stored with models of the gallery, so that the first view
needs no computation; `benchmarks/gallery.py --explorer` makes them.
"""
CIRCUIT_BYTES = 2**20
"""Largest size of a circuit in the cache."""


class ShownModel(Shown):
    """A model with its task, with one checkpoint or several."""

    def opened(self, step: int | None) -> "Opened":
        """Open the model after a step (None: the last)."""
        raise NotImplementedError

    def example(self, asked: ExampleQuestion) -> bytes:
        from hopscope.web.examples import example

        return example(self.opened(asked.step), asked)

    def ablate(self, asked: AblateQuestion, ask: Ask) -> dict[str, Any]:
        from hopscope.web.measuring import ablated

        return ablated(self.opened(asked.step), asked, ask)

    def costs(self, asked: CostsQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
        from hopscope.web.measuring import costs

        return costs(self.opened(asked.step), asked, ask)


class Trained(ShownModel, ShownRun):
    """One model of a training over facts."""

    @property
    def recipe(self) -> Experiment:
        return self.folder.recipe_as(Experiment)

    @property
    def task(self) -> "Task":
        return self.recipe.task

    @cached_property
    def circuit(self) -> "Circuit | None":
        return self.memory.get(
            ("circuit", self.circuit_sha),
            lambda: saved_circuit(self.folder, self.seed),
            lambda _: CIRCUIT_BYTES,
        )

    @property
    def circuit_sha(self) -> str:
        """The SHA-256 of the circuit's file; empty if there is none."""
        entry = self.folder.manifest.files.get(circuit_file(self.folder, self.seed))
        return "" if entry is None else entry.sha256

    @property
    def circuit_step(self) -> int | None:
        """The step of the checkpoint in which the circuit was found.

        None if that checkpoint is gone (an unplanned one is removed when the run continues).
        """
        if self.circuit is None:
            return None
        steps = reversed(self.steps)
        return next((step for step in steps if self._digest(step) == self.circuit.model), None)

    def _digest(self, step: int) -> str:
        """Return the digest of the weights after a step (cached); empty if they are damaged.

        Opening the model reports the damage.
        """
        key = ("digest", self.sha(step), self.seed)
        try:
            return self.memory.get(
                key, lambda: checkpoint_digest(self.folder, step, self.seed), len
            )
        except RunDamaged:
            return ""

    def sha(self, step: int) -> str:
        """Return the SHA-256 of the checkpoint's file."""
        return self.folder.manifest.files[checkpoint_name(step)].sha256

    @property
    def steps(self) -> list[int]:
        return checkpoint_steps(self.folder)

    def step(self, asked: int | None) -> int:
        """Return the step of a checkpoint (None: the last); raises if it does not exist."""
        return chosen_step(self.folder, asked)

    def model(self, step: int) -> "Transformer":
        """Return the model after a step (cached)."""
        from hopscope.training import Run

        entry = self.folder.manifest.files[checkpoint_name(step)]
        run, seeds = Run(self.folder), self.recipe.seeds
        number = seeds.index(self.seed)  # raises for an unknown seed, also in a single run
        whole = self.memory.get(
            ("model", entry.sha256), lambda: run.model_at(step), lambda _: 2 * entry.size
        )
        return whole.member(number) if len(seeds) > 1 else whole

    def opened(self, step: int | None) -> "Opened":
        from hopscope.circuits.probing import EXAMPLES, HISTORY_EXAMPLES
        from hopscope.web.opened import Opened

        step = self.step(step)
        return Opened(
            task=self.task,
            hops=self.recipe.loss_names(len(self.task.asked_hops())),
            chances=list(self.task.chances(self.task.labelled_positions())),
            circuit=self.circuit,
            weights=(self.sha(step), self.seed, self.circuit_sha),
            open=partial(self.model, step),
            probed=HISTORY_EXAMPLES if len(self.steps) > 1 else EXAMPLES,
            memory=self.memory,
        )

    def description(self) -> dict[str, Any]:
        found = description(self.folder, self.recipe, self.seed)
        return {**found, "circuit_step": self.circuit_step}

    @property
    def array_names(self) -> list[str]:
        if not self.steps:
            return ["losses"]
        followed = len(self.steps) > 1 and self.circuit is not None and self.circuit.tracked
        fleet = len(self.recipe.seeds) > 1
        return ["losses", "maps", "contents", *["emergence"] * bool(followed), *["fleet"] * fleet]

    def key(self, name: str, step: int | None) -> Hashable:
        if step is not None:
            return name, self.sha(self.step(step)), self.seed, len(self.steps) > 1
        return name, tuple(map(self.sha, self.steps)), self.seed, self.circuit_sha

    def kept(self, name: str) -> bytes | None:
        if name == "losses":
            return remembered_curves(self.folder, self.memory)
        file = KEPT_FILES.get(name)
        if file not in self.folder.manifest.files or self.seed != self.recipe.seeds[0]:
            return None
        data = self.folder.read(file)
        steps = unpacked(data)[0]["steps"].tolist()
        return data if steps == self.steps else None  # None: trained further

    def measured(self, name: str, step: int | None, ask: Ask) -> bytes:
        from hopscope.web.stories import STORIES, contents

        if step is not None:
            return contents(self.folder, self.seed, ask, step)
        return STORIES[name](self.folder, self.seed, ask)

    def over_time(self, asked: AblateQuestion, ask: Ask) -> Iterator[dict[str, Any]]:
        from hopscope.web.measuring import over_time

        self.step(asked.step)
        return over_time({step: self.opened(step) for step in self.steps}, asked, ask)
