"""The cost of trainings: in operations (for any machine), and in time, from recorded runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from math import log

from hopscope.configs import Experiment, LmBench, Recipe
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.results import Results, ResultsTable

FORWARD_AND_BACK = 3
"""A step costs three forward passes: the backward pass has two products for each forward one."""
UNITS = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"))
HOUR, MINUTE = 3_600, 60


@cache
def training_flop(experiment: Experiment) -> float:
    """Return the operations of the matrix products in all steps of a training, for all seeds.

    This is the usual count: all positions in all layers (though the last layer computes only the
    read ones), and attention as if it were not causal.
    """
    training = experiment.training
    examples = training.steps * training.batch * len(experiment.seeds)
    return float(2 * FORWARD_AND_BACK * examples * _products(experiment))


def _products(experiment: Experiment) -> int:
    """Return the multiplications of one example in the forward pass."""
    model, ends = experiment.model, experiment.task.interface()
    heads = model.heads * model.head_width
    maps = 4 * model.d_model * heads + 2 * model.d_model * model.mlp_width * model.mlp
    attention = 2 * ends.length * heads
    entrance = 0 if ends.tokens else ends.inputs * model.d_model
    exit_ = ends.read * model.d_model * ends.outputs
    return ends.length * (model.layers * (maps + attention) + entrance) + exit_


def in_flop(flop: float) -> str:
    """Return operations as text.

    >>> in_flop(1.26e15), in_flop(99.7e12), in_flop(158e12)
    ('1.3 PFLOP', '100 TFLOP', '158 TFLOP')
    """
    size, unit = next((each for each in UNITS if flop >= each[0]), UNITS[-1])
    return f"{flop / size:.2g} {unit}" if flop < 99.5 * size else f"{flop / size:.0f} {unit}"


def in_time(seconds: float) -> str:
    """Return seconds as text in minutes or hours.

    >>> in_time(40.0), in_time(7_200.0)
    ('1 min', '2.0 h')
    """
    if seconds >= HOUR:
        return f"{seconds / HOUR:.1f} h"
    return f"{max(1, round(seconds / MINUTE))} min"


def sample_and_cost(table: ResultsTable, experiment: PaperExperiment) -> str:
    """Return a table's runs, seeds and cost as text, and its protocol unless it is full and
    complete.
    """
    recipes = experiment.runs(table.protocol)
    runs, total = len(table.names), len(recipes)
    trained = [recipes[name] for name in table.names if name in recipes]
    flop = sum(training_flop(each) for each in trained if isinstance(each, Experiment))
    seeds = {seed for row in table.rows if (seed := getattr(row, "seed", None)) is not None}
    seconds = {row.run: its for row in table.rows if (its := getattr(row, "seconds", None))}
    precisions = {its for row in table.rows if (its := getattr(row, "precision", None))}
    activity = " and ".join(sorted({row.activity for row in table.rows}))
    said = [
        f"{table.protocol} protocol" * (table.protocol != "full" or total > runs),
        "computed, without any training" * (not experiment.recipes),
        f"{runs}{f' of {total}' * (total > runs)} run{'s' * (total > 1)}" * (runs > 0),
        f"{len(seeds)} seeds" if len(seeds) > 1 else "".join(f"seed {seed}" for seed in seeds),
        in_flop(flop) if flop else "",
        f"{in_time(sum(seconds.values()))} of {activity}" if seconds else "",
        f"in {' and '.join(sorted(precisions))}" if precisions else "",
    ]
    return f"{table.experiment}: {', '.join(filter(None, said))}"


class RecordedTimes:
    """Recorded times of measured runs, from which those of other runs are estimated."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @cached_property
    def _known(self) -> dict[tuple[str, bool], list[tuple[float, float]]]:
        """For each kind of run, on a processor or a GPU: the work and the seconds of every run."""
        found = defaultdict(list)
        for name, experiment in self._results.experiments.items():
            taken = self._results.seconds(name)
            recipes: Mapping[str, Recipe] = {}
            for protocol in experiment.recipes if taken else ():
                recipes = {**recipes, **experiment.runs(protocol)}
            for run, (machine, seconds) in taken.items():
                if run in recipes and seconds > 0:
                    kind, work = _work(recipes[run])
                    found[kind, machine.startswith("NVIDIA")].append((work, seconds))
        return found

    def seconds(self, recipes: Sequence[Recipe], *, gpu: bool) -> float | None:
        """Estimate the time of these runs one after the other, on one processor or a GPU; None if
        no run like one of them was recorded.
        """
        each = [self._of_one(recipe, gpu) for recipe in recipes]
        return None if None in each else sum(filter(None, each), 0.0)

    def _of_one(self, recipe: Recipe, gpu: bool) -> float | None:
        """Scale the time of the recorded run with the most similar work; None if there is none."""
        kind, work = _work(recipe)
        alike = self._known[kind, gpu]
        if not alike:
            return None
        nearest, seconds = min(alike, key=lambda pair: abs(log(pair[0] / work)))
        return seconds * work / nearest


def _work(recipe: Recipe) -> tuple[str, float]:
    """Return the kind of a run, and a measure of its work."""
    if isinstance(recipe, Experiment):
        return recipe.kind, training_flop(recipe)
    if isinstance(recipe, LmBench):
        return f"lm {recipe.model}", float(recipe.questions * len(recipe.prompts))
    return recipe.kind, float(recipe.steps * len(recipe.seeds))
