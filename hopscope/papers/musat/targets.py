"""What can be reproduced of Musat (ICLR 2025): the runs behind each figure, and their rows."""

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
from hopscope.papers.musat.rows import AnswerRow, CircuitRow, DepthRow, LossRow, PlantedRow
from hopscope.papers.table import Protocol
from hopscope.papers.target import Target
from hopscope.store import RunFolder

SWEEP_STEPS = 4_000
"""Steps of the reduced sweep of figure 4 (the paper: 10,000)."""


def _depth(protocol: Protocol) -> list[DepthRow | PlantedRow]:
    from hopscope.papers.musat.measure_depth import depth_rows

    return depth_rows(protocol)


def _losses(folder: RunFolder, _: Protocol) -> list[LossRow]:
    from hopscope.papers.musat.measure_runs import loss_rows
    from hopscope.training import Run

    return loss_rows(Run(folder))


def _circuits(folder: RunFolder, _: Protocol) -> list[CircuitRow]:
    from hopscope.papers.musat.measure_runs import circuit_row
    from hopscope.training import Run

    return [circuit_row(Run(folder))]


def _emergence(folder: RunFolder, _: Protocol) -> list[CircuitRow]:
    from hopscope.papers.musat.measure_runs import emergence_row
    from hopscope.training import Run

    return [emergence_row(Run(folder))]


def _answers(folder: RunFolder, _: Protocol) -> list[AnswerRow]:
    from hopscope.papers.musat.measure_answers import answer_rows

    return answer_rows(folder)


def _of(name: str) -> Experiment:
    return presets()[f"musat/{name}"].experiment


def _sweep(kind: str) -> tuple[Recipe, ...]:
    """Figure 4 in full: eight models of each depth, as fleets."""
    return tuple(_of(f"fig4-{kind}-L{layers}") for layers in range(1, 9))


def _short_sweep(kind: str) -> tuple[Recipe, ...]:
    """One model of each depth, for fewer steps."""
    return tuple(
        each.model_copy(
            update={
                "seeds": (0,),
                "training": each.training.model_copy(update={"steps": SWEEP_STEPS}),
            }
        )
        for each in (_of(f"fig4-{kind}-L{layers}") for layers in range(1, 9))
    )


def _tiny(hops: int, layers: int, steps: int, curriculum: bool = True) -> Experiment:
    """A training of seconds, for trying out the way from runs to claims."""
    return Experiment(
        task=Retrieval(hops=hops, position="pair", base=10, curriculum=curriculum),
        model=Model(layers=layers, heads=2, d_model=32, init="fan-in"),
        training=Training(
            steps=steps, batch=32, examples=2**12, lr=2e-3, validate_every=20,
            checkpoint_every=max(1, steps // 10),
        ),
    )  # fmt: skip


def _tiny_sweep(curriculum: bool) -> tuple[Recipe, ...]:
    return tuple(_tiny(2, layers, 100, curriculum=curriculum) for layers in (1, 2))


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


def _readings() -> tuple[Recipe, ...]:
    """Transformer D, by its training set and by its count of epochs; and with larger weights.

    The last is the seed with which the first learns least in its steps.
    """
    larger = _seeded("transformer-d-fan-in", 1)
    return (_of("transformer-d"), _of("transformer-d-epochs"), larger)


def _seeded(name: str, seed: int) -> Experiment:
    return _of(name).model_copy(update={"seeds": (seed,)})


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


def _asked() -> tuple[Recipe, ...]:
    return (
        _questions("smollm2-135m", 500, opening=False),
        _questions("qwen2.5-coder-1.5b", 500, opening=False),
        _questions("qwen2.5-coder-1.5b", 100, opening=True),
    )


TARGETS = (
    Target(
        "musat/fig2",
        "figure 2: language models on the five formulations",
        (AnswerRow,),
        _answers,
        {"reduced": _asked, "smoke": tuple},
        method="500 questions of each kind; the exact probability of every acceptable answer, "
        "renormalised, which is what sampling until an acceptable answer comes to. The larger "
        "model is asked 100 of each once more with the answer begun for it (“opened”), which is "
        "ours.",
        remarks={
            "reduced": "two small open models instead of the paper's large ones",
            "smoke": "no model is asked",
        },
    ),
    Target(
        "musat/depth",
        "theorem 1, figures 3 and 8: how many layers D hops need",
        (DepthRow, PlantedRow),
        compute=_depth,
        method="Information is followed from position to position under the theorem's two "
        "assumptions, layer by layer, for every D; and transformers are written by hand that "
        "solve D hops in the number of layers found.",
        remarks={"smoke": "fewer hops"},
    ),
    Target(
        "musat/fig4-ic",
        "figure 4: loss by number of layers, with implicit curriculum",
        (LossRow,),
        _losses,
        {
            "full": lambda: _sweep("ic"),
            "reduced": lambda: _short_sweep("ic"),
            "smoke": lambda: _tiny_sweep(curriculum=True),
        },
        method="Transformers of 1 to 8 layers with 8 heads each, D = 5; final validation losses "
        "are means over the last 100 steps; a hop's loss passes 0.5 where the mean of ten "
        "steps does.",
        remarks={
            "reduced": f"one seed of each depth instead of 8, {SWEEP_STEPS:,} steps of 10,000",
            "smoke": "two tiny models",
        },
    ),
    Target(
        "musat/fig4-nonic",
        "figure 4: loss by number of layers, the last hop alone",
        (LossRow,),
        _losses,
        {
            "full": lambda: _sweep("nonic"),
            "reduced": lambda: _short_sweep("nonic"),
            "smoke": lambda: _tiny_sweep(curriculum=False),
        },
        method="As with curriculum, with D = 3, and only the last symbol of each chain asked.",
        remarks={
            "reduced": f"one seed of each depth instead of 8, {SWEEP_STEPS:,} steps of 10,000",
            "smoke": "two tiny models",
        },
    ),
    Target(
        "musat/order",
        "section 7.2: hops are learned one after the other, in many small models",
        (LossRow,),
        _losses,
        {
            "full": lambda: (small(),),
            "smoke": lambda: (_tiny(2, 3, 60),),
        },
        method="Ten models of 4 layers and 4 heads on three hops, trained as one fleet. Models and "
        "setting (a position code for each pair, a rate on a cosine) are ours, not the paper's.",
        remarks={"smoke": "one tiny model"},
    ),
    Target(
        "musat/fig5",
        "figure 5, appendices C and E: the circuits of transformers A, B and C",
        (CircuitRow,),
        _circuits,
        {
            "full": lambda: tuple(_of(f"transformer-{letter}") for letter in "abc"),
            "smoke": lambda: (_tiny(1, 2, 400),),
        },
        method="Trained as in section 8.1. Of the checkpoints of the last tenth the calmest is "
        "taken; each head's mechanism is found and proved by ablation without anybody's help, then "
        "every path is removed alone.",
        remarks={"smoke": "one tiny model of one hop"},
    ),
    Target(
        "musat/fig7",
        "figures 6 and 7, appendices C and D: the emergence of transformer D",
        (CircuitRow,),
        _emergence,
        {
            "full": lambda: (*_readings(), *(_seeded("transformer-d", seed) for seed in (1, 2))),
            "reduced": _readings,
            "smoke": lambda: (_tiny(1, 2, 400),),
        },
        method="Both readings of section 9.1's schedule: 262k examples (6 epochs of 1,024 steps), "
        "and 2,048 examples (800 epochs of 8 steps); of the first, three seeds, and one more with "
        "initial weights of 1/√inputs instead of GPT-2's, since the paper gives none. Attention "
        "along every path of the circuit is averaged over 32 sequences at each checkpoint.",
        remarks={
            "reduced": "one seed of each reading",
            "smoke": "one tiny model of one hop",
        },
    ),
)
