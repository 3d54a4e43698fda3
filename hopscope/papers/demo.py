"""The demo: a 2-hop task that a small transformer learns within a minute or two on two cores."""

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.papers.preset import Preset


def preset() -> Preset:
    """Two hops need three causal layers; frequencies of base 10 make neighbours easy to find."""
    experiment = Experiment(
        task=Retrieval(hops=2, base=10),
        model=Model(layers=3, heads=4, d_model=64),
        training=Training(
            steps=3_000, batch=64, lr=3e-3, warmup=200, checkpoint_every=100, validate_every=50
        ),
    )
    sources = {
        "task.hops": "ours: the shortest chain with stacked look-ups",
        "task.base": "ours: with 10000 the previous position is hard to find",
        "model.layers": "ours: the fewest causal layers for two hops",
        "training.lr": "ours: emerges in a minute; see docs/log.md for ten seeds",
    }
    return Preset("demo", "2 hops, learned in about a minute on two cores", experiment, sources)
