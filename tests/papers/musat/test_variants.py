"""What the paper leaves open of transformers A to D, and claims under each variant of it."""

import re

import pytest
from musat_rows import (
    ABC,
    IN_TURN,
    KNOWN,
    D,
    emerging_row,
    judged,
    of_seeds,
    path_of,
    story,
    tables,
    variant_rows,
    with_,
    without,
)

from hopscope.errors import ConfigError, ResultsError
from hopscope.papers.judge import Finding
from hopscope.papers.musat.circuit_claims import by_variant, nearest
from hopscope.papers.musat.emergence_claims import first_paths
from hopscope.papers.musat.experiments import preset_recipe, under
from hopscope.papers.musat.rows import CircuitRow, VariantRow
from hopscope.papers.musat.variants import (
    BEST,
    LONG,
    VARIANTS,
    WARMUP,
    Variant,
    chosen,
    variant_of,
)

DAMAGED = {"maps": [{}, {"own": "no"}], "emergence": [{"steps": [1]}]}

WEIGHTS = "262,144 examples and initial weights of 1/√inputs"


def test_damaged_findings_are_refused_when_a_row_is_read() -> None:
    row = emerging_row(1)
    for field, every in DAMAGED.items():
        for damaged in every:
            with pytest.raises(ResultsError, match="maps or emergence cannot be read"):
                with_(row, **{field: damaged})


def test_a_variant_of_d_holds_if_all_its_seeds_do() -> None:
    plain = of_seeds(with_(tables()[D][0], learned_at=(700, None, None, None)))
    larger = of_seeds(with_(emerging_row(262_144), init="fan-in", steps=4_000))
    order = KNOWN["musat/d-hops-in-order"].judge
    found = order([*plain, *larger])
    assert found.verdict == "depends on an open choice"
    assert f"under 1 of 1 other variants: {WEIGHTS}" in found.evidence
    assert found.chance == 2 / 8  # each seed holds under one of two variants
    assert [(each.right, each.count) for each in found.outcomes] == [(0, 3), (3, 3)]
    larger[2] = with_(larger[2], learned_at=(100, 200, 300, None))
    found = order([*plain, *larger])
    assert (found.verdict, found.chance) == ("not reproduced", None)
    assert found.outcomes[1].said == "holds for 2 of 3 models (95 %: 0.21 … 0.94)"
    pair = [with_(row, position="pair", learned_at=(1, 2, 3, 4)) for row in larger]
    found = order([*plain, *larger, *pair])
    assert found.verdict == "depends on an open choice"
    assert "1/√inputs and a code per pair" in found.evidence
    # A model of two lengths counts once, as the longer; where losses end, short ones do not count.
    short = [with_(row, steps=4_000, final=[0.2] * 4) for row in tables()[D]]
    loss = KNOWN["musat/d-loss"].judge
    assert loss([*short, *tables()[D]]) == loss(tables()[D])
    assert loss(short).verdict == "not measured"


def test_only_look_ups_count_for_the_order() -> None:
    """A key stands before its value and never holds it: a path that reads it joins a pair."""
    row = tables()[D][0]
    paths = row.emergence["paths"]
    joining = path_of(1, "value 3", "key 3", 10.0)
    more = with_(row, emergence=row.emergence | {"paths": [joining, *paths]})
    found = judged("d-order", tables() | {D: of_seeds(more)})
    assert found.verdict == "reproduced"  # pairs may be joined in any order
    assert (
        "x₄ 4,900 (4.0), in another order with paths that read keys: 3,500, 3,900, 4," in found.ours
    )
    keys = [
        path_of(2, "value 0", "key 1", 3_590.0) if path["source"] == "value 1" else path
        for path in paths
    ]
    fewer = with_(row, emergence=row.emergence | {"paths": keys})
    assert sorted(first_paths(fewer)) == [0, 2, 3]
    assert first_paths(fewer, joins=True)[1].step == pytest.approx(3_590)
    assert judged("d-order", tables() | {D: of_seeds(fewer)}).verdict == "not reproduced"


def test_what_comes_between_the_same_checkpoints_or_not_at_all_is_said() -> None:
    row = tables()[D][0]
    assert "checkpoints" not in judged("d-order", tables()).ours
    close = with_(row, emergence=story(IN_TURN, (0, 3_600, 4_500, 8_000)))
    found = judged("d-order", tables() | {D: of_seeds(close)})
    assert found.verdict == "reproduced"
    assert found.ours.endswith(", of which x₂ and x₃ between the same two checkpoints")
    found = judged("d-order", tables() | {D: of_seeds(without(row, "emergence"))})
    assert found.verdict == "not reproduced"
    assert found.ours.endswith("seed 2: no look-up")


BELOW = KNOWN["musat/abc-below-0.01"].judge
BAD = {"final": [0.02] * 3, "model": 0.02}


def of(variant: str, **values: object) -> list[VariantRow]:
    """A, B and C under one variant."""
    return [with_(row, **values) for row in variant_rows(variant)]


def ours(**values: object) -> list[CircuitRow]:
    """A, B and C under what we take the paper to mean."""
    return [with_(row, **values) for row in tables()[ABC]]


def found(*rows: VariantRow, **values: object) -> Finding:
    """The verdict on the first claim, where the paper as we take it ends at 0.02."""
    return BELOW([*ours(**{**BAD, **values}), *rows])


def test_a_claim_may_hold_under_some_variants() -> None:
    bad, worse = of("fan-in", **BAD), of("fan-in", steps=20_000, **BAD)
    depends, no = "depends on an open choice", "not reproduced"
    cases = (
        ([], no, ""),
        (of("torch") + of("fan-in"), depends, "under 2 of 2 other variants: torch / fan-in"),
        (bad, no, "under 0 of 1 other variants"),
        (of("fan-in")[:2], "not enough seeds", "fewer than 3 seeds of fan-in"),
        (of("fan-in shuffled"), no, ""),  # an experiment of ours
        (of(Variant().name, steps=3_000), no, ""),  # less of the same
        # Of two lengths the longer decides, whichever was trained first.
        ([*bad, *of("fan-in", steps=20_000)], depends, "under 1 of 1 other variants"),
        ([*of("fan-in", steps=20_000), *bad], depends, "under 1 of 1 other variants"),
        ([*of("fan-in"), *worse], no, "under 0 of 1 other variants"),
        ([*of("fan-in"), *worse[:2]], depends, ""),  # but three seeds come first
    )
    for number, (rows, verdict, words) in enumerate(cases):
        each = found(*rows)
        assert each.verdict == verdict, number
        assert words in each.evidence, number
    # The permutation test is over models that were trained equally long: 2 of 8 ways.
    assert found(*of("fan-in")).chance == 2 / 8
    assert found(*of("fan-in", steps=20_000)).chance is None


def test_what_holds_has_to_hold_under_every_variant_trained_as_long() -> None:
    good = {"final": [0.002] * 3}
    assert found(*of("torch"), **good).verdict == "reproduced"
    against = found(*of("torch", **BAD), **good)
    assert against.verdict == "depends on an open choice"
    assert "does not hold under these, which can be compared: torch" in against.evidence
    assert found(*of("torch", steps=3_000, **BAD), **good).verdict == "reproduced"


def test_models_of_one_variant_and_length_belong_together() -> None:
    rows = [*of("fan-in"), *of("torch")[:2], *of("fan-in", steps=9)]
    known = by_variant(rows)
    told = [(one.variant, one.steps, len(one.rows)) for one in known]
    assert told == [("fan-in", 10_000, 3), ("torch", 10_000, 2), ("fan-in", 9, 3)]
    (one,) = by_variant(ours())  # rows that name no variant are what we take the paper to mean
    taken = preset_recipe("transformer-a")
    assert one.variant == Variant.of(taken).name == Variant().name
    assert Variant().experiment(0, LONG).model == taken.model
    assert one.flop == pytest.approx(one.rows[0].steps / LONG * 1.26e15, rel=0.01)
    heads = of("fan-in", useful=[[0, 0]], needed=[[0, 0], [1, 0], [2, 0]])
    assert by_variant(heads[:1])[0].heads == [(1, 2)]  # with a path, and without


def test_the_model_for_which_most_claims_hold_is_the_nearest() -> None:
    better, worse = of("fan-in")[0], of("torch", final=[0.4] * 3, model=0.4)[0]
    lower = of("cosine", final=[0.001] * 3)[0]
    shuffled = of("shuffled", final=[0.0001] * 3)[0]
    for rows, expected in (
        ((worse, better), "fan-in"),
        ((worse, better, lower), "cosine"),
        ((worse, shuffled), "torch"),
    ):
        one, row = nearest(by_variant(rows))
        assert one.variant == expected
        assert row in rows


def test_transformer_d_trains_as_long_as_the_paper_says() -> None:
    trained = preset_recipe("transformer-d")
    assert trained.model.head_width == 16
    assert trained.training.checkpoint_steps()[:3] == (0, 80, 160)
    for name, examples in (("epochs", None), ("large-batch", 2**18)):
        training = preset_recipe(f"transformer-d-{name}").training
        assert training.steps * training.batch / training.examples == 800
        assert examples in (None, training.examples)


def test_a_variant_is_known_again_and_trained_with_the_seeds_of_a_b_and_c() -> None:
    for variant in VARIANTS:
        assert variant_of(variant.name) == variant
        for steps in (3_000, LONG):
            experiment = variant.experiment(2, steps)
            assert Variant.of(experiment) == variant
            assert (experiment.seeds, experiment.steps) == ((2,), steps)
    assert len({variant.name for variant in VARIANTS}) == len(VARIANTS)
    single = {variant_of(word) for word in ("fan-in", "cosine", "pair", "torch", "base-10")}
    assert single | set(BEST) <= set(VARIANTS)
    # What is left out is as in the preset.
    paper, ours = (
        {name: its for name, its in each.named().items() if "checkpoint" not in name}
        for each in (preset_recipe("transformer-b"), variant_of("").experiment(1, LONG))
    )
    assert paper == ours
    recipes = under(VARIANTS[:2], LONG)
    assert [(each.seeds, each.steps) for each in recipes] == [
        ((seed,), LONG) for seed in (0, 0, 1, 1, 2, 2)
    ]


def test_words_of_a_variant_make_sense() -> None:
    for words, warmup, schedule in (
        ("warm-up-cosine", WARMUP, "cosine"),
        ("warm-up", WARMUP, "constant"),
        ("cosine", 0, "cosine"),
    ):
        training = variant_of(words).experiment(0).training
        assert (training.warmup, training.schedule) == (warmup, schedule), words
    assert chosen(["fan-in", "pair", "fan-in"]) == {"init": "fan-in", "position": "pair"}
    for words, told in {
        "gpt2 fan-in": "gpt2 and fan-in are both initial weights",
        "base-10 base-10000": "both bases of the code",
        "fanin": "no variant has 'fanin': did you mean fan-in",
        "zzz": "no variant has 'zzz': the words are gpt2, fan-in, torch, ",
    }.items():
        with pytest.raises(ConfigError, match=re.escape(told)):
            variant_of(words)
    with pytest.raises(ConfigError, match="warms up over 200 steps, and the training has 200"):
        variant_of("warm-up").experiment(0, WARMUP)
