"""Two runs side by side: what they were made from, how their losses went, what they learned.

found = compare("baseline", "with-mlp")
found.settings                   # the fields in which their recipes differ
found.losses                     # of each hop: how it ended, and when it was learned
found.circuits                   # steps and parts of both circuits, where both are kept
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.saved import checked_circuit
from hopscope.configs.recipe import differing
from hopscope.display import Displayed
from hopscope.errors import CircuitError, ConfigError
from hopscope.runs import opened
from hopscope.shapes import Float32, Int32
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import chosen_step
from hopscope.store.metrics import final_losses, losses
from hopscope.study.circuits import Circuits
from hopscope.training.run import Run

if TYPE_CHECKING:
    from hopscope.study.run import RunStudy


@dataclass(frozen=True)
class Ended:
    """What became of one loss of one run."""

    train: float
    """The training loss at the end: the mean over the last 100 steps and all models."""
    validation: float | None
    """The same of validation losses; None where there are none yet."""
    learned: tuple[int | None, ...]
    """The step at which each model learned it, or None: never. Empty where it is of no hop."""


@dataclass(frozen=True, eq=False)
class RunCourse:
    """How the losses of one run went."""

    name: str
    unit: str
    """The word for what the steps of the run count, in the singular."""
    hops: tuple[str, ...]
    """What each column is the loss of."""
    chances: Sequence[float]
    """The loss of each at chance; empty where it is not known."""
    learned: Sequence[Sequence[int | None]]
    """When each model learned each hop, as `Run.learned` says; empty where there are no hops."""
    steps: Int32[np.ndarray, "step"]
    train: Float32[np.ndarray, "step model hop"]
    checked: Int32[np.ndarray, "check"]
    validation: Float32[np.ndarray, "check model hop"]

    @classmethod
    def of(cls, folder: RunFolder) -> "RunCourse":
        """The course of the losses of one run, read from its metrics."""
        recipe, run = folder.recipe, opened(folder)
        train, checked = losses(folder, "train"), losses(folder, "validation")
        hops = tuple(recipe.loss_names(train[1].shape[2])) if len(train[0]) else ()
        when = run.learned() if isinstance(run, Run) and hops else []
        return cls(folder.name, recipe.unit, hops, recipe.chances, when, *train, *checked)

    def ended(self, hop: str) -> Ended | None:
        """What became of the loss of this name, if the run has one."""
        if hop not in self.hops:
            return None
        column = self.hops.index(hop)
        train = float(final_losses(self.steps, self.train)[:, column].mean())
        checked = None
        if len(self.checked):
            checked = float(final_losses(self.checked, self.validation)[:, column].mean())
        return Ended(train, checked, tuple(model[column] for model in self.learned))


@dataclass(frozen=True, eq=False)
class Comparison(Displayed):
    """Two runs of one kind, held against one another."""

    courses: tuple[RunCourse, RunCourse]
    settings: Mapping[str, tuple[Any, ...]]
    """The fields in which their recipes differ, with both values; None where one has no such."""
    circuits: Circuits | None
    """The circuits of the first model of each run, compared; None where one of them is not kept."""
    without: tuple[str, ...]
    """A line for each run that has no circuit."""

    def __repr__(self) -> str:
        return f"Comparison({self.names[0]!r}, {self.names[1]!r})"

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two runs."""
        return self.courses[0].name, self.courses[1].name

    @property
    def hops(self) -> tuple[str, ...]:
        """The losses that one of them has, or both."""
        return tuple(dict.fromkeys(hop for course in self.courses for hop in course.hops))

    @property
    def losses(self) -> Mapping[str, tuple[Ended | None, Ended | None]]:
        """What became of each loss in both; None in the run that does not have it."""
        first, second = self.courses
        return {hop: (first.ended(hop), second.ended(hop)) for hop in self.hops}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "runs": list(self.names),
            "settings": {field: list(both) for field, both in self.settings.items()},
            "losses": {
                hop: [ended and {**asdict(ended), "learned": list(ended.learned)} for ended in both]
                for hop, both in self.losses.items()
            },
            "circuits": None if self.circuits is None else self.circuits.to_dict(),
            "without": list(self.without),
        }


def compare(
    first: "str | RunFolder | Run | RunStudy",
    second: "str | RunFolder | Run | RunStudy",
    store: Store | Path | str | None = None,
) -> Comparison:
    """Hold two runs of one kind against one another: by name, by tag, or the folders themselves."""
    store = store if isinstance(store, Store) else Store(store)
    a, b = (_folder(one, store) for one in (first, second))
    _check_pair(a, b)
    kept, without = [], []
    for folder in (a, b):
        try:
            kept.append(_circuit(folder))
        except CircuitError as error:
            without.append(str(error))
    both = (kept[0], kept[1]) if len(kept) == 2 else None
    return Comparison(
        (RunCourse.of(a), RunCourse.of(b)),
        differing([a.recipe, b.recipe]),
        Circuits.of(*both) if both else None,
        tuple(without),
    )


def _folder(one: "str | RunFolder | Run | RunStudy", store: Store) -> RunFolder:
    run: Any = getattr(one, "run", one)  # of a RunStudy, which takes torch to import
    folder = getattr(run, "folder", run)
    return folder if isinstance(folder, RunFolder) else store.find(folder)


def _check_pair(first: RunFolder, second: RunFolder) -> None:
    if first.path.resolve() == second.path.resolve():
        raise ConfigError(f"{first.name} is one run, given twice; expected two")
    kinds = first.recipe.kind, second.recipe.kind
    if kinds[0] != kinds[1]:
        raise ConfigError(
            f"{first.name} is a run of kind {kinds[0]} and {second.name} one of kind {kinds[1]}: "
            "only runs of one kind can be compared"
        )


def _circuit(folder: RunFolder) -> Circuit:
    """The circuit that is kept of a run's first model."""
    if folder.recipe.kind != "facts":
        raise CircuitError(f"{folder.name} is a run of kind {folder.recipe.kind}: no circuit")
    found = checked_circuit(folder, folder.recipe.seeds[0])
    if found is not None:
        return found
    chosen_step(folder)
    raise CircuitError(f"{folder.name} has no circuit yet: `{folder.command('circuit')}` finds it")
