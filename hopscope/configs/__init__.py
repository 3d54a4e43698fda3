"""Every knob of hopscope: frozen, validated, unknown keys refused; no torch here.

A config is plain data. The identity of a run is the SHA-256 of its experiment's canonical
JSON, so two people who write the same experiment get the same run.
"""

import json

from hopscope.configs.config import Config, Positive
from hopscope.configs.experiment import Experiment, Recipe
from hopscope.configs.markov import Descent, InductionModel, MarkovExperiment, MarkovProcess
from hopscope.configs.model import Interface, Model
from hopscope.configs.tasks import (
    ConditionalRetrieval,
    Induction,
    KHop,
    Retrieval,
    Task,
    VectorTask,
)
from hopscope.configs.training import Training
from hopscope.errors import ConfigError

__all__ = [
    "ConditionalRetrieval",
    "Config",
    "Descent",
    "Experiment",
    "Induction",
    "InductionModel",
    "Interface",
    "KHop",
    "MarkovExperiment",
    "MarkovProcess",
    "Model",
    "Positive",
    "Recipe",
    "Retrieval",
    "Task",
    "Training",
    "VectorTask",
    "read_recipe",
]


def read_recipe(text: str | bytes) -> Recipe:
    """The recipe that this JSON describes, of whichever kind."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"an experiment is JSON, and this is not ({error})") from error
    markov = isinstance(fields, dict) and fields.get("experiment") == "markov"
    return (MarkovExperiment if markov else Experiment).from_json(text)
