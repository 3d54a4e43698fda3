"""What can be reproduced of Musat (ICLR 2025): the runs behind each figure, and their rows."""

from hopscope.papers.musat import measuring
from hopscope.papers.musat.readings import BEST, LONG, MIDDLE, READINGS, SHORT
from hopscope.papers.musat.recipes import (
    STEPS_D,
    SWEEP_STEPS,
    asked,
    by_batch,
    by_place,
    d_by_place,
    larger_seeds,
    over_seeds,
    per_pair,
    preset,
    readings_of_d,
    seeded,
    short_over_seeds,
    short_sweep,
    small,
    small_by_depth,
    sweep,
    tiny,
    tiny_sweep,
    under,
)
from hopscope.papers.musat.rows import (
    AnswerRow,
    ChangedRow,
    CircuitRow,
    DepthRow,
    LossRow,
    PlaceRow,
    PlantedRow,
    ReadingRow,
)
from hopscope.papers.target import Target

TARGETS = (
    Target(
        "musat/fig2",
        "figure 2: language models on the five formulations",
        (AnswerRow,),
        measuring.answers,
        {"reduced": asked, "smoke": tuple},
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
        compute=measuring.depth,
        method="Information is followed from position to position under the theorem's two "
        "assumptions, layer by layer, for every D; and transformers are written by hand that "
        "solve D hops in the number of layers found.",
        remarks={"smoke": "fewer hops"},
    ),
    Target(
        "musat/fig4-ic",
        "figure 4: loss by number of layers, with implicit curriculum",
        (LossRow,),
        measuring.losses,
        {
            "full": lambda: sweep("ic"),
            "reduced": lambda: short_sweep("ic"),
            "smoke": lambda: tiny_sweep(curriculum=True),
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
        measuring.losses,
        {
            "full": lambda: sweep("nonic"),
            "reduced": lambda: short_sweep("nonic"),
            "smoke": lambda: tiny_sweep(curriculum=False),
        },
        method="As with curriculum, with D = 3, and only the last symbol of each chain asked.",
        remarks={
            "reduced": f"one seed of each depth instead of 8, {SWEEP_STEPS:,} steps of 10,000",
            "smoke": "two tiny models",
        },
    ),
    Target(
        "musat/fig4-seeds",
        "figure 4 over seeds: how many hops models of each depth learn, beside the exact law",
        (LossRow,),
        measuring.losses,
        {
            "full": over_seeds,
            "reduced": lambda: short_over_seeds("ic"),
            "smoke": lambda: tiny_sweep(curriculum=True),
        },
        method="As figure 4 with implicit curriculum, with three of its eight seeds, each model a "
        "run of its own, so that rows come one by one. Figures show the models of musat/fig4-ic "
        "as well.",
        remarks={
            "reduced": f"two seeds (the third is that of musat/fig4-ic), {SWEEP_STEPS:,} steps "
            "instead of 10,000",
            "smoke": "two tiny models",
        },
    ),
    Target(
        "musat/fig4-nonic-seeds",
        "figure 4 without curriculum over seeds",
        (LossRow,),
        measuring.losses,
        {
            "reduced": lambda: short_over_seeds("nonic"),
            "smoke": lambda: tiny_sweep(curriculum=False),
        },
        method="As figure 4 without curriculum, with two seeds more of each depth, each model a "
        "run of its own, so that rows come one by one.",
        remarks={
            "reduced": f"{SWEEP_STEPS:,} steps instead of 10,000",
            "smoke": "two tiny models",
        },
    ),
    Target(
        "musat/order",
        "section 7.2: hops are learned one after the other, in many small models",
        (LossRow,),
        measuring.losses,
        {
            "full": lambda: (small(),),
            "smoke": lambda: (tiny(2, 3, 60),),
        },
        method="Ten models of 4 layers and 4 heads on three hops, trained as one fleet. Models and "
        "setting (a position code for each pair, a rate on a cosine) are ours, not the paper's.",
        remarks={"smoke": "one tiny model"},
    ),
    Target(
        "musat/depth-small",
        "theorem 1: how many hops small models of few layers learn, beside the exact law",
        (LossRow,),
        measuring.losses,
        {"full": small_by_depth, "smoke": lambda: tiny_sweep(curriculum=True)},
        method="Ten models each of 1, 2 and 3 layers with 4 heads, asked for four hops, of which "
        "the law allows 0, 1 and 3. Models and setting are those of musat/order, for 6,000 steps.",
        remarks={"smoke": "two tiny models"},
    ),
    Target(
        "musat/fig5",
        "figure 5, appendices C and E: the circuits of transformers A, B and C",
        (CircuitRow,),
        measuring.circuits,
        {
            "full": lambda: tuple(preset(f"transformer-{letter}") for letter in "abc"),
            "smoke": lambda: (tiny(1, 2, 400),),
        },
        method="Trained as in section 8.1. Of the checkpoints of the last tenth the best is "
        "taken; its circuit is searched for and measured without anybody's help, then "
        "every path is removed alone.",
        remarks={"smoke": "one tiny model of one hop"},
    ),
    Target(
        "musat/readings",
        "transformers A, B and C under readings of the paper: which claims hold under which",
        (ReadingRow,),
        measuring.under_a_reading,
        {"reduced": lambda: under(READINGS, SHORT), "smoke": lambda: (tiny(1, 2, 400),)},
        method="What the paper leaves open (initial weights, course of the learning rate, base and "
        "code of positions) is decided in several ways, one choice at a time first, then in "
        "combinations; three seeds each, examined as in figure 5.",
        remarks={
            "reduced": f"{SHORT:,} steps instead of {LONG:,}",
            "smoke": "one tiny model of one hop",
        },
    ),
    Target(
        "musat/readings-long",
        "transformers A, B and C as long as the paper trained, under three readings of it",
        (ReadingRow,),
        measuring.under_a_reading,
        {
            "full": lambda: under(BEST, LONG),
            "reduced": lambda: under(BEST[:1], MIDDLE),
            "smoke": lambda: (tiny(1, 2, 400),),
        },
        method="As musat/readings, with the paper's number of steps, under the readings that "
        "promise most.",
        remarks={
            "reduced": f"one reading, {MIDDLE:,} steps instead of {LONG:,}",
            "smoke": "one tiny model of one hop",
        },
    ),
    Target(
        "musat/fig7",
        "figures 6 and 7, appendices C and D: the emergence of transformer D",
        (CircuitRow,),
        measuring.emergence,
        {
            "full": lambda: (*readings_of_d(), *(seeded("transformer-d", seed) for seed in (1, 2))),
            "reduced": readings_of_d,
            "smoke": lambda: (tiny(1, 2, 400),),
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
    Target(
        "musat/fig7-seeds",
        "figures 6 and 7 over seeds: transformer D with initial weights of 1/√inputs",
        (CircuitRow,),
        measuring.emergence,
        {
            "full": lambda: larger_seeds(preset("transformer-d-fan-in").steps),
            "reduced": lambda: larger_seeds(STEPS_D),
            "smoke": lambda: (tiny(1, 2, 400),),
        },
        method="As musat/fig7, under the reading with which all four hops are learned there, with "
        "two seeds more.",
        remarks={
            "reduced": f"{STEPS_D:,} steps instead of 6,400",
            "smoke": "one tiny model of one hop",
        },
    ),
    Target(
        "musat/fig7-pair",
        "figures 6 and 7 with a code per pair: transformer D with initial weights of 1/√inputs",
        (CircuitRow,),
        measuring.emergence,
        {
            "full": lambda: per_pair(preset("transformer-d-fan-in").steps),
            "reduced": lambda: per_pair(STEPS_D),
            "smoke": lambda: (tiny(1, 2, 400),),
        },
        method="As musat/fig7-seeds, with one code of its place for both tokens of a fact; three "
        "seeds.",
        remarks={
            "reduced": f"{STEPS_D:,} steps instead of 6,400",
            "smoke": "one tiny model of one hop",
        },
    ),
    Target(
        "musat/batches",
        "section 9.1: what the batch does to the plateau, in small models",
        (LossRow,),
        measuring.losses,
        {"full": by_batch, "smoke": lambda: (tiny(1, 2, 60),)},
        method="Two hops, 4 layers of 4 heads, GPT-2's initial weights, 1,500 steps with batches "
        "of 64 to 2,048, three seeds each. Models and setting are ours: transformer D itself with "
        "batches of 32,768 takes a GPU.",
        remarks={"smoke": "one tiny model of one hop"},
    ),
    Target(
        "musat/places",
        "section 9.2: is the first hop known by the place of its facts, and what follows?",
        (PlaceRow,),
        measuring.places,
        {
            "full": lambda: (*by_place(), *d_by_place()),
            "smoke": lambda: (tiny(1, 2, 400),),
        },
        method="When a model has just learned the first hop, it is asked with facts shuffled. "
        "Small models as in musat/order, of two hops, whose code tells places apart well or "
        "hardly, with facts in order and shuffled; and transformer D with weights of 1/√inputs.",
        remarks={"smoke": "one tiny model of one hop"},
    ),
    Target(
        "musat/places-changed",
        "section 9.2: models that know the first hop learn on with their facts in another order",
        (ChangedRow,),
        measuring.changed,
        {
            "full": lambda: (*by_place(), *d_by_place()),
            "smoke": lambda: (tiny(1, 2, 400),),
        },
        method="The models of musat/places learn on from where they have just learned the first "
        "hop, with facts in order and with facts shuffled, until they know the second, 600 steps "
        "at most, at a constant rate. Their optimiser begins anew: its state is not kept.",
        remarks={"smoke": "one tiny model of one hop, 25 steps"},
    ),
)
