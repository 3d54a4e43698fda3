"""What the page can ask of a training over facts. torch is imported when a model is opened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hopscope.configs import Experiment
from hopscope.errors import CircuitError, ConfigError
from hopscope.store import RunFolder
from hopscope.store.checkpoints import check_step, checkpoint_name, checkpoint_steps
from hopscope.web.curves import curves, seed_of
from hopscope.web.described import arrays, description
from hopscope.web.kept import CONTENTS, MAPS, circuit_file, kept_arrays, kept_circuit
from hopscope.web.memory import Memory
from hopscope.web.questions import AblateQuestion, CostsQuestion, ExampleQuestion
from hopscope.web.tensors import packed

if TYPE_CHECKING:
    from hopscope.circuits import Ablator, Circuit
    from hopscope.configs import Task
    from hopscope.models import Transformer

ABLATOR_BYTES = 2**27
"""What an ablator keeps to be faster, at most (`hopscope.circuits.budget`)."""


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
        return self.recipe.losses_named(len(asked))

    @cached_property
    def seed(self) -> int:
        return seed_of(self.folder, self.recipe, self.asked_seed)

    @cached_property
    def circuit(self) -> "Circuit | None":
        return kept_circuit(self.folder, self.seed)

    @property
    def circuit_sha(self) -> str:
        """What tells its circuit from others; empty if none was found."""
        entry = self.folder.manifest.files.get(circuit_file(self.folder, self.seed))
        return "" if entry is None else entry.sha256

    def sha(self, step: int) -> str:
        """What tells the weights after a step from others."""
        return self.folder.manifest.files[checkpoint_name(step)].sha256

    @property
    def steps(self) -> list[int]:
        return checkpoint_steps(self.folder)

    def step(self, asked: int | None) -> int:
        """The checkpoint that is meant; unset: the last."""
        if not self.steps:
            raise CircuitError(
                f"{self.folder.name} has no checkpoint: `hopscope resume {self.folder.name}`"
            )
        if asked is not None:
            check_step(asked, self.steps, self.folder.name)
        return self.steps[-1] if asked is None else asked

    def model(self, step: int) -> "Transformer":
        """The model after a step, opened or remembered."""
        from hopscope.training import Run

        entry = self.folder.manifest.files[checkpoint_name(step)]
        run, seeds = Run(self.folder), self.recipe.seeds
        whole = self.memory.get(
            ("model", entry.sha256), lambda: run.model_at(step), lambda _: 2 * entry.size
        )
        return whole.member(seeds.index(self.seed)) if len(seeds) > 1 else whole

    def ablator(self, step: int, examples: int, sample: int) -> "Ablator":
        """What measures ablations of the model on these examples."""
        from hopscope.circuits import Ablator, exam_of, subject_of
        from hopscope.training.memory import check_examples

        check_examples(self.recipe, examples)
        return self.memory.get(
            ("ablator", self.sha(step), self.seed, examples, sample),
            lambda: Ablator(subject_of(self.model(step)), exam_of(self.task, examples, sample)),
            lambda made: ABLATOR_BYTES + made.exam.inputs.nbytes,
        )

    def description(self) -> dict[str, Any]:
        return description(self.folder, self.recipe, self.seed)

    def arrays(self, name: str) -> bytes:
        known = arrays(self.steps, self.circuit, len(self.recipe.seeds))
        if name not in known:
            raise ConfigError(
                f"{self.folder.name} has no arrays {name[:40]!r}; it has {', '.join(known)}"
            )
        if name == "losses":
            return packed(curves(self.folder))
        kept = {"maps": MAPS, "contents": CONTENTS}.get(name)
        found = kept_arrays(self.folder, kept, self.seed) if kept else None
        if found is not None:
            return found
        from hopscope.web.stories import STORIES

        shas = tuple(map(self.sha, self.steps))
        key = (name, shas, self.seed, self.circuit_sha)
        return self.memory.get(key, lambda: STORIES[name](self.folder, self.seed), len)

    def example(self, asked: ExampleQuestion) -> bytes:
        from hopscope.web.examples import example

        return example(self, self.step(asked.step), asked)

    def ablate(self, asked: AblateQuestion, stop: Callable[[], bool]) -> dict[str, Any]:
        from hopscope.web.measuring import ablated

        step = self.step(asked.step)
        of_circuit = self.circuit_sha if asked.circuit else ""
        key = (self.sha(step), self.seed, asked.examples, asked.sample, asked.changes, of_circuit)
        return self.memory.get(key, lambda: ablated(self, step, asked, stop), lambda _: 2_000)

    def over_time(
        self, asked: AblateQuestion, stop: Callable[[], bool]
    ) -> Iterator[dict[str, Any]]:
        from hopscope.web.measuring import over_time

        self.step(asked.step)
        return over_time(self, self.steps, asked, stop)

    def costs(self, asked: CostsQuestion, stop: Callable[[], bool]) -> Iterator[dict[str, Any]]:
        from hopscope.web.measuring import costs

        return costs(self, self.step(asked.step), asked, stop)
