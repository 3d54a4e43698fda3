"""Every claim can come out either way: reproduced on rows as they should be, not on bent ones."""

from dataclasses import replace
from typing import Any

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

from hopscope.papers.musat.curriculum_claims import hops_of
from hopscope.papers.musat.rows import Story
from hopscope.papers.table import Table

NAMES = [name.removeprefix("musat/") for name in KNOWN]
NEVER_PLAIN = dict.fromkeys(
    ("llm-solve", "llm-all-formulations"), "the paper's models are larger by far"
)
"""Claims of which no rows could show more than a reading."""


def test_rows_as_the_paper_says_reproduce() -> None:
    for name in NAMES:
        found = judged(name, tables())
        expected = "under a reading" if name in NEVER_PLAIN else "reproduced"
        assert found.verdict == expected, (name, found)
        assert NEVER_PLAIN.get(name, "") in found.evidence
        assert len(found.ours) > 1


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
    ("abc-below-0.01", ABC, 1, {"final": [0.011] * 3, "model": 0.011}),
    ("abc-mostly-idle", ABC, 2, {"needed": [[layer, 0] for layer in range(6)]}),
    ("abc-mostly-idle", ABC, 2, {"needed": []}),
    ("abc-four-heads", ABC, 2, {"useful": [[2, 0], [4, 0], [6, 0]]}),
    ("abc-first-head", ABC, 0, {"maps": maps_of([0.9, 0.5, 0.9])}),
    ("abc-first-head", ABC, 0, {"useful": []}),
    ("abc-different", ABC, 1, {"removals": PLAIN}),
    ("abc-different", ABC, 1, {"removals": [removal(2, "other", 0.07), *PLAIN[1:]]}),
    ("abc-different", ABC, 1, {"useful": []}),
    ("abc-different", ABC, 1, {"prescribed": 0.6}),
    ("abc-circuit-loss", ABC, 1, {"prescribed": 0.051}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN[:3], removal(8, "x", 0.16)]}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN[:3], removal(8, "x", 0.9)]}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN, removal(4, "key 1 → value 1", 0.1)]}),
    ("abc-single-removals", ABC, 1, {"prescribed": 0.06}),
    ("abc-mostly-idle", ABC, 1, {"prescribed": 0.06}),
    ("abc-not-the-fewest", ABC, 1, {"needed": [[2, 0], [4, 0], [6, 0]]}),
    ("abc-not-the-fewest", ABC, 1, {"prescribed": 0.06}),
    ("abc-first-layers", ABC, 1, {"whole": [{"head": [2, 0], "loss": 0.04}]}),
    ("abc-first-layers", ABC, 1, {"whole": [{"head": [2, 0], "loss": 0.11}]}),
    ("abc-first-layers", ABC, 1, {"whole": []}),
]


def test_bent_rows_do_not() -> None:
    for name, target, place, values in BENT:
        found = judged(name, bent(target, place, **values))
        assert found.verdict == "not reproduced", (name, values, found)


READING: list[tuple[str, str, dict[str, Any]]] = [
    ("abc-below-0.01", ABC, {"final": [0.011] * 3}),
    ("d-loss", D, {"final": [0.1] * 4, "model": 0.03}),
    ("d-circuit-loss", D, {"prescribed": 0.091}),
    ("d-single-removals", D, {"removals": [removal(4, "value 0 → query", 0.16)]}),
    ("d-single-removals", D, {"removals": PLAIN[:1]}),
    ("d-single-removals", D, {"removals": []}),
    ("d-single-removals", D, {"prescribed": 0.2}),
    ("d-hops-in-order", D, {"crossed": [3_600, 4_500, 4_000, 5_000]}),
    ("d-hops-in-order", D, {"crossed": [3_600, 4_000, 4_500, None]}),
    ("d-order", D, {"emergence": story([3_500.0, 4_400.0, 3_900.0, 4_900.0])}),
    ("d-order", D, {"emergence": story([3_500.0, 3_900.0, 4_400.0, None])}),
    ("d-order", D, {"emergence": story([])}),
    ("d-head-per-hop", D, {"emergence": story([3_500.0, 4_400.0, 3_900.0, 4_900.0])}),
    ("d-head-per-hop", D, {"emergence": one_head(story([3_500.0, 3_900.0, 4_400.0, 4_900.0]))}),
    ("d-several-paths", D, {"shared": []}),
    ("d-quickly-after", D, {"crossed": [3_600, 4_501, 4_600, 5_000]}),
    ("d-quickly-after", D, {"crossed": [3_600, None, None, None]}),
    ("d-quickly-after", D, {"crossed": [3_600, 3_500, 4_500, 4_900]}),
    ("d-last-late", D, {"crossed": [3_600, 4_000, 4_500, 5_400]}),  # later, and not much
    ("d-last-late", D, {"crossed": [3_600, 4_000, 4_500, None]}),
    ("d-slow-start", D, {"crossed": [1_000, 4_000, 4_500, 5_000]}),
    ("d-slow-start", D, {"crossed": [5_500, 5_600, 5_700, 5_800]}),
    ("d-slow-start", D, {"crossed": [None] * 4}),
]
"""Rows that are bent in one place, and then in all."""


def test_what_the_paper_leaves_open_may_decide() -> None:
    assert {name for name, *_ in (*BENT, *READING)} | set(NEVER_PLAIN) == set(NAMES)
    for name, target, values in READING:
        rows = tables()
        rows[target][0] = with_(rows[target][0], **values)
        assert judged(name, rows).verdict == "under a reading", (name, values)
        rows[target] = [with_(row, **values) for row in rows[target]]
        if name == "abc-below-0.01":  # calm checkpoints all the same
            assert judged(name, rows).verdict == "under a reading"
            rows[target][-1] = with_(rows[target][-1], model=0.011)
        assert judged(name, rows).verdict == "not reproduced", (name, values)


def test_small_models_that_fail_say_nothing_of_large_ones() -> None:
    rows = bent(ASKED, 2, accuracy=0.89)
    assert judged("llm-solve", rows).verdict == "under a reading"
    rows[ASKED][7] = with_(rows[ASKED][7], accuracy=0.89)
    assert judged("llm-solve", rows).verdict == "not measured"
    rows = bent(ASKED, 3, interval=[0.25, 0.6])  # not above, which is not the same as below
    found = judged("llm-all-formulations", rows)
    assert (found.verdict, found.ours) == ("under a reading", "large 5 of 5; small 4 of 5")
    rows[ASKED][-1] = with_(rows[ASKED][-1], interval=[0.2, 0.3])
    found = judged("llm-all-formulations", rows)
    assert (found.verdict, found.ours) == ("not measured", "large 4 of 5; small 4 of 5")


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
    nothing: dict[str, Any] = {
        "useful": [],
        "needed": [],
        "removals": [],
        "whole": [],
        "shared": [],
    }
    for target in (ABC, D):
        rows[target] = [with_(row, model=0.75, prescribed=0.75, **nothing) for row in rows[target]]
    rows[ASKED] = [
        with_(row, best=0.25, interval=[0.2, 0.3], kind="kingdoms") for row in rows[ASKED]
    ]
    rows[DEPTH] = []
    return rows


NOT_MEASURED = (
    "llm-solve", "llm-all-formulations", "depth-law-small", "depth-law", "hops-in-order",
    "hops-in-order-small", "theorem-1", "three-heads-suffice",
)  # fmt: skip


def test_who_learned_nothing_reproduces_nothing() -> None:
    expected = {**dict.fromkeys(NOT_MEASURED, "not measured"), "nonic-above-0.7": "reproduced"}
    every = nothing_learned()
    for rows in (every, {target: own[:1] for target, own in every.items()}):
        for name in NAMES:
            found = judged(name, rows)
            assert found.verdict == expected.get(name, "not reproduced"), (name, found)


def beside(name: str, tables_: Tables) -> list[Table]:
    """The tables of a claim, with those of more seeds."""
    return [
        Table(target, "full", tuple(tables_[target])) for target in KNOWN[f"musat/{name}"].sources
    ]


def test_models_of_more_seeds_count_each_once() -> None:
    law = KNOWN["musat/depth-law"]
    found = judged("depth-law", tables())
    assert found.ours.startswith("beaten by 0 of 2 that could (95 %: 0.00 … 0.66); met by 2 of 2 ")
    known = beside("depth-law", tables())
    more = law.judge(known)
    assert more.ours.startswith("beaten by 0 of 3 that could ")
    assert more.evidence.endswith("; 4 models: 2 of 2 layers, 1 each of 1, 3 layers")
    again = Table("musat/fig4-seeds", "full", (tables()[IC][1],))  # a model that is known already
    assert law.judge([known[0], again]) == law.judge(known[:1])
    lucky = with_(tables()[IC][0], seed=1, final=[0.1, 0.1])
    assert law.judge([known[0], replace(again, rows=(lucky,))]).verdict == "not reproduced"
    seeds = "musat/fig4-nonic-seeds"
    for loss, verdict in ((0.74, "reproduced"), (0.4, "not reproduced")):
        rows = bent(seeds, 0, final=[loss])
        for name in ("nonic-above-0.7", "ic-essential"):
            assert KNOWN[f"musat/{name}"].judge(beside(name, rows)).verdict == verdict


def test_less_training_in_which_nothing_is_learned_refutes_nothing() -> None:
    stuck = [with_(row, final=[0.74, 0.74], crossed=[None, None]) for row in tables()[IC]]
    rows = tables() | {IC: stuck}
    for protocol, verdict in (("reduced", "not measured"), ("full", "not reproduced")):
        for name in ("ic-essential", "later-harder", "later-deeper"):
            claim = KNOWN[f"musat/{name}"]
            known = [Table(target, protocol, tuple(rows[target])) for target in claim.targets]
            assert claim.judge(known).verdict == verdict, name
    assert judged("hops-in-order", rows).verdict == "not measured"  # no order is seen


def test_a_model_without_curriculum_knows_the_hop_that_it_is_asked_for() -> None:
    row = with_(tables()[IC][0], hops=5, curriculum=False, final=[0.1])
    assert hops_of(row) == 5
    assert hops_of(with_(row, curriculum=True)) == 1
