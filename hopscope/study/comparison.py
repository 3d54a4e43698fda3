"""Comparison of two runs: their recipes, losses, and circuits.

found = compare("baseline", "with-mlp")
found.settings                   # the fields in which their recipes differ
found.losses                     # for each hop: its final losses, and when it was learned
found.circuits                   # steps and components of both circuits, if both are saved
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.saved import checked_circuit
from hopscope.configs.recipe import differing
from hopscope.display import Displayed, data_frame
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
    """The final values of one loss of one run, and when it was learned."""

    train: float
    """The final training loss: the mean over the last 100 steps and all models."""
    validation: float | None
    """The final validation loss, averaged the same way; None if there is none yet."""
    learned: tuple[int | None, ...]
    """The step at which each model learned this hop (None: never); empty if the loss belongs to no
    hop."""


@dataclass(frozen=True, eq=False)
class RunCourse:
    """The losses of one run, step by step."""

    name: str
    unit: str
    """What a step of the run is called, in the singular."""
    hops: tuple[str, ...]
    """The name of each column of losses."""
    chances: Sequence[float]
    """The loss at chance for each column; empty if it is not known."""
    learned: Sequence[Sequence[int | None]]
    """The step at which each model learned each hop, from `Run.learned`; empty without hops."""
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
        """The final values of the loss with this name; None if the run has no such loss."""
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
    """Two runs of the same kind, compared."""

    courses: tuple[RunCourse, RunCourse]
    settings: Mapping[str, tuple[Any, ...]]
    """The fields in which the recipes differ, with both values (None if a recipe has no such
    field)."""
    circuits: Circuits | None
    """The comparison of the circuits of each run's first model; None if one has no saved circuit.
    """
    remarks: tuple[str, ...]
    """A line for each run that is not complete, and for each without a circuit: why it has none."""

    def __repr__(self) -> str:
        return f"Comparison({self.names[0]!r}, {self.names[1]!r})"

    @property
    def names(self) -> tuple[str, str]:
        """The names of the two runs."""
        return self.courses[0].name, self.courses[1].name

    @property
    def hops(self) -> tuple[str, ...]:
        """The names of the losses that at least one of the runs has."""
        return tuple(dict.fromkeys(hop for course in self.courses for hop in course.hops))

    @property
    def losses(self) -> Mapping[str, tuple[Ended | None, Ended | None]]:
        """The final values of each loss in both runs; None for a run that does not have it."""
        first, second = self.courses
        return {hop: (first.ended(hop), second.ended(hop)) for hop in self.hops}

    def frame(self) -> Any:
        """A data frame (pandas) of the losses, with a row for each hop and run that has it.

        Raises ConfigError if neither run has losses.
        """
        if not self.hops:
            raise ConfigError(
                f"neither {' nor '.join(self.names)} has losses yet: train them first"
            )
        return data_frame(
            {
                "hop": hop,
                "run": name,
                "train": ended.train,
                "validation": ended.validation,
                "first_learned": min(steps, default=None),
                "last_learned": max(steps, default=None),
                "never_learned": len(ended.learned) - len(steps),
            }
            for hop, both in self.losses.items()
            for name, ended in zip(self.names, both, strict=True)
            if ended is not None
            for steps in ([step for step in ended.learned if step is not None],)
        )

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
            "remarks": list(self.remarks),
        }


def compare(
    first: "str | RunFolder | Run | RunStudy",
    second: "str | RunFolder | Run | RunStudy",
    store: Store | Path | str | None = None,
) -> Comparison:
    """Compare two runs of the same kind, each given by name, by tag, or as a run or its folder."""
    store = store if isinstance(store, Store) else Store(store)
    a, b = (_folder(one, store) for one in (first, second))
    _check_pair(a, b)
    kept, remarks = [], []
    for folder in (a, b):
        if not folder.manifest.complete:
            step, steps = folder.manifest.step, folder.recipe.steps
            remarks.append(f"{folder.name} is at {folder.recipe.unit} {step:,} of {steps:,}")
        try:
            kept.append(_circuit(folder))
        except CircuitError as error:
            remarks.append(str(error))
    both = (kept[0], kept[1]) if len(kept) == 2 else None
    return Comparison(
        (RunCourse.of(a), RunCourse.of(b)),
        differing([a.recipe, b.recipe]),
        Circuits.of(*both) if both else None,
        tuple(remarks),
    )


def _folder(one: "str | RunFolder | Run | RunStudy", store: Store) -> RunFolder:
    run: Any = getattr(one, "run", one)  # not isinstance: importing RunStudy would load torch
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
    """The saved circuit of a run's first model; raises CircuitError if there is none."""
    if folder.recipe.kind != "facts":
        raise CircuitError(f"{folder.name} is a run of kind {folder.recipe.kind}: no circuit")
    found = checked_circuit(folder, folder.recipe.seeds[0])
    if found is not None:
        return found
    chosen_step(folder)
    raise CircuitError(f"{folder.name} has no circuit yet: `{folder.command('circuit')}` finds it")
