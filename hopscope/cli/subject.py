"""Which model of which run is examined, and where its circuit is kept."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from hopscope.cli.writable import check_files, check_folder
from hopscope.errors import CircuitError, ConfigError, RunReadOnly, StoreUnwritable
from hopscope.store import Store

if TYPE_CHECKING:
    from hopscope.circuits import Circuit
    from hopscope.models import Transformer


@dataclass(frozen=True)
class ModelArguments:
    """Which run, and which of its models."""

    run: Annotated[str, tyro.conf.Positional]
    """The run's name, or enough of it to be unique; or gallery/NAME."""
    seed: int | None = None
    """Of a fleet, the model with this seed; unset: the first."""
    step: int | None = None
    """The checkpoint after this step; unset: the last."""
    store: Path | None = None
    """Folder of runs; unset: $HOPSCOPE_STORE, or ./runs."""


class Examined:
    """One model of a run, at one of its checkpoints."""

    def __init__(self, chosen: ModelArguments) -> None:
        from hopscope.training import Run

        self.run: Run = Run(Store(chosen.store).find(chosen.run))
        self.task = self.run.experiment.task
        self.member = self._member(chosen.seed)
        self.step = self._step(chosen.step)
        self.last = chosen.step is None

    def _member(self, seed: int | None) -> int | None:
        seeds = self.run.experiment.seeds
        if seed is not None and seed not in seeds:
            known = ", ".join(map(str, seeds))
            raise ConfigError(f"--seed is {seed}; {self.run.name} has the seeds {known}")
        if len(seeds) == 1:
            return None
        return 0 if seed is None else seeds.index(seed)

    def _step(self, step: int | None) -> int:
        steps = self.run.checkpoints
        if not steps:
            raise CircuitError(
                f"{self.run.name} has no checkpoint: `hopscope resume {self.run.name}`"
            )
        if step is not None and step not in steps:
            near = min(steps, key=lambda known: abs(known - step))
            raise ConfigError(
                f"--step is {step}; {self.run.name} has no checkpoint there, the nearest is {near}"
            )
        return steps[-1] if step is None else step

    @property
    def model(self) -> "Transformer":
        model = self.run.model_at(self.step)
        return model if self.member is None else model.member(self.member)

    @property
    def name(self) -> str:
        """What its files are called."""
        seed = "" if self.member is None else f"-seed-{self.run.experiment.seeds[self.member]}"
        return f"{self.run.name}{seed}{'' if self.last else f'-step-{self.step}'}"

    @property
    def circuit_file(self) -> str:
        """Where in the run's folder its circuit is kept."""
        return f"circuit{self.name.removeprefix(self.run.name)}.json"

    def circuit(self) -> "Circuit":
        """The circuit that discover found in it."""
        from hopscope.circuits import Circuit, subject_of

        if self.circuit_file not in self.run.folder.manifest.files:
            raise CircuitError(
                f"{self.name} has no circuit yet: `hopscope discover {self.run.name}` finds it"
            )
        found = Circuit.from_json(self.run.folder.read(self.circuit_file))
        found.check_model(subject_of(self.model).digest())
        return found

    def heads_of_circuit(self) -> set[tuple[int, int]]:
        """The heads that do something in its circuit, if that is known."""
        known = self.circuit_file in self.run.folder.manifest.files
        return {part.at for part in self.circuit().parts} if known else set()

    def found(
        self, watch: Callable[[str], None], out: Path | None = None, **options: int | bool
    ) -> "Circuit":
        """Discover its circuit, and keep it with the run, or in another file."""
        from hopscope.circuits import discover

        self.check_keeping(out)
        circuit = discover(self.model, self.task, watch=watch, **options)  # type: ignore[arg-type]
        if out is not None:
            circuit.save(out)
            return circuit
        with self.run.folder.locked():
            self.run.folder.commit({self.circuit_file: circuit.to_bytes()})
        return circuit

    def check_keeping(self, out: Path | None) -> None:
        """Can a circuit be kept where it is to be kept? Better asked before the search."""
        if out is not None:
            check_files(out)
            return
        try:
            with self.run.folder.locked():
                check_folder(self.run.folder.path)
        except (RunReadOnly, StoreUnwritable) as error:
            raise type(error)(f"{error}; --out FILE keeps the circuit in a file instead") from error

    def check_fits(self, examples: int) -> None:
        """Refuse more examples than this machine can hold."""
        from hopscope.training.memory import check_examples

        check_examples(self.run.experiment, examples)

    @property
    def steps_per_epoch(self) -> float:
        return self.run.experiment.training.steps_per_epoch
