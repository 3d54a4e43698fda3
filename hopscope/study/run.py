"""`RunStudy`: the study of one model of a run at one checkpoint."""

from functools import cached_property
from pathlib import Path
from typing import Any

from hopscope.circuits import Circuit, discover
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.patching import EXAMPLES as PAIRS
from hopscope.circuits.probe import ProbeHistory
from hopscope.circuits.probing import HISTORY_EXAMPLES, probe_history
from hopscope.circuits.saved import checked_circuit, circuit_file
from hopscope.configs import Experiment, Task
from hopscope.errors import CircuitError, ConfigError, RunReadOnly, StoreUnwritable
from hopscope.milestones import best_late_checkpoint
from hopscope.models import Transformer
from hopscope.runs import opened
from hopscope.store import Store
from hopscope.store.checkpoints import chosen_step
from hopscope.store.files import check_files, check_folder
from hopscope.study.study import Study
from hopscope.training import Run


def load(
    name: str,
    seed: int | None = None,
    step: int | None = None,
    store: Store | Path | str | None = None,
) -> "RunStudy":
    """The study of a model of a run. `name` is the run's name, or enough of it to be unique; the
    runs `gallery/NAME` come with hopscope. `seed` selects the fleet member (default: the first),
    `step` the checkpoint (default: the last). Use `hopscope.open_run` for runs of other kinds.
    """
    run = open_run(name, store)
    if not isinstance(run, Run):
        raise ConfigError(
            f"{run.name} is a run of kind {run.recipe.kind}, which has no model to study: "
            f"hopscope.open_run({name!r}) opens it"
        )
    return RunStudy(run, seed, step)


def open_run(name: str, store: Store | Path | str | None = None) -> Any:
    """A run of any kind, by its name (enough of it to be unique): a `Run`, an `NgramRun`, …"""
    store = store if isinstance(store, Store) else Store(store)
    return opened(store.find(name))


class RunStudy(Study):
    """The study of one model of a run at one of its checkpoints."""

    recipe: Experiment
    """The recipe of the run."""
    task: Task
    """The task that the model was trained on."""
    seed: int
    """The seed from which the model was trained."""
    name: str
    """The name for files about the model: the run's, with the seed and step if needed."""

    def __init__(self, run: Run, seed: int | None = None, step: int | None = None) -> None:
        # No super().__init__: the model is loaded on first use (property `model`).
        self.run = self.history = run
        self.recipe, self.task = run.recipe, run.recipe.task
        number = run.folder.member(seed)
        self.seed = self.recipe.seeds[number]
        self.member = number if len(self.recipe.seeds) > 1 else None
        self.step = chosen_step(run.folder, step)
        self.last = self.step == chosen_step(run.folder)
        self._earlier = None if self.last else self.step
        of_fleet = "" if self.member is None else f"-seed-{self.seed}"
        self.name = f"{run.name}{of_fleet}{'' if self.last else f'-step-{self.step}'}"
        self.circuit_from: Path | None = None
        """The path of a circuit file to use instead of the circuit saved with the run."""

    def __repr__(self) -> str:
        return f"Study({self.run.name!r}, seed={self.seed}, step={self.step})"

    @cached_property
    def model(self) -> Transformer:
        """The model with the weights of this step (a single model, also if the run trained a
        fleet).
        """
        model = self.run.model_at(self.step)
        return model if self.member is None else model.member(self.member)

    @property
    def circuit_file(self) -> str:
        """The name of the model's circuit file within the run's folder."""
        return circuit_file(self.run.folder, self.seed, self._earlier)

    @property
    def has_circuit(self) -> bool:
        """True if there is a circuit file: saved with the run, or given as `circuit_from`."""
        kept = self.circuit_file in self.run.folder.manifest.files
        return kept or self.circuit_from is not None

    @property
    def circuit(self) -> Circuit:
        """The saved circuit of the model; raises CircuitError if there is none (see `discover`)."""
        found = checked_circuit(self.run.folder, self.seed, self._earlier, self.circuit_from)
        if found is None:
            of = "" if self.member is None else f" --seed {self.seed}"
            at = "" if self.last else f" --step {self.step}"
            command = f"{self.run.folder.command('circuit')}{of}{at}"
            raise CircuitError(f"{self.name} has no circuit yet: `{command}` finds it")
        return found

    def discover(self, out: Path | str | None = None, **options: Any) -> Circuit:
        """Find the model's circuit and save it with the run, or in the file `out`.

        The options are those of `hopscope.discover`.
        """
        self.check_keeping(out)
        found = discover(self.model, self.task, **options)
        self._keep(found, out)
        return found

    def patch(self, examples: int = PAIRS, seed: int = 0, out: Path | str | None = None) -> Circuit:
        """The circuit with its account: which symbols are decodable at its roles, and which symbol
        each path moves. It is saved with the run, or in the file `out`; a gallery run is read-only,
        so there it is saved only with `out`.
        """
        circuit, keeps = self.circuit, out is not None or not self.run.folder.gallery
        if keeps:
            self.check_keeping(out)
        found = patch_circuit(self.model, circuit, self.task, examples, seed)
        if keeps:
            self._keep(found, out)
        return found

    def _keep(self, found: Circuit, out: Path | str | None) -> None:
        if out is not None:
            found.save(out)
            return
        with self.run.folder.locked():
            self.run.folder.commit({self.circuit_file: found.to_bytes()})

    def probe_history(self, examples: int = HISTORY_EXAMPLES, seed: int = 0) -> ProbeHistory:
        """Which symbols are decodable at each role after every layer, at every checkpoint."""
        return probe_history(self.run, self.task, self.member, examples, seed)

    def best_late_checkpoint(self) -> "RunStudy":
        """The same model at the late checkpoint with the lowest validation loss (the last step may
        be on a spike if the learning rate is constant).
        """
        steps, losses = self.run.losses("validation")
        if not len(steps):  # weights written by hand, not trained
            return self
        mine = losses[:, self.member or 0].mean(axis=-1)
        return RunStudy(
            self.run, self.seed, best_late_checkpoint(steps, mine, self.run.checkpoints)
        )

    def validation_loss(self) -> float | None:
        """The validation loss at this study's step; None if it was not measured at that step."""
        steps, losses = self.run.losses("validation")
        here = losses[steps == self.step, self.member or 0]
        return float(here.mean()) if len(here) else None

    def members(self) -> "list[RunStudy]":
        """A study of every model of the run, at the same step. For a run with a single model,
        models from runs in the same folder are included if the recipes differ only in the seed.
        """
        runs = [self.run]
        if len(self.recipe.seeds) == 1 and not self.run.folder.gallery:
            mine = self.recipe.hash_without_seeds()
            others, _ = Store(self.run.folder.path.parent).readable()
            runs += [
                Run(each)
                for each in others
                if each.name != self.run.name and each.recipe.hash_without_seeds() == mine
            ]
            runs.sort(key=lambda run: run.recipe.seeds)
        return [RunStudy(run, seed, self._earlier) for run in runs for seed in run.recipe.seeds]

    def check_keeping(self, out: Path | str | None = None) -> None:
        """Raise an error if a circuit cannot be written to its destination, before the search."""
        if out is not None:
            check_files(Path(out))
            return
        try:
            with self.run.folder.locked():
                check_folder(self.run.folder.path)
        except (RunReadOnly, StoreUnwritable) as error:
            raise type(error)(
                f"{error}; --no-keep --save FILE writes it to a file instead (in Python: out=FILE)"
            ) from error
