"""The experiments of Musat (ICLR 2025): the runs of each figure, and their rows."""

from collections.abc import Sequence

from hopscope.configs import Dtype, Experiment, LmBench, Prompts, Recipe
from hopscope.papers.experiment import PaperExperiment, measured_by
from hopscope.papers.musat.presets import presets
from hopscope.papers.musat.rows import (
    AnswerRow,
    CircuitRow,
    DepthRow,
    LossRow,
    PlantedRow,
    VariantRow,
)
from hopscope.papers.musat.variants import BEST, LONG, MIDDLE, SEEDS, SHORT, VARIANTS, Variant
from hopscope.papers.row import ResultRow

SWEEP_STEPS = 4_000
"""Steps of the reduced sweep of figure 4 (the paper: 10,000)."""
STEPS_D = 4_000
"""Steps of transformer D in the reduced protocol (the paper: 6,400)."""


def preset_recipe(name: str, *seeds: int, steps: int | None = None) -> Experiment:
    """Return the experiment of a preset of the paper, or with other seeds or fewer steps."""
    known = presets()[f"musat/{name}"].recipe
    training = known.training.model_copy(update={"steps": steps or known.steps})
    return known.model_copy(update={"seeds": seeds or known.seeds, "training": training})


def fleets(kind: str) -> tuple[Recipe, ...]:
    """Return the recipes of figure 4 in full: eight models of each depth, as fleets."""
    return tuple(preset_recipe(f"fig4-{kind}-L{layers}") for layers in range(1, 9))


def one_by_one(kind: str, *seeds: int, steps: int | None = SWEEP_STEPS) -> tuple[Recipe, ...]:
    """Return single models of figure 4: one of each depth, then those with the next seed."""
    return tuple(
        preset_recipe(f"fig4-{kind}-L{layers}", seed, steps=steps)
        for seed in seeds
        for layers in range(1, 9)
    )


def under(variants: Sequence[Variant], steps: int) -> tuple[Recipe, ...]:
    """Return transformers A, B and C under each of these variants: first A under all of them."""
    return tuple(each.experiment(seed, steps) for seed in SEEDS for each in variants)


def variants_of_d() -> tuple[Recipe, ...]:
    """Return transformer D by its training set, by its number of epochs, and with larger weights.

    The last has seed 1, with which the first variant learns least.
    """
    larger = preset_recipe("transformer-d-fan-in", 1)
    return (preset_recipe("transformer-d"), preset_recipe("transformer-d-epochs"), larger)


def larger_seeds(steps: int | None = None) -> tuple[Experiment, ...]:
    """Return transformer D with larger initial weights, for the seeds missing in musat/fig7."""
    return tuple(preset_recipe("transformer-d-fan-in", seed, steps=steps) for seed in (0, 2))


def per_pair(steps: int | None = None) -> tuple[Experiment, ...]:
    """Return transformer D with larger initial weights and a code per pair, for three seeds."""
    known = (preset_recipe("transformer-d-fan-in", seed, steps=steps) for seed in range(3))
    return tuple(
        each.model_copy(update={"task": each.task.model_copy(update={"position": "pair"})})
        for each in known
    )


def _questions(model: str, count: int, opening: bool) -> LmBench:
    """Return a benchmark of all five formulations, with equations of one to five hops."""
    levels = [("equations", hops) for hops in range(1, 6)]
    fixed = [("kingdoms", None), ("functions", None), ("relatives", None)]
    kinds = [*levels, ("lives-with", 5), *fixed]
    prompts = [
        Prompts.model_validate({"formulation": name, "hops": hops, "opening": opening})
        for name, hops in kinds
    ]
    dtype: Dtype = "bfloat16" if model.startswith("qwen") else "float32"
    return LmBench(model=model, prompts=tuple(prompts), questions=count, dtype=dtype)


def models_asked() -> tuple[Recipe, ...]:
    """Return the benchmarks of figure 2 with two small open models."""
    return (
        _questions("smollm2-135m", 500, opening=False),
        _questions("qwen2.5-coder-1.5b", 500, opening=False),
        _questions("qwen2.5-coder-1.5b", 100, opening=True),
    )


def _depth() -> Sequence[ResultRow]:
    from hopscope.papers.musat.measure_depth import depth_rows

    return depth_rows()


_FEWER = f"one seed of each depth instead of 8, {SWEEP_STEPS:,} steps of 10,000"
_SHORTER_D = f"{STEPS_D:,} steps instead of 6,400"

EXPERIMENTS = (
    PaperExperiment(
        "musat/fig2",
        "figure 2: language models on the five formulations",
        (AnswerRow,),
        measured_by("musat.measure_answers:answer_rows"),
        {"reduced": models_asked},
        method="500 questions of each kind; the exact probability of every acceptable answer, "
        "renormalised, which is what sampling until an acceptable answer comes to. The larger "
        "model is asked 100 of each once more with the answer begun for it (“opened”), which is "
        "ours.",
        reduced="two small open models instead of the paper's large ones",
    ),
    PaperExperiment(
        "musat/depth",
        "theorem 1, figures 3 and 8: how many layers D hops need",
        (DepthRow, PlantedRow),
        compute=_depth,
        method="Information is followed from position to position under the theorem's two "
        "assumptions, layer by layer, for every D; and transformers are written by hand that "
        "solve D hops in the number of layers found.",
    ),
    PaperExperiment(
        "musat/fig4-ic",
        "figure 4: loss by number of layers, with implicit curriculum",
        (LossRow,),
        measured_by("musat.measure_runs:final_loss_rows"),
        {"full": lambda: fleets("ic"), "reduced": lambda: one_by_one("ic", 0)},
        method="Transformers of 1 to 8 layers with 8 heads each, D = 5; final validation losses "
        "are means over the last 100 steps; a hop's loss passes 0.5 where the mean of ten "
        "steps does.",
        reduced=_FEWER,
    ),
    PaperExperiment(
        "musat/fig4-nonic",
        "figure 4: loss by number of layers, the last hop alone",
        (LossRow,),
        measured_by("musat.measure_runs:final_loss_rows"),
        {"full": lambda: fleets("nonic"), "reduced": lambda: one_by_one("nonic", 0)},
        method="As with curriculum, with D = 3, and only the last symbol of each chain asked.",
        reduced=_FEWER,
    ),
    PaperExperiment(
        "musat/fig4-seeds",
        "figure 4 over seeds: how many hops models of each depth learn, beside the exact law",
        (LossRow,),
        measured_by("musat.measure_runs:final_loss_rows"),
        {
            "full": lambda: one_by_one("ic", 1, 2, 0, steps=None),
            "reduced": lambda: one_by_one("ic", 1, 2),
        },
        method="As figure 4 with implicit curriculum, with three of its eight seeds, each model a "
        "run of its own, so that rows come one by one. Figures show the models of musat/fig4-ic "
        "as well.",
        reduced=f"two seeds (the third is that of musat/fig4-ic), {SWEEP_STEPS:,} steps instead of "
        "10,000",
    ),
    PaperExperiment(
        "musat/fig4-nonic-seeds",
        "figure 4 without curriculum over seeds",
        (LossRow,),
        measured_by("musat.measure_runs:final_loss_rows"),
        {"reduced": lambda: one_by_one("nonic", 1, 2)},
        method="As figure 4 without curriculum, with two seeds more of each depth, each model a "
        "run of its own, so that rows come one by one.",
        reduced=f"{SWEEP_STEPS:,} steps instead of 10,000",
    ),
    PaperExperiment(
        "musat/fig5",
        "figure 5, appendices C and E: the circuits of transformers A, B and C",
        (CircuitRow,),
        measured_by("musat.measure_runs:circuit_rows"),
        {"full": lambda: tuple(preset_recipe(f"transformer-{letter}") for letter in "abc")},
        method="Trained as in section 8.1. Of the checkpoints of the last tenth the best is "
        "taken; its circuit is searched for and measured without anybody's help, then "
        "every path is removed alone.",
    ),
    PaperExperiment(
        "musat/variants",
        "transformers A, B and C under variants of what the paper leaves open",
        (VariantRow,),
        measured_by("musat.measure_runs:variant_rows"),
        {"reduced": lambda: under(VARIANTS, SHORT)},
        method="What the paper leaves open (initial weights, course of the learning rate, base and "
        "code of positions) is decided in several ways, one choice at a time first, then in "
        "combinations; three seeds each, examined as in figure 5.",
        reduced=f"{SHORT:,} steps instead of {LONG:,}",
    ),
    PaperExperiment(
        "musat/variants-long",
        "transformers A, B and C as long as the paper trained, under three variants",
        (VariantRow,),
        measured_by("musat.measure_runs:variant_rows"),
        {"full": lambda: under(BEST, LONG), "reduced": lambda: under(BEST[:1], MIDDLE)},
        method="As musat/variants, with the paper's number of steps, under the variants that "
        "promise most.",
        reduced=f"one variant, {MIDDLE:,} steps instead of {LONG:,}",
    ),
    PaperExperiment(
        "musat/fig7",
        "figures 6 and 7, appendices C and D: the emergence of transformer D",
        (CircuitRow,),
        measured_by("musat.measure_runs:emergence_rows"),
        {
            "full": lambda: (
                *variants_of_d(),
                *(preset_recipe("transformer-d", seed) for seed in (1, 2)),
            ),
            "reduced": variants_of_d,
        },
        method="Both meanings of section 9.1's schedule: 262k examples (6 epochs of 1,024 steps), "
        "and 2,048 examples (800 epochs of 8 steps); of the first, three seeds, and one more with "
        "initial weights of 1/√inputs instead of GPT-2's, since the paper gives none. Attention "
        "along every path of the circuit is averaged over 32 sequences at each checkpoint.",
        reduced="one seed of each variant",
    ),
    PaperExperiment(
        "musat/fig7-seeds",
        "figures 6 and 7 over seeds: transformer D with initial weights of 1/√inputs",
        (CircuitRow,),
        measured_by("musat.measure_runs:emergence_rows"),
        {"full": larger_seeds, "reduced": lambda: larger_seeds(STEPS_D)},
        method="As musat/fig7, under the variant with which all four hops are learned there, with "
        "two seeds more.",
        reduced=_SHORTER_D,
    ),
    PaperExperiment(
        "musat/fig7-pair",
        "figures 6 and 7 with a code per pair: transformer D with initial weights of 1/√inputs",
        (CircuitRow,),
        measured_by("musat.measure_runs:emergence_rows"),
        {"full": per_pair, "reduced": lambda: per_pair(STEPS_D)},
        method="As musat/fig7-seeds, with one code of its place for both tokens of a fact; three "
        "seeds.",
        reduced=_SHORTER_D,
    ),
)
