"""Every knob of hopscope: frozen, validated, unknown keys refused; no torch here.

A config is plain data. The identity of a run is the SHA-256 of its experiment's canonical
JSON, so two people who write the same experiment get the same run.
"""

import json

from hopscope.configs.config import Config, Positive
from hopscope.configs.discovery import Discovery
from hopscope.configs.experiment import Experiment, Recipe
from hopscope.configs.llm import Asking, LlmBench
from hopscope.configs.markov import Descent, InductionModel, MarkovExperiment, MarkovProcess
from hopscope.configs.model import Interface, Model
from hopscope.configs.prompts import Prompts
from hopscope.configs.tasks import (
    ConditionalRetrieval,
    Induction,
    KHop,
    Retrieval,
    Task,
    VectorTask,
    guessing_level,
)
from hopscope.configs.training import Training
from hopscope.errors import ConfigError

__all__ = [
    "Asking",
    "ConditionalRetrieval",
    "Config",
    "Descent",
    "Discovery",
    "Experiment",
    "Induction",
    "InductionModel",
    "Interface",
    "KHop",
    "LlmBench",
    "MarkovExperiment",
    "MarkovProcess",
    "Model",
    "Positive",
    "Prompts",
    "Recipe",
    "Retrieval",
    "Task",
    "Training",
    "VectorTask",
    "guessing_level",
    "read_recipe",
]


def read_recipe(text: str | bytes) -> Recipe:
    """The recipe that this JSON describes, of whichever kind."""
    try:
        fields = json.loads(text)
    except RecursionError as error:
        raise ConfigError("an experiment is JSON nested less deeply than this") from error
    except ValueError as error:
        raise ConfigError(f"an experiment is JSON, and this is not ({error})") from error
    kind: type[Recipe] = Experiment
    if isinstance(fields, dict) and "experiment" in fields:
        kind = MarkovExperiment
    elif isinstance(fields, dict) and "bench" in fields:
        kind = LlmBench
    return kind.from_json(text)
