"""Chen et al. (NeurIPS 2024): n-gram Markov chains, a two-attention-layer model, three stages."""

from hopscope.markov.evaluation import approach, choice, compare, said, transfer
from hopscope.markov.growth import growth, growth_explained
from hopscope.markov.information import estimated, exact, through_heads, winner
from hopscope.markov.model import InductionTransformer
from hopscope.markov.predictors import bayes, gih
from hopscope.markov.process import Chains, sample_chains
from hopscope.markov.run import MarkovRun
from hopscope.runs import train

__all__ = [
    "Chains",
    "InductionTransformer",
    "MarkovRun",
    "approach",
    "bayes",
    "choice",
    "compare",
    "estimated",
    "exact",
    "gih",
    "growth",
    "growth_explained",
    "said",
    "sample_chains",
    "through_heads",
    "train",
    "transfer",
    "winner",
]
