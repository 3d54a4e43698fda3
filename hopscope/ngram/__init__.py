"""The n-gram experiment of Chen et al. (NeurIPS 2024): Markov chains, and a model with two
attention layers that is trained in three stages.
"""

from hopscope.ngram.evaluation import approach, bayes, choice, compare, gih, model_answers, transfer
from hopscope.ngram.growth import growth, growth_explained
from hopscope.ngram.information import estimated, exact, through_heads, winner
from hopscope.ngram.model import InductionTransformer
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.run import NgramRun
from hopscope.runs import train

__all__ = [
    "Chains",
    "InductionTransformer",
    "NgramRun",
    "approach",
    "bayes",
    "choice",
    "compare",
    "estimated",
    "exact",
    "gih",
    "growth",
    "growth_explained",
    "model_answers",
    "sample_chains",
    "through_heads",
    "train",
    "transfer",
    "winner",
]
