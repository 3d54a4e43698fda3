"""A preset for each task beside retrieval, which a small model learns within a minute or two.

Retrieval has the papers' own presets, and the demo.
"""

from hopscope.configs import (
    MQAR,
    ConditionalRetrieval,
    Experiment,
    Induction,
    KHop,
    Model,
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


def presets() -> dict[str, Preset[Experiment]]:
    """The presets of the tasks, each named `task/` and the kind of its task."""
    return {preset.name: preset for preset in (induction(), conditional(), khop(), mqar())}


def induction() -> Preset[Experiment]:
    """Induction in two layers of two heads."""
    return _preset(
        Induction(position="pair", base=10),
        Model(layers=2, heads=2, d_model=64, init="fan-in"),
        _training(steps=800, warmup=100),
        "induction: one hop, two layers",
    )


def conditional() -> Preset[Experiment]:
    """Conditional retrieval in three layers of four heads."""
    return _preset(
        ConditionalRetrieval(position="pair", base=10),
        Model(layers=3, heads=4, d_model=64, init="fan-in"),
        _training(steps=2_500, warmup=200),
        "conditional retrieval: two look-ups that a third one needs",
    )


def khop() -> Preset[Experiment]:
    """k-hop induction with k = 2, in three layers of two heads."""
    return _preset(
        KHop(hops=2, alphabet=8, length=32),
        Model(layers=3, heads=2, d_model=64, init="fan-in", input_std=1.0),
        _training(steps=800, warmup=100),
        "k-hop induction (Sanford et al. 2024) over tokens, k = 2",
    )


def mqar() -> Preset[Experiment]:
    """MQAR in two layers of one head, without MLP; the same as examples/mqar.json."""
    return _preset(
        MQAR(pairs=8, alphabet=64, length=48),
        Model(layers=2, heads=1, d_model=64, mlp=False, init="fan-in", input_std=1.0),
        Training(
            steps=1_200, batch=64, lr=1e-3, schedule="cosine", warmup=100,
            validate_every=20, checkpoint_every=10,
        ),
        "multi-query associative recall (Arora et al. 2024), attention alone",
    )  # fmt: skip


def _training(steps: int, warmup: int) -> Training:
    return Training(
        steps=steps, batch=48, lr=2e-3, schedule="cosine", warmup=warmup,
        validate_every=50, checkpoint_every=50,
    )  # fmt: skip


def _preset(task: Task, model: Model, training: Training, summary: str) -> Preset[Experiment]:
    experiment = Experiment(task=task, model=model, training=training)
    fields = experiment.named()
    sources = {field: source for field, source in SOURCES.items() if field in fields}
    return Preset(f"task/{task.kind}", summary, experiment, sources)
