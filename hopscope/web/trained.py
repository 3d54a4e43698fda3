"""What the page can ask of a training over facts. torch is imported when a model is opened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hopscope.circuits.saved import checkpoint_digest, circuit_file, saved_circuit
from hopscope.configs import Experiment
from hopscope.errors import ConfigError, RunDamaged
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, chosen_step
from hopscope.web.curves import remembered_curves
from hopscope.web.described import arrays, description
from hopscope.web.kept import CONTENTS, MAPS, kept_arrays
from hopscope.web.memory import Memory
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.configs import Task
    from hopscope.models import Transformer
    from hopscope.web.opened import Opened

CIRCUIT_BYTES = 2**20
"""What a circuit takes, at most."""


@dataclass(frozen=True)
class Trained:
    """One model of a training over facts."""

    folder: RunFolder
    memory: Memory
    asked_seed: int | None = None

    @property
    def recipe(self) -> Experiment:
        return self.folder.recipe_as(Experiment)

    @property
    def task(self) -> "Task":
        return self.recipe.task

    @property
    def hops(self) -> list[str]:
        asked = self.task.asked_hops()
        return self.recipe.loss_names(len(asked))

    @cached_property
    def seed(self) -> int:
        return self.recipe.seeds[self.folder.member(self.asked_seed)]

    @cached_property
    def circuit(self) -> "Circuit | None":
        return self.memory.get(
            ("circuit", self.circuit_sha),
            lambda: saved_circuit(self.folder, self.seed),
            lambda _: CIRCUIT_BYTES,
        )

    @property
    def circuit_sha(self) -> str:
        """What tells its circuit from others; empty if none was found."""
        entry = self.folder.manifest.files.get(circuit_file(self.folder, self.seed))
        return "" if entry is None else entry.sha256

    @property
    def circuit_step(self) -> int | None:
        """The checkpoint that its circuit was found in; None if it is none of those there are, as
        when the run went on after a checkpoint that was not planned.
        """
        if self.circuit is None:
            return None
        steps = reversed(self.steps)
        return next((step for step in steps if self._digest(step) == self.circuit.model), None)

    def _digest(self, step: int) -> str:
        """What tells the weights after a step from others, computed or remembered; empty if they
        are damaged, which is told when they are asked for.
        """
        key = ("digest", self.sha(step), self.seed)
        try:
            return self.memory.get(
                key, lambda: checkpoint_digest(self.folder, step, self.seed), len
            )
        except RunDamaged:
            return ""

    def sha(self, step: int) -> str:
        """What tells the weights after a step from others."""
        return self.folder.manifest.files[checkpoint_name(step)].sha256

    @property
    def steps(self) -> list[int]:
        return checkpoint_steps(self.folder)

    def step(self, asked: int | None) -> int:
        """The checkpoint that is meant; unset: the last."""
        return chosen_step(self.folder, asked)

    def model(self, step: int) -> "Transformer":
        """The model after a step, opened or remembered."""
        from hopscope.training import Run

        entry = self.folder.manifest.files[checkpoint_name(step)]
        run, seeds = Run(self.folder), self.recipe.seeds
        number = seeds.index(self.seed)  # refuses a seed that the run has not, even of a single one
        whole = self.memory.get(
            ("model", entry.sha256), lambda: run.model_at(step), lambda _: 2 * entry.size
        )
        return whole.member(number) if len(seeds) > 1 else whole

    def opened(self, step: int) -> "Opened":
        """The model after a step, as the page looks at it."""
        from hopscope.circuits.probing import EXAMPLES, HISTORY_EXAMPLES
        from hopscope.training.device import check_forward
        from hopscope.web.opened import Opened

        return Opened(
            task=self.task,
            hops=self.hops,
            chances=list(self.task.chances(self.task.labelled_positions())),
            circuit=self.circuit,
            weights=(self.sha(step), self.seed, self.circuit_sha),
            open=partial(self.model, step),
            check_fits=partial(check_forward, self.recipe),
            probed=HISTORY_EXAMPLES if len(self.steps) > 1 else EXAMPLES,
            memory=self.memory,
        )

    def description(self) -> dict[str, Any]:
        found = description(self.folder, self.recipe, self.seed)
        ready = [name for name in found["arrays"] if self.at_hand(name) is not None]
        return {**found, "at_hand": ready, "circuit_step": self.circuit_step}

    def at_hand(self, name: str) -> bytes | None:
        """Arrays that are kept or remembered; None if they have to be computed."""
        known = arrays(self.steps, self.circuit, len(self.recipe.seeds))
        if name not in known:
            raise ConfigError(
                f"{self.folder.name} has no arrays {name[:40]!r}; it has {', '.join(known)}"
            )
        if name == "losses":
            return remembered_curves(self.folder, self.memory)
        kept = {"maps": MAPS, "contents": CONTENTS}.get(name)
        found = kept_arrays(self.folder, kept, self.seed) if kept else None
        return self.memory.known(self._key(name)) if found is None else found

    def arrays(self, name: str, stop: Callable[[], bool]) -> bytes:
        found = self.at_hand(name)
        if found is not None:
            return found
        from hopscope.web.measuring import asked_to_stop
        from hopscope.web.stories import STORIES

        ask = asked_to_stop(stop)
        return self.memory.get(
            self._key(name), lambda: STORIES[name](self.folder, self.seed, ask), len
        )

    def arrays_at(self, name: str, step: int, stop: Callable[[], bool]) -> bytes:
        """Arrays of one checkpoint: a short question, where all checkpoints take minutes."""
        if name != "contents":
            raise ConfigError(f"{name[:40]!r} is not of one step; expected contents")
        from hopscope.web.measuring import asked_to_stop
        from hopscope.web.stories import contents

        key = name, self.sha(self.step(step)), self.seed, len(self.steps) > 1
        ask = asked_to_stop(stop)
        return self.memory.get(key, lambda: contents(self.folder, self.seed, ask, step), len)

    def _key(self, name: str) -> tuple[object, ...]:
        return name, tuple(map(self.sha, self.steps)), self.seed, self.circuit_sha

    def example(self, asked: ExampleQuestion) -> bytes:
        from hopscope.web.examples import example

        return example(self.opened(self.step(asked.step)), asked)

    def ablate(self, asked: AblateQuestion, stop: Callable[[], bool]) -> dict[str, Any]:
        from hopscope.web.measuring import ablated

        return ablated(self.opened(self.step(asked.step)), asked, stop)

    def over_time(
        self, asked: AblateQuestion, stop: Callable[[], bool]
    ) -> Iterator[dict[str, Any]]:
        from hopscope.web.measuring import over_time

        self.step(asked.step)
        return over_time({step: self.opened(step) for step in self.steps}, asked, stop)

    def costs(self, asked: CostsQuestion, stop: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        from hopscope.web.measuring import costs

        return costs(self.opened(self.step(asked.step)), asked, stop)
