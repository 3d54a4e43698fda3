"""Every claim can come out either way: reproduced on rows as they should be, not on bent ones."""

from typing import Any

import pytest
from musat_rows import (
    ABC,
    ASKED,
    DEPTH,
    IC,
    KNOWN,
    NONIC,
    ORDER,
    SMALL,
    D,
    Tables,
    bent,
    circuit_row,
    judged,
    maps_of,
    removal,
    story,
    tables,
    with_,
    without,
)

from hopscope.papers.musat.claims import CLAIMS
from hopscope.papers.musat.rows import Story
from hopscope.papers.musat.targets import TARGETS


def test_ids_are_unique_and_sources_known() -> None:
    assert len(KNOWN) == len(CLAIMS)
    assert all(name.startswith("musat/") for name in KNOWN)
    targets = {target.name for target in TARGETS}
    assert set(tables()) == targets
    for claim in CLAIMS:
        assert set(claim.targets) <= targets
        assert all((claim.targets, claim.says, claim.where, claim.paper, claim.how))


NEVER_PLAIN = dict.fromkeys(
    ("llm-solve", "llm-all-formulations"), "the paper's models are larger by far"
)
"""Claims of which no rows could show more than a reading."""


@pytest.mark.parametrize("name", [name.removeprefix("musat/") for name in KNOWN])
def test_rows_as_the_paper_says_reproduce(name: str) -> None:
    found = judged(name, tables())
    if name in NEVER_PLAIN:
        assert found.verdict == "under a reading", found
        assert NEVER_PLAIN[name] in found.evidence
    else:
        assert found.verdict == "reproduced", found
    assert len(found.ours) > 1
    assert found.evidence


def one_head(told: Story) -> Story:
    """The same, all in one head."""
    paths = tuple(path.model_copy(update={"layer": 1}) for path in told.paths)
    return told.model_copy(update={"paths": paths})


PLAIN = circuit_row("key 0").removals
BENT: list[tuple[str, str, int, dict[str, Any]]] = [
    ("theorem-1", DEPTH, 2, {"simulated": {"bidirectional": 1, "causal": 3}, "bidirectional": 1}),
    ("theorem-1", DEPTH, 2, {"causal": 4}),
    ("three-heads-suffice", DEPTH, 4, {"layers": 4}),
    ("three-heads-suffice", DEPTH, 4, {"heads": 2}),
    ("three-heads-suffice", DEPTH, 4, {"error": 1e-5}),
    ("nonic-above-0.7", NONIC, 1, {"final": [0.69]}),
    ("ic-essential", IC, 2, {"final": [0.01, 1.1]}),
    ("ic-essential", NONIC, 2, {"final": [0.4]}),
    ("later-harder", IC, 1, {"final": [0.75, 0.72]}),
    ("later-harder", IC, 2, {"final": [0.05, 0.01]}),
    ("later-deeper", IC, 0, {"final": [0.1, 0.1]}),
    ("later-deeper", IC, 1, {"final": [0.75, 0.1]}),
    ("later-deeper", IC, 2, {"final": [0.6, 0.75]}),
    ("depth-law", IC, 0, {"final": [0.1, 0.75]}),
    ("depth-law", IC, 1, {"final": [0.1, 0.1]}),
    ("depth-law-small", SMALL, 1, {"final": [0.1, 0.1]}),
    ("hops-in-order", IC, 2, {"crossed": [400, 90]}),
    ("hops-in-order", IC, 0, {"crossed": [None, 90]}),
    ("hops-in-order-small", ORDER, 1, {"crossed": [61, 60]}),
    ("abc-below-0.01", ABC, 1, {"final": [0.011] * 3, "clean": 0.011}),
    ("abc-mostly-idle", ABC, 2, {"needed": [[layer, 0] for layer in range(6)]}),
    ("abc-mostly-idle", ABC, 2, {"needed": []}),
    ("abc-four-heads", ABC, 2, {"useful": [[2, 0], [4, 0], [6, 0]]}),
    ("abc-first-head", ABC, 0, {"maps": maps_of([0.9, 0.5, 0.9])}),
    ("abc-first-head", ABC, 0, {"useful": []}),
    ("abc-different", ABC, 1, {"removals": PLAIN}),
    ("abc-different", ABC, 1, {"removals": [removal(2, "other", 0.07), *PLAIN[1:]]}),
    ("abc-different", ABC, 1, {"useful": []}),
    ("abc-different", ABC, 1, {"ideal": 0.6}),
    ("abc-circuit-loss", ABC, 1, {"ideal": 0.051}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN[:3], removal(8, "x", 0.16)]}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN[:3], removal(8, "x", 0.9)]}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN, removal(4, "value 1 → key 1", 0.1)]}),
    ("abc-single-removals", ABC, 1, {"ideal": 0.06}),
    ("abc-mostly-idle", ABC, 1, {"ideal": 0.06}),
    ("abc-not-the-fewest", ABC, 1, {"needed": [[2, 0], [4, 0], [6, 0]]}),
    ("abc-not-the-fewest", ABC, 1, {"ideal": 0.06}),
    ("abc-first-layers", ABC, 1, {"whole": [{"head": [2, 0], "loss": 0.04}]}),
    ("abc-first-layers", ABC, 1, {"whole": [{"head": [2, 0], "loss": 0.11}]}),
    ("abc-first-layers", ABC, 1, {"whole": []}),
]


@pytest.mark.parametrize(("name", "target", "place", "values"), BENT)
def test_bent_rows_do_not(name: str, target: str, place: int, values: dict[str, Any]) -> None:
    found = judged(name, bent(target, place, **values))
    assert found.verdict == "not reproduced", found


READING: list[tuple[str, str, str, dict[str, Any]]] = [
    ("abc-below-0.01", ABC, "", {"final": [0.011] * 3}),
    ("d-loss", D, "", {"final": [0.1] * 4, "clean": 0.03}),
    ("d-circuit-loss", D, "", {"ideal": 0.091}),
    ("d-single-removals", D, "", {"removals": [removal(4, "query → value 0", 0.16)]}),
    ("d-single-removals", D, "", {"removals": PLAIN[:1]}),
    ("d-single-removals", D, "", {"removals": []}),
    ("d-single-removals", D, "", {"ideal": 0.2}),
    ("d-hops-in-order", D, "", {"crossed": [3_600, 4_500, 4_000, 5_000]}),
    ("d-hops-in-order", D, "", {"crossed": [3_600, 4_000, 4_500, None]}),
    ("d-order", D, "", {"emergence": story([3_500.0, 4_400.0, 3_900.0, 4_900.0])}),
    ("d-order", D, "", {"emergence": story([3_500.0, 3_900.0, 4_400.0, None])}),
    ("d-order", D, "", {"emergence": story([])}),
    ("d-head-per-hop", D, "", {"emergence": story([3_500.0, 4_400.0, 3_900.0, 4_900.0])}),
    ("d-head-per-hop", D, "", {"emergence": one_head(story([3_500.0, 3_900.0, 4_400.0, 4_900.0]))}),
    ("d-several-paths", D, "", {"removals": PLAIN}),
    ("d-quickly-after", D, "", {"crossed": [3_600, 4_501, 4_600, 5_000]}),
    ("d-quickly-after", D, "", {"crossed": [3_600, None, None, None]}),
    ("d-quickly-after", D, "", {"crossed": [3_600, 3_500, 4_500, 4_900]}),
    ("d-last-late", D, "", {"crossed": [3_600, 4_000, 4_500, 5_400]}),  # later, and not much
    ("d-last-late", D, "", {"crossed": [3_600, 4_000, 4_500, None]}),
    ("d-slow-start", D, "", {"crossed": [1_000, 4_000, 4_500, 5_000]}),
    ("d-slow-start", D, "", {"crossed": [5_500, 5_600, 5_700, 5_800]}),
    ("d-slow-start", D, "", {"crossed": [None] * 4}),
]
"""Rows that are bent in one place, and then in all."""


@pytest.mark.parametrize(("name", "target", "kind", "values"), READING)
def test_what_the_paper_leaves_open_may_decide(
    name: str, target: str, kind: str, values: dict[str, Any]
) -> None:
    rows = tables()
    own = rows[target]
    places = [n for n, row in enumerate(own) if not kind or row.kind == kind]
    own[places[0]] = with_(own[places[0]], **values)
    assert judged(name, rows).verdict == "under a reading"
    for place in places:
        own[place] = with_(own[place], **values)
    if name == "abc-below-0.01":  # calm checkpoints all the same
        assert judged(name, rows).verdict == "under a reading"
        own[places[-1]] = with_(own[places[-1]], clean=0.011)
    assert judged(name, rows).verdict == "not reproduced"


def test_every_claim_is_bent() -> None:
    bent_ones = {name for name, *_ in (*BENT, *READING)} | set(NEVER_PLAIN)
    assert {f"musat/{name}" for name in bent_ones} == set(KNOWN)


def test_small_models_that_fail_say_nothing_of_large_ones() -> None:
    rows = bent(ASKED, 2, accuracy=0.89)
    assert judged("llm-solve", rows).verdict == "under a reading"
    rows[ASKED][7] = with_(rows[ASKED][7], accuracy=0.89)
    found = judged("llm-solve", rows)
    assert found.verdict == "not measured"
    assert "by none; the paper's models are larger by far" in found.evidence


def test_one_model_that_is_above_guessing_everywhere_is_enough() -> None:
    rows = bent(ASKED, 3, interval=[0.25, 0.6])  # not above, which is not the same as below
    found = judged("llm-all-formulations", rows)
    assert (found.verdict, found.ours) == ("under a reading", "large 5 of 5; small 4 of 5")
    rows[ASKED][-1] = with_(rows[ASKED][-1], interval=[0.2, 0.3])
    found = judged("llm-all-formulations", rows)
    assert (found.verdict, found.ours) == ("not measured", "large 4 of 5; small 4 of 5")


def test_answers_that_were_opened_count_apart() -> None:
    rows = tables()
    own = [with_(row, model="small") for row in rows[ASKED]]
    own[:5] = [with_(row, kind=f"{row.kind}-opened") for row in own[:5]]
    own[7] = with_(own[7], accuracy=0.5)
    rows[ASKED] = own
    found = judged("llm-solve", rows)
    assert found.ours == (
        "small (opened) 0.94 … 0.94 (likeliest answer 0.96 … 0.96); "
        "small 0.50 … 0.94 (likeliest answer 0.96 … 0.96)"
    )
    assert found.verdict == "under a reading"
    assert "at every D by small (opened);" in found.evidence


def test_a_depth_without_luck_does_not_speak_against_depth() -> None:
    rows = tables()
    rows[IC].append(with_(rows[IC][1], layers=4))
    found = judged("later-deeper", rows)
    assert found.verdict == "reproduced"
    assert found.ours.endswith("layers: 0, 1, 2, 1")
    unlucky = bent(IC, 2, final=[0.1, 0.75])
    assert "x₁, x₂, …: 2, –; " in judged("later-deeper", unlucky).ours


def test_the_values_are_those_of_the_rows() -> None:
    rows = tables()
    assert judged("theorem-1", rows).ours == "holds for 3 of 3 D; it is the exact minimum for 2"
    assert judged("nonic-above-0.7", rows).ours == "3 of 3 models (95 %: 0.44 … 1.00); lowest 0.750"
    assert judged("ic-essential", rows).ours == "best loss 0.055 with, 0.750 without"
    assert judged("later-deeper", rows).ours == (
        "fewest layers that learn x₁, x₂, …: 2, 3; hops learned by 1, 2, … layers: 0, 1, 2"
    )
    assert judged("hops-in-order", rows).ours == (
        "1 of 1 models (95 %: 0.21 … 1.00) that learned a hop behind x₁, of 3"
    )
    assert judged("hops-in-order-small", rows).ours.startswith("2 of 2 models (95 %: 0.34")
    assert judged("abc-four-heads", rows).ours == "4, 4, 4; 3 of 3 models (95 %: 0.44 … 1.00)"
    assert judged("abc-mostly-idle", rows).ours.startswith("7 of 12, 7 of 12, 7 of 12; 3 of 3 ")
    assert judged("abc-different", rows).ours == (
        "3 different circuits in 3 transformers; in all of them: query ← value 1, query ← value 2"
    )
    assert judged("abc-single-removals", rows).ours == (
        "0.30 … 0.80 (within: 3 of 3, 3 of 3, 3 of 3); 3 of 3 models (95 %: 0.44 … 1.00)"
    )
    assert judged("abc-first-layers", rows).ours.startswith(
        "0.07 (within: 1 of 1, 1 of 1, 1 of 1); 3 of 3 models "
    )
    assert judged("d-loss", rows).ours == (
        "262,144 examples: holds for 1 of 1 models (95 %: 0.21 … 1.00); seed 0: 0.030; "
        "2,048 examples: holds for 1 of 1 models (95 %: 0.21 … 1.00); seed 0: 0.030"
    )
    large = "262,144 examples: holds for 1 of 1 models (95 %: 0.21 … 1.00); seed 0: "
    assert judged("d-slow-start", rows).ours.startswith(f"{large}step 3,600 (epoch 450); ")
    assert judged("d-last-late", rows).ours.startswith(f"{large}400 + 200 + 900; ")
    never = bent(D, 0, crossed=[3_600, 4_000, None, None])
    assert judged("d-hops-in-order", never).ours.startswith(
        "262,144 examples: holds for 0 of 1 models (95 %: 0.00 … 0.79); "
        "seed 0: x₁ 3,600, x₂ 4,000, x₃ never, x₄ never; 2,048 examples: holds for 1 of 1 models "
    )


def nothing_learned() -> Tables:
    """Rows of models that guess, in which no circuit was found; of two depths, nothing at all."""
    rows = tables()
    for target in (IC, NONIC, SMALL, ORDER, ABC, D):
        rows[target] = [
            with_(
                without(row, "emergence"),
                final=[0.75] * len(row.final),
                crossed=[None] * len(row.final),
            )
            for row in rows[target]
        ]
    nothing: dict[str, Any] = {"useful": [], "needed": [], "removals": [], "whole": []}
    for target in (ABC, D):
        rows[target] = [with_(row, clean=0.75, ideal=0.75, **nothing) for row in rows[target]]
    rows[ASKED] = [
        with_(row, best=0.25, interval=[0.2, 0.3], kind="kingdoms") for row in rows[ASKED]
    ]
    rows[DEPTH] = []
    return rows


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", [name.removeprefix("musat/") for name in KNOWN])
def test_who_learned_nothing_reproduces_nothing(name: str, single: bool) -> None:
    rows = nothing_learned()
    if single:
        rows = {target: own[:1] for target, own in rows.items()}
    found = judged(name, rows)
    expected = {
        "nonic-above-0.7": "reproduced",
        "llm-solve": "not measured",
        "llm-all-formulations": "not measured",
        "depth-law-small": "not measured",
        "depth-law": "not measured",
        "hops-in-order": "not measured",
        "hops-in-order-small": "not measured",
        "theorem-1": "not measured",
        "three-heads-suffice": "not measured",
    }
    assert found.verdict == expected.get(name, "not reproduced"), found
    assert found.ours
    assert found.evidence


def test_circuits_that_were_kept_with_either_arrow_are_compared_alike() -> None:
    rows = tables()
    first, second, *_ = rows[ABC]
    turned = tuple(
        each.model_copy(update={"what": each.what.replace("→", "←")}) for each in first.removals
    )
    rows[ABC][1] = second.model_copy(update={"removals": turned})
    assert judged("abc-different", rows).ours.startswith("2 different circuits in 3 transformers;")
