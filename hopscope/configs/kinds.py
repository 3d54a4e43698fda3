"""The table of all kinds of run, with the functions and classes for each.

An entry is written as `module:name`, and imported only when it is used.
"""

import json
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hopscope.configs.config import Config, shortened
from hopscope.configs.experiment import Experiment
from hopscope.configs.lm_ask import LmBench
from hopscope.configs.lm_circuit import LmCircuit
from hopscope.configs.ngram import NgramExperiment
from hopscope.configs.recipe import Recipe
from hopscope.errors import ConfigError


@dataclass(frozen=True)
class Kind:
    """One kind of run: the class of its recipes, and the functions that run and show them. Only the
    first three fields are required.
    """

    recipe: type[Recipe]
    prepare: str
    """A function of a recipe and a device. It raises an error if this machine cannot run the
    recipe, and returns a function that makes the `Stepper` for a run folder (see
    `hopscope.runs.stepper`)."""
    run: str
    """The class of a run, or a function that returns a run; the argument is a RunFolder."""
    text: str = "hopscope.cli.tables:last_loss_parts"
    """A function that returns what is printed about a run, as `Piece`s and texts."""
    rows: str = "hopscope.cli.tables:last_losses"
    """A function that returns the same as rows, for JSON."""
    figure: str = ""
    """A function that draws a run; empty: there is no figure."""
    page: str = ""
    """The class with which the explorer shows a run's folder; empty: it does not show it."""
    series: tuple[str, ...] = ("hopscope.export.tracked:losses_of",)
    """Functions that return the curves for trackers."""


KINDS: dict[str, Kind] = {
    "facts": Kind(
        Experiment, "hopscope.training.stepper:prepare", "hopscope.training.run:Run",
        text="hopscope.cli.tables:loss_parts",
        rows="hopscope.cli.tables:learned_rows",
        figure="hopscope.plots.curves:loss_curves",
        page="hopscope.web.trained:Trained",
        series=("hopscope.export.tracked:losses_of", "hopscope.export.tracked:attention_of"),
    ),
    "ngram": Kind(
        NgramExperiment, "hopscope.ngram.stepper:prepare", "hopscope.ngram.run:NgramRun",
        text="hopscope.cli.ngram:ngram_parts",
        rows="hopscope.cli.ngram:ngram_rows",
        figure="hopscope.plots.ngram:stages_figure",
        page="hopscope.web.ngram:Ngram",
        series=("hopscope.export.tracked:losses_of", "hopscope.export.tracked:parameters_of"),
    ),
    "lm": Kind(
        LmBench, "hopscope.lm.bench:prepare", "hopscope.lm.results:BenchRun",
        text="hopscope.cli.lm_text:bench_parts",
        rows="hopscope.lm.results:result_rows",
        figure="hopscope.plots.lm:bench_figure",
        page="hopscope.web.bench:Bench",
        series=("hopscope.export.tracked:accuracies_of",),
    ),
    "lm-circuit": Kind(
        LmCircuit, "hopscope.lm.circuit:prepare", "hopscope.lm.findings:LmCircuitRun",
        text="hopscope.cli.lm_text:circuit_run_parts",
        rows="hopscope.cli.lm_text:share_rows",
        figure="hopscope.plots.lm_circuit:run_figure",
        page="hopscope.web.mechanism:Traced",
        series=("hopscope.export.tracked:findings_of",),
    ),
}  # fmt: skip
"""Every kind of run, by its name in recipes and files."""


def fetched(part: str) -> Any:
    """Import and return the object that `module:name` refers to."""
    module, _, name = part.partition(":")
    return getattr(import_module(module), name)


def kind_of(recipe: object) -> Kind:
    """The kind of a recipe; raises ConfigError for any other object."""
    found = KINDS.get(recipe.kind) if isinstance(recipe, Recipe) else None
    if found is not None and isinstance(recipe, found.recipe):
        return found
    known = ", ".join(f"{kind.recipe.__name__} ({name})" for name, kind in KINDS.items())
    got = type(recipe).__name__ if isinstance(recipe, Config) else shortened(repr(recipe))
    raise ConfigError(f"got {got}; expected a recipe of a run: {known}")


def read_recipe(text: str | bytes) -> Recipe:
    """The recipe of any kind in a JSON text; raises ConfigError if it is invalid."""
    try:
        fields = json.loads(text)
    except RecursionError as error:
        raise ConfigError("a recipe is JSON nested less deeply than this") from error
    except ValueError as error:
        raise ConfigError(f"a recipe is JSON, and this is not ({error})") from error
    if not isinstance(fields, dict):
        raise ConfigError(f"a recipe is a JSON object; got {shortened(repr(fields))}")
    name = fields.get("kind")
    if not isinstance(name, str) or name not in KINDS:
        raise ConfigError(
            f"a recipe's kind is {shortened(repr(name))}; expected one of {', '.join(KINDS)} (a "
            "later hopscope may know more)"
        )
    return KINDS[name].recipe.from_json(text)
