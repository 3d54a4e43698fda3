"""All settings of hopscope, as frozen and validated configs; no torch here.

A config is plain data. The identity of a run is the SHA-256 of its experiment's canonical JSON, so
two people who write the same experiment get the same run.
"""

from hopscope.configs.config import Config, Positive
from hopscope.configs.discovery import Discovery
from hopscope.configs.experiment import Experiment
from hopscope.configs.kinds import read_recipe
from hopscope.configs.lm_ask import Asking, LmBench
from hopscope.configs.lm_circuit import LmCircuit, Tracing
from hopscope.configs.model import Interface, Model
from hopscope.configs.ngram import Descent, InductionModel, NgramExperiment, NgramProcess
from hopscope.configs.prompts import Dtype, Prompts
from hopscope.configs.recipe import Recipe, Split
from hopscope.configs.tasks import (
    MQAR,
    ConditionalRetrieval,
    FactTask,
    Induction,
    KHop,
    Retrieval,
    Task,
    VectorTask,
)
from hopscope.configs.training import Training

__all__ = [
    "MQAR",
    "Asking",
    "ConditionalRetrieval",
    "Config",
    "Descent",
    "Discovery",
    "Dtype",
    "Experiment",
    "FactTask",
    "Induction",
    "InductionModel",
    "Interface",
    "KHop",
    "LmBench",
    "LmCircuit",
    "Model",
    "NgramExperiment",
    "NgramProcess",
    "Positive",
    "Prompts",
    "Recipe",
    "Retrieval",
    "Split",
    "Task",
    "Tracing",
    "Training",
    "VectorTask",
    "read_recipe",
]
