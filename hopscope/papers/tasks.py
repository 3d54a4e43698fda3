"""Our own presets: the demo, and one for each other task, which a small model learns within a
minute or two.
"""

from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    Model,
    Retrieval,
    Task,
    Training,
)
from hopscope.papers.preset import Preset

SOURCES = {
    "task.position": "ours: one code per pair, found sooner",
    "task.base": "ours: with 10000, neighbours look alike",
    "model.layers": "the fewest that theory gives: `hopscope depth --task …`",
    "model.init": "ours: with 0.02, some seeds stay on the plateau",
    "training.schedule": "ours: a falling rate settles what a constant one shakes",
}
DEMO = {
    "task.hops": "ours: the shortest chain with stacked look-ups",
    "task.position": "ours: one code per pair, as in the proof of Theorem 1; found sooner",
    "model.layers": "ours: the fewest causal layers for two hops",
}


def presets() -> dict[str, Preset[Experiment]]:
    """Return the demo, and a preset for each task, named `task/KIND`.

    notes/log.md shows, over ten seeds, which settings make the demo's emergence fast and reliable.
    """
    found = (
        _preset(
            "2 hops, learned within a minute on two cores",
            Retrieval(hops=2, position="pair", base=10),
            Model(layers=3, heads=4, d_model=64, init="fan-in"),
            _training(steps=2_500, warmup=200),
            "demo",
        ),
        _preset(
            "induction: one hop, two layers",
            Induction(position="pair", base=10),
            Model(layers=2, heads=2, d_model=64, init="fan-in"),
            _training(steps=800, warmup=100),
        ),
        _preset(
            "conditional retrieval: two look-ups that a third one needs",
            ConditionalRetrieval(position="pair", base=10),
            Model(layers=3, heads=4, d_model=64, init="fan-in"),
            _training(steps=2_500, warmup=200),
        ),
        _preset(
            "k-hop induction (Sanford et al. 2024) over tokens, k = 2",
            KHop(hops=2, alphabet=8, length=32),
            Model(layers=3, heads=2, d_model=64, init="fan-in", input_std=1.0),
            _training(steps=800, warmup=100),
        ),
        _preset(  # the same as examples/mqar.json
            "multi-query associative recall (Arora et al. 2024), attention alone",
            MQAR(pairs=8, alphabet=64, length=48),
            Model(layers=2, heads=1, d_model=64, mlp=False, init="fan-in", input_std=1.0),
            Training(
                steps=1_200, batch=64, lr=1e-3, schedule="cosine", warmup=100,
                validate_every=20, checkpoint_every=10,
            ),
        ),
    )  # fmt: skip
    return {preset.name: preset for preset in found}


def _training(steps: int, warmup: int) -> Training:
    return Training(
        steps=steps, batch=48, lr=2e-3, schedule="cosine", warmup=warmup,
        validate_every=50, checkpoint_every=50,
    )  # fmt: skip


def _preset(
    summary: str, task: Task, model: Model, training: Training, name: str = ""
) -> Preset[Experiment]:
    experiment = Experiment(task=task, model=model, training=training)
    sources = {field: its for field, its in SOURCES.items() if field in experiment.named()}
    sources |= DEMO if name == "demo" else {}
    return Preset(name or f"task/{task.kind}", summary, experiment, sources)
