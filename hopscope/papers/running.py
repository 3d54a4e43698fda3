"""Run experiments: train missing runs, and store the rows of each as soon as it is complete."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hopscope.configs import Experiment, Recipe
from hopscope.errors import OF_ONE_RUN, CircuitError, HopscopeError, StoreError
from hopscope.papers.cost import RecordedTimes
from hopscope.papers.experiment import PaperExperiment, Protocol
from hopscope.papers.results import COMPUTED, Results, ResultsTable
from hopscope.store import RunFolder, Store
from hopscope.workers import Outcome
from hopscope.workers.job import is_complete
from hopscope.workers.progress import SweepProgress

Carry = Callable[[Sequence[Recipe], Callable[[SweepProgress], None]], Outcome]
"""Trains runs, and calls a function with the progress."""


@dataclass(frozen=True)
class ExperimentState:
    """The state of an experiment in one protocol: measured, trained and untrained runs."""

    experiment: PaperExperiment
    table: ResultsTable
    trained: int
    """The number of runs that are trained but not measured."""
    untrained: tuple[Recipe, ...]
    """The recipes of runs that must be trained."""
    seconds_here: float | None
    """The estimated time to train these on one processor; None if unknown."""
    seconds_gpu: float | None
    """The same on a GPU."""


def states(
    experiments: Iterable[PaperExperiment], wanted: Protocol, store: Store, results: Results
) -> list[ExperimentState]:
    """Return the state of each experiment; raises ResultsError if its results are unreadable.

    If the full protocol is measured, its state is returned instead of the wanted protocol's.
    """
    recorded = RecordedTimes(results)
    found = []
    for each in experiments:
        table = results.table(each.name, "full")
        if not table.runs or table.missing:
            table = results.table(each.name, each.nearest(wanted))
        recipes = each.runs(table.protocol)
        left = [recipes[name] for name in table.missing if name in recipes]
        untrained = tuple(recipe for recipe in left if not is_complete(recipe, store))
        here, gpu = (recorded.seconds(untrained, gpu=gpu) for gpu in (False, True))
        trained = len(left) - len(untrained)
        found.append(ExperimentState(each, table, trained, untrained, here, gpu))
    return found


@dataclass
class Keeper:
    """Measures the runs of an experiment, and stores the rows of each as soon as it is complete."""

    experiment: PaperExperiment
    store: Store
    results: Results
    machine: str
    troubles: dict[str, HopscopeError | None] = field(default_factory=dict)
    """The error of each run that was measured; None if there was none."""

    def look(self, progress: SweepProgress) -> None:
        """Measure the runs that are reported as complete."""
        for name, report in progress.reports.items():
            if report.state == "complete":
                self.measure(RunFolder(self.store.root / name))

    def measure(self, folder: RunFolder) -> None:
        """Store the rows of a run, unless another process has, or its error in `troubles`."""
        if folder.name in self.troubles:
            return
        self.troubles[folder.name] = None
        try:
            if folder.name not in self.results.measured(self.experiment.name):
                rows = self.experiment.measure(folder)
                self.results.keep(self.experiment.name, folder.name, rows, self.machine)
        except (CircuitError, *OF_ONE_RUN) as error:
            self.troubles[folder.name] = error


def run_missing(
    state: ExperimentState, store: Store, results: Results, machine: str, carry: Carry,
    say: Callable[[str], None] = lambda _: None,
) -> list[HopscopeError]:  # fmt: skip
    """Train and measure the missing runs of an experiment; return the errors of single runs."""
    experiment = state.experiment
    if not experiment.recipes:
        if state.table.missing:
            results.keep(experiment.name, COMPUTED, experiment.compute(), machine)
        return []
    keeper = Keeper(experiment, store, results, machine)
    for name in state.table.missing:
        if is_complete(experiment.runs(state.table.protocol)[name], store):
            keeper.measure(RunFolder(store.root / name))
    if not state.untrained:
        return [*filter(None, keeper.troubles.values())]
    go_on_from_shorter(experiment, state.untrained, store, say)
    outcome = carry(state.untrained, keeper.look)
    for folder in outcome.folders:
        keeper.measure(folder)
    return [*outcome.troubles, *filter(None, keeper.troubles.values())]


def go_on_from_shorter(
    experiment: PaperExperiment,
    wanted: Sequence[Recipe],
    store: Store,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Begin runs from complete runs, of any protocol, that differ only by fewer steps."""
    from hopscope.training.prolong import goes_on, prolong

    known = [
        recipe
        for protocol in experiment.recipes
        for recipe in experiment.runs(protocol).values()
        if isinstance(recipe, Experiment) and is_complete(recipe, store)
    ]
    for recipe in [each for each in wanted if isinstance(each, Experiment)]:
        beginnings = [each for each in known if goes_on(recipe, each)]
        if not beginnings or has_begun(store, recipe):
            continue
        name = max(beginnings, key=lambda each: each.steps).run_name()
        try:
            prolong(RunFolder(store.root / name), recipe, store)
        except OF_ONE_RUN as error:  # another process has begun it, or the shorter run is damaged
            say(f"{recipe.run_name()} does not go on from {name}: {error}")
        else:
            say(f"{recipe.run_name()} goes on from {name}")


def has_begun(store: Store, recipe: Recipe) -> bool:
    """Return whether the run has a checkpoint; True if the run is unreadable."""
    try:
        found = store.of(recipe)
    except StoreError:  # training reports it
        return True
    return found is not None and bool(found.files("checkpoints/"))
