"""The runs behind each figure of Musat (ICLR 2025), by protocol."""

from collections.abc import Sequence

from hopscope.configs import (
    Asking,
    Experiment,
    LlmBench,
    Model,
    Prompts,
    Recipe,
    Retrieval,
    Training,
)
from hopscope.papers.musat.presets import presets
from hopscope.papers.musat.readings import SEEDS, PaperReading

SWEEP_STEPS = 4_000
"""Steps of the reduced sweep of figure 4 (the paper: 10,000)."""
STEPS_D = 4_000
"""Steps of transformer D where its 6,400 are too many."""
PLACE_SEEDS = 6
"""Models of each kind by which it is shown what the first hop has to do with places."""
PLACE_STEPS = 2_500
"""Steps of their training."""
BATCHES = (64, 128, 256, 512, 1_024, 2_048)
"""Examples per step of the models by which it is shown what a batch does to a plateau."""


def preset(name: str) -> Experiment:
    """The experiment of a preset of the paper."""
    return presets()[f"musat/{name}"].recipe


def sweep(kind: str) -> tuple[Recipe, ...]:
    """Figure 4 in full: eight models of each depth, as fleets."""
    return tuple(preset(f"fig4-{kind}-L{layers}") for layers in range(1, 9))


def short_sweep(kind: str) -> tuple[Recipe, ...]:
    """One model of each depth, for fewer steps."""
    return tuple(
        of_length(seeded(f"fig4-{kind}-L{layers}", 0), SWEEP_STEPS) for layers in range(1, 9)
    )


def over_seeds() -> tuple[Recipe, ...]:
    """Models of figure 4 at its full length, one by one: of each depth one, then another."""
    return tuple(seeded(f"fig4-ic-L{layers}", seed) for seed in (1, 2, 0) for layers in range(1, 9))


def short_over_seeds(kind: str) -> tuple[Recipe, ...]:
    """Models of figure 4 with the seeds that its reduced protocol leaves out of three."""
    return tuple(
        of_length(seeded(f"fig4-{kind}-L{layers}", seed), SWEEP_STEPS)
        for seed in (1, 2)
        for layers in range(1, 9)
    )


def under(readings: Sequence[PaperReading], steps: int) -> tuple[Recipe, ...]:
    """Transformers A, B and C under each of these readings: A under all of them first."""
    return tuple(each.experiment(seed, steps) for seed in SEEDS for each in readings)


def tiny(hops: int, layers: int, steps: int, curriculum: bool = True) -> Experiment:
    """A training of seconds, for trying out the way from runs to claims."""
    return Experiment(
        task=Retrieval(hops=hops, position="pair", base=10, curriculum=curriculum),
        model=Model(layers=layers, heads=2, d_model=32, init="fan-in"),
        training=Training(
            steps=steps, batch=32, examples=2**12, lr=2e-3, validate_every=20,
            checkpoint_every=max(1, steps // 10),
        ),
    )  # fmt: skip


def tiny_sweep(curriculum: bool) -> tuple[Recipe, ...]:
    """Two tiny models instead of figure 4."""
    return tuple(tiny(2, layers, 100, curriculum=curriculum) for layers in (1, 2))


def small(seeds: int = 10) -> Experiment:
    """Three hops, learned by small models in minutes: the demo's setting with one hop more."""
    return Experiment(
        task=Retrieval(hops=3, position="pair", base=10),
        model=Model(layers=4, heads=4, d_model=64, init="fan-in"),
        training=Training(
            steps=3_000, batch=48, lr=2e-3, schedule="cosine", warmup=200,
            validate_every=50, checkpoint_every=1_000,
        ),
        seeds=tuple(range(seeds)),
    )  # fmt: skip


def small_by_depth() -> tuple[Recipe, ...]:
    """Small models of the depths that cannot follow all of four hops, ten seeds each."""
    known = small()
    return tuple(
        known.model_copy(
            update={
                "task": known.task.model_copy(update={"hops": 4}),
                "model": known.model.model_copy(update={"layers": layers}),
                "training": known.training.model_copy(update={"steps": 6_000}),
            }
        )
        for layers in (1, 2, 3)
    )


def by_batch() -> tuple[Recipe, ...]:
    """Small models with batches of several sizes, from the smallest on, three seeds each.

    Their initial weights are GPT-2's, since those are what makes the plateau.
    """
    known = small(1)
    return tuple(
        known.model_copy(
            update={
                "task": Retrieval(hops=2, position="pair", base=10),
                "model": known.model.model_copy(update={"init": "gpt2"}),
                "training": Training(
                    steps=1_500, batch=batch, lr=2e-3, examples=2**18, validate_every=50,
                    checkpoint_every=1_500,
                ),
                "seeds": (seed,),
            }
        )
        for batch in BATCHES
        for seed in SEEDS
    )  # fmt: skip


def by_place() -> tuple[Recipe, ...]:
    """Small models whose facts stand in order or shuffled, with codes that tell places apart well
    and hardly, as fleets.

    Shuffled facts stand otherwise in every example, so that a place tells nothing about the hop.
    """
    known = small(PLACE_SEEDS)
    tasks = (
        Retrieval(hops=2, position="pair", base=10),
        Retrieval(hops=2, position="pair", base=10, order="shuffled"),
        Retrieval(hops=2, position="pair"),
        Retrieval(hops=2),
        Retrieval(hops=2, order="shuffled"),
    )
    training = known.training.model_copy(update={"steps": PLACE_STEPS, "checkpoint_every": 25})
    return tuple(known.model_copy(update={"task": task, "training": training}) for task in tasks)


def d_by_place() -> tuple[Recipe, ...]:
    """Transformer D with larger initial weights: two seeds with facts in order, and one of these
    seeds with facts shuffled, and with a code per pair.
    """
    known = larger_seeds(STEPS_D)
    shuffled = known[0].model_copy(update={"task": known[0].task.ordered("shuffled")})
    return (*known, shuffled, per_pair(STEPS_D)[0])


def readings_of_d() -> tuple[Recipe, ...]:
    """Transformer D, by its training set and by its count of epochs; and with larger weights.

    The last is the seed with which the first learns least in its steps.
    """
    larger = seeded("transformer-d-fan-in", 1)
    return (preset("transformer-d"), preset("transformer-d-epochs"), larger)


def larger_seeds(steps: int) -> tuple[Experiment, ...]:
    """Transformer D with larger initial weights, with the seeds that its readings do not have."""
    return tuple(of_length(seeded("transformer-d-fan-in", seed), steps) for seed in (0, 2))


def per_pair(steps: int) -> tuple[Experiment, ...]:
    """Transformer D with larger initial weights and a code per pair, three seeds."""
    known = (of_length(seeded("transformer-d-fan-in", seed), steps) for seed in range(3))
    return tuple(
        each.model_copy(update={"task": each.task.model_copy(update={"position": "pair"})})
        for each in known
    )


def seeded(name: str, seed: int) -> Experiment:
    """A preset with another seed."""
    return preset(name).model_copy(update={"seeds": (seed,)})


def of_length(experiment: Experiment, steps: int) -> Experiment:
    """The same training with another number of steps."""
    training = experiment.training.model_copy(update={"steps": steps})
    return experiment.model_copy(update={"training": training})


def _questions(model: str, count: int, opening: bool) -> LlmBench:
    """All five formulations, equations of one to five hops."""
    levels = [("equations", hops) for hops in range(1, 6)]
    fixed = [("kingdoms", None), ("functions", None), ("relatives", None)]
    kinds = [*levels, ("lives-with", 5), *fixed]
    prompts = [
        Prompts.model_validate({"formulation": name, "hops": hops, "opening": opening})
        for name, hops in kinds
    ]
    asking = Asking(precision="bf16" if model.startswith("qwen") else "float32")
    return LlmBench(model=model, prompts=tuple(prompts), questions=count, asking=asking)


def asked() -> tuple[Recipe, ...]:
    """Figure 2 with two small open models."""
    return (
        _questions("smollm2-135m", 500, opening=False),
        _questions("qwen2.5-coder-1.5b", 500, opening=False),
        _questions("qwen2.5-coder-1.5b", 100, opening=True),
    )
