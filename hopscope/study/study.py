"""One model of a run, ready to be looked at: its role maps, its circuit, how that emerged.

model = hopscope.load("gallery/demo")
model.circuit                    # found once, kept with the run
model.maps().own                 # mean attention [layer, head, reader, source]
model.emergence().order          # the paths, in the order in which they appeared
model.probe().decodable(role, 2) # the symbols decodable at a role after two layers
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hopscope.circuits import Circuit, RoleMaps, adapter_of, attention_maps, discover
from hopscope.circuits.baselines import baselines
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.kept import circuit_file
from hopscope.circuits.patching import EXAMPLES as PAIRS
from hopscope.circuits.probe import Probe, ProbeHistory
from hopscope.circuits.probing import EXAMPLES as PROBE_EXAMPLES
from hopscope.circuits.probing import HISTORY_EXAMPLES, probe, probe_history
from hopscope.circuits.ranking import Baselines
from hopscope.circuits.tracking import EXAMPLES as STORY_EXAMPLES
from hopscope.circuits.tracking import emergence
from hopscope.configs import Experiment, Task
from hopscope.display import Displayed
from hopscope.errors import CircuitError, ConfigError, RunReadOnly, StoreUnwritable
from hopscope.milestones import best_late_checkpoint
from hopscope.models import Transformer
from hopscope.runs import opened
from hopscope.store import Store
from hopscope.store.checkpoints import check_step
from hopscope.store.files import check_files, check_folder
from hopscope.training import Run
from hopscope.training.device import check_examples

MAP_EXAMPLES = 256
"""Examples over which role maps are averaged."""


def load(
    name: str,
    seed: int | None = None,
    step: int | None = None,
    store: Store | Path | str | None = None,
) -> Any:
    """A run by its name, or enough of it to be unique; `gallery/NAME` comes with hopscope.

    Of a training over facts it is a `Study` of one model: of the fleet's member with this seed
    (None: the first), after this step (None: the last). Of any other kind it is its run.
    """
    store = store if isinstance(store, Store) else Store(store)
    run = opened(store.find(name))
    if isinstance(run, Run):
        return Study(run, seed, step)
    if seed is not None or step is not None:
        raise ConfigError(
            f"{run.name} is a run of kind {run.recipe.kind}, which has no model to choose by "
            "seed and step: leave them out"
        )
    return run


class Study(Displayed):
    """One model of a run, at one of its checkpoints, and what is kept with it."""

    def __init__(self, run: Run, seed: int | None = None, step: int | None = None) -> None:
        self.run = run
        self.member = self._member(seed)
        self.step = self._step(step)
        self.last = step is None
        self.circuit_from: Path | None = None
        """A file of a circuit that takes the place of the one kept with the run."""

    def __repr__(self) -> str:
        return f"Study({self.run.name!r}, seed={self.seed}, step={self.step})"

    @property
    def recipe(self) -> Experiment:
        """The recipe that the run is made from."""
        return self.run.recipe

    @property
    def task(self) -> Task:
        """The task that the model was trained on."""
        return self.recipe.task

    @property
    def seed(self) -> int:
        """The seed that it was trained from."""
        return self.recipe.seeds[self.member or 0]

    @property
    def name(self) -> str:
        """What files about the model are called: the run, and if needed the seed and the step."""
        seed = "" if self.member is None else f"-seed-{self.seed}"
        return f"{self.run.name}{seed}{'' if self.last else f'-step-{self.step}'}"

    @cached_property
    def model(self) -> Transformer:
        """The model with the weights of this step, one model even if the run trained a fleet."""
        model = self.run.model_at(self.step)
        return model if self.member is None else model.member(self.member)

    def maps(self, examples: int = MAP_EXAMPLES) -> RoleMaps:
        """Who attends to whom between roles, averaged over fresh examples."""
        self.check_fits(examples)
        return attention_maps(self.model, self.task, examples)

    @property
    def circuit_file(self) -> str:
        """Where in the run's folder its circuit is kept."""
        return circuit_file(self.run.folder, self.seed, None if self.last else self.step)

    @property
    def has_circuit(self) -> bool:
        """Was its circuit found already, and kept with the run?"""
        kept = self.circuit_file in self.run.folder.manifest.files
        return kept or self.circuit_from is not None

    @property
    def circuit(self) -> Circuit:
        """The circuit that was found in it and kept; `discover` finds it."""
        if not self.has_circuit:
            of = "" if self.member is None else f" --seed {self.seed}"
            at = "" if self.last else f" --step {self.step}"
            command = f"hopscope discover {self.run.name}{of}{at}"
            raise CircuitError(f"{self.name} has no circuit yet: `{command}` finds it")
        if self.circuit_from is not None:
            found = Circuit.load(self.circuit_from)
        else:
            found = Circuit.from_json(self.run.folder.read(self.circuit_file))
        found.check_model(adapter_of(self.model).digest())
        return found

    def heads_of_circuit(self) -> set[tuple[int, int]]:
        """The heads that do something in its circuit; none if it was not found yet."""
        components = self.circuit.components if self.has_circuit else ()
        return {head for component in components for head in component.at}

    def discover(
        self,
        watch: Callable[[str], None] = lambda _: None,
        out: Path | str | None = None,
        **options: Any,
    ) -> Circuit:
        """Find its circuit, and keep it with the run, or in another file.

        The options are those of `hopscope.discover`.
        """
        self.check_keeping(out)
        found = discover(self.model, self.task, watch=watch, **options)
        self._keep(found, out)
        return found

    def explain(
        self, out: Path | str | None = None, examples: int = PAIRS, seed: int = 0
    ) -> Circuit:
        """Give an account of its circuit: what its roles hold, and what each arrow carries. It is
        kept with the circuit, or in another file; of a model of the gallery, in a file alone.
        """
        circuit, keeps = self.circuit, out is not None or not self.run.folder.gallery
        if keeps:
            self.check_keeping(out)
        found = patch_circuit(self.model, circuit, self.task, examples, seed)
        if keeps:
            self._keep(found, out)
        return found

    def baselines(self, examples: int = PAIRS, seed: int = 0, **options: Any) -> Baselines:
        """What other methods say, beside its circuit; options are those of `baselines`."""
        return baselines(self.model, self.circuit, examples, seed, **options)

    def _keep(self, found: Circuit, out: Path | str | None) -> None:
        if out is not None:
            found.save(out)
            return
        with self.run.folder.locked():
            self.run.folder.commit({self.circuit_file: found.to_bytes()})

    def emergence(self, examples: int = STORY_EXAMPLES) -> Emergence:
        """When each path of its circuit appeared, checkpoint by checkpoint."""
        self.check_fits(examples)
        return emergence(self.run, self.circuit, member=self.member, examples=examples)

    def probe(self, examples: int = PROBE_EXAMPLES, seed: int = 0) -> Probe:
        """Which symbols can be read at each role after every layer, and in each head's output."""
        self.check_fits(examples)
        return probe(self.model, self.task, examples, seed)

    def probe_history(self, examples: int = HISTORY_EXAMPLES, seed: int = 0) -> ProbeHistory:
        """Which symbols could be read at each role after every layer, at every checkpoint."""
        self.check_fits(examples)
        return probe_history(self.run, self.task, self.member, examples, seed)

    def best_late_checkpoint(self) -> "Study":
        """The same model at the late checkpoint with the lowest validation loss: at a constant
        learning rate the last step may sit on a spike.
        """
        steps, losses = self.run.losses("validation")
        if not len(steps):  # written by hand, and not trained
            return self
        mine = losses[:, self.member or 0].mean(axis=-1)
        return Study(self.run, self.seed, best_late_checkpoint(steps, mine, self.run.checkpoints))

    def validation_loss(self) -> float | None:
        """The validation loss after this very step; None if it was not measured there."""
        steps, losses = self.run.losses("validation")
        here = losses[steps == self.step, self.member or 0]
        return float(here.mean()) if len(here) else None

    def members(self) -> "list[Study]":
        """Every model of the run, each at the same step; of a run with one model, also those of the
        runs beside it whose recipes differ in the seed alone.
        """
        step = None if self.last else self.step
        runs = [self.run]
        if len(self.recipe.seeds) == 1 and not self.run.folder.gallery:
            others, _ = Store(self.run.folder.path.parent).readable()
            alike = [
                each
                for each in others
                if each.recipe.hash_without_seeds() == self.recipe.hash_without_seeds()
            ]
            runs = [Run(each) for each in alike if each.name != self.run.name]
            runs = sorted([self.run, *runs], key=lambda run: run.recipe.seeds)
        return [Study(run, seed, step) for run in runs for seed in run.recipe.seeds]

    def check_keeping(self, out: Path | str | None = None) -> None:
        """Can a circuit be kept where it is to be kept? Better asked before the search."""
        if out is not None:
            check_files(Path(out))
            return
        try:
            with self.run.folder.locked():
                check_folder(self.run.folder.path)
        except (RunReadOnly, StoreUnwritable) as error:
            raise type(error)(
                f"{error}; --out FILE keeps the circuit in a file instead (in Python: out=FILE)"
            ) from error

    def check_fits(self, examples: int) -> None:
        """Refuse more examples than this machine can hold."""
        check_examples(self.recipe, examples)

    def _member(self, seed: int | None) -> int | None:
        seeds = self.recipe.seeds
        if seed is not None and seed not in seeds:
            known = ", ".join(map(str, seeds))
            raise ConfigError(f"seed is {seed!r}; {self.run.name} has the seeds {known}")
        if len(seeds) == 1:
            return None
        return 0 if seed is None else seeds.index(seed)

    def _step(self, step: int | None) -> int:
        steps = self.run.checkpoints
        if not steps:
            raise CircuitError(
                f"{self.run.name} has no checkpoint: `hopscope resume {self.run.name}`"
            )
        if step is not None and not isinstance(step, int | np.integer):
            raise ConfigError(f"step is {step!r}; expected a whole number")
        if step is not None:
            check_step(step, steps, self.run.name)
        return steps[-1] if step is None else step
