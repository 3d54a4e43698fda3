"""Every claim can come out either way: reproduced on rows as they should be, not on bent ones."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hopscope.papers.claim import Claim, Finding
from hopscope.papers.musat_claims import CLAIMS
from hopscope.papers.musat_targets import TARGETS
from hopscope.papers.results import Protocol, Results, Row, Table

KNOWN = {claim.id: claim for claim in CLAIMS}
Tables = dict[str, list[Row]]


def depth_row(hops: int, theorem_1: int, bidirectional: int, causal: int) -> Row:
    exact = {"bidirectional": bidirectional, "causal": causal}
    return {"hops": hops, "theorem_1": theorem_1, **exact, "simulated": dict(exact)}


def planted_row(hops: int, layers: int) -> Row:
    return {"planted": hops, "layers": layers, "heads": 1, "error": 1e-20}


def answer_row(model: str, kind: str) -> Row:
    return {
        "model": model,
        "kind": kind,
        "guessing": 0.25,
        "interval": [0.92, 0.98],
        "accuracy": 0.94,
        "best": 0.96,
    }


def loss_row(layers: int, final: list[float], crossed: list[int | None]) -> Row:
    return {
        "layers": layers, "heads": 1, "seed": 0, "hops": len(final), "guess": 0.75, "final": final,
        "crossed": crossed,
    }  # fmt: skip


def removal(layer: int, what: str, ideal: float, *, joins: bool = False) -> Row:
    return {"head": [layer, 0], "what": what, "joins_pair": joins, "ideal": ideal}


def maps_row(attention: list[float]) -> Row:
    """Of three layers, the last of which attends so from values to their own keys."""
    roles = [f"{kind} {fact}" for fact in range(3) for kind in ("key", "value")]
    layers = [[[[0.0] * 6 for _ in roles]] for _ in range(3)]
    for fact, value in enumerate(attention):
        layers[2][0][2 * fact + 1][2 * fact] = value
    return {"roles": roles, "own": layers}


def circuit_row(name: str) -> Row:
    return {
        **loss_row(12, [0.002, 0.004, 0.006], [200, 300, 400]),
        "clean": 0.003,
        "ideal": 0.02,
        "useful": [[2, 0], [4, 0], [6, 0], [8, 0]],
        "needed": [[2, 0], [4, 0], [6, 0], [8, 0], [9, 0]],
        "maps": maps_row([0.9, 0.8, 0.6]),
        "removals": [
            removal(2, "value 0 → key 0", 0.07, joins=True),
            removal(4, f"query → {name}", 0.3),
            removal(6, "query → value 1", 0.5),
            removal(8, "query → value 2", 0.8),
        ],
    }


def emerging_row(examples: int) -> Row:
    return {
        **loss_row(24, [0.02, 0.03, 0.03, 0.04], [3_600, 4_000, 4_500, 5_100]),
        "clean": 0.031,
        "ideal": 0.05,
        "examples": examples,
        "removals": [
            removal(2, "value 0 → key 0", 0.01, joins=True),
            removal(4, "query → value 0", 0.3),
        ],
        "emergence": emergence_row([3_500.0, 3_900.0, 4_400.0, 4_900.0]),
    }


ENDS = (("query", "value 0"), ("value 0", "value 1"), ("query", "key 2"), ("key 3", "value 2"))


def emergence_row(steps: list[float | None]) -> Row:
    """Two paths for every hop, the second 2,000 steps after the first."""
    late = [None if step is None else step + 2_000 for step in steps]
    return {
        "paths": [
            {"reader": reader, "source": source, "emerged_at_step": step}
            for moments in (late, steps)
            for (reader, source), step in zip(ENDS, moments, strict=True)
        ]
    }


def tables() -> Tables:
    """What comes out if all is as the paper says."""
    kinds = [*(f"equations-d{hops}" for hops in (1, 2, 5)), "lives-with-d5", "kingdoms"]
    return {
        "musat/depth": [
            depth_row(1, 1, 1, 2), depth_row(2, 2, 2, 3), depth_row(3, 2, 3, 3),
            planted_row(2, 3), planted_row(3, 3),
        ],
        "musat/fig2": [answer_row(model, kind) for model in ("small", "large") for kind in kinds],
        "musat/fig4-ic": [
            loss_row(1, [0.6, 0.74], [None, None]),
            loss_row(2, [0.1, 0.95], [100, None]),
            loss_row(3, [0.01, 0.1], [90, 400]),
        ],
        "musat/fig4-nonic": [loss_row(layers, [0.75], [None]) for layers in (1, 2, 3)],
        "musat/order": [loss_row(4, [0.01, 0.02], [50, 80]), loss_row(4, [0.01, 0.02], [60, 60])],
        "musat/fig5": [circuit_row(name) for name in ("key 0", "value 0", "key 1")],
        "musat/fig7": [emerging_row(examples) for examples in (262_144, 2_048)],
    }  # fmt: skip


def judged(name: str, rows: Tables) -> Finding:
    claim = KNOWN[f"musat/{name}"]
    return claim.judge([Table(target, "full", tuple(rows[target])) for target in claim.targets])


def bent(target: str, place: int, **values: Any) -> Tables:
    """The tables, one row of which has other values."""
    rows = tables()
    assert set(values) <= set(rows[target][place])
    rows[target][place].update(values)
    return rows


def saved(root: Path, rows: Mapping[str, list[Row]], protocol: Protocol) -> Results:
    results = Results(root)
    for target, own in rows.items():
        results.save(Table(target, protocol, tuple(own)))
    return results


def test_ids_are_unique_and_sources_known() -> None:
    assert len(KNOWN) == len(CLAIMS)
    assert all(name.startswith("musat/") for name in KNOWN)
    targets = {target.name for target in TARGETS}
    assert set(tables()) == targets
    for claim in CLAIMS:
        assert set(claim.targets) <= targets
        assert all((claim.targets, claim.says, claim.where, claim.paper, claim.how))


NEVER_PLAIN = {
    "llm-solve": "the paper's models are larger by far",
}
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


DEPTH, ASKED, IC, NONIC = "musat/depth", "musat/fig2", "musat/fig4-ic", "musat/fig4-nonic"
ORDER, ABC, D = "musat/order", "musat/fig5", "musat/fig7"
PLAIN = circuit_row("key 0")["removals"]
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
    ("later-deeper", IC, 2, {"final": [0.6, 0.75]}),
    ("hops-in-order", IC, 2, {"crossed": [400, 90]}),
    ("hops-in-order", IC, 0, {"crossed": [None, 90]}),
    ("hops-in-order-small", ORDER, 1, {"crossed": [61, 60]}),
    ("abc-below-0.01", ABC, 1, {"final": [0.011] * 3, "clean": 0.011}),
    ("abc-mostly-idle", ABC, 2, {"needed": [[layer, 0] for layer in range(6)]}),
    ("abc-mostly-idle", ABC, 2, {"needed": []}),
    ("abc-four-heads", ABC, 2, {"useful": [[2, 0], [4, 0], [6, 0]]}),
    ("abc-first-head", ABC, 0, {"maps": maps_row([0.9, 0.5, 0.9])}),
    ("abc-first-head", ABC, 0, {"useful": []}),
    ("abc-different", ABC, 1, {"removals": PLAIN}),
    ("abc-different", ABC, 1, {"removals": [removal(2, "other", 0.07), *PLAIN[1:]]}),
    ("abc-different", ABC, 1, {"useful": []}),
    ("abc-circuit-loss", ABC, 1, {"ideal": 0.051}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN[:3], removal(8, "x", 0.16)]}),
    ("abc-single-removals", ABC, 1, {"removals": [*PLAIN[:3], removal(8, "x", 0.9)]}),
    ("abc-first-layers", ABC, 1, {"removals": [removal(2, "x", 0.04, joins=True), *PLAIN[1:]]}),
    ("abc-first-layers", ABC, 1, {"removals": [removal(2, "x", 0.11, joins=True), *PLAIN[1:]]}),
]


@pytest.mark.parametrize(("name", "target", "place", "values"), BENT)
def test_bent_rows_do_not(name: str, target: str, place: int, values: dict[str, Any]) -> None:
    found = judged(name, bent(target, place, **values))
    assert found.verdict == "not reproduced", found


READING: list[tuple[str, str, str, dict[str, Any]]] = [
    ("llm-solve", ASKED, "equations-d5", {"accuracy": 0.89}),
    ("abc-below-0.01", ABC, "", {"final": [0.011] * 3}),
    ("d-loss", D, "", {"final": [0.1] * 4, "clean": 0.03}),
    ("d-circuit-loss", D, "", {"ideal": 0.091}),
    ("d-single-removals", D, "", {"removals": [removal(4, "query → value 0", 0.16)]}),
    ("d-single-removals", D, "", {"removals": PLAIN[:1]}),
    ("d-single-removals", D, "", {"removals": []}),
    ("d-single-removals", D, "", {"ideal": 0.2}),
    ("d-hops-in-order", D, "", {"crossed": [3_600, 4_500, 4_000, 5_000]}),
    ("d-hops-in-order", D, "", {"crossed": [3_600, 4_000, 4_500, None]}),
    ("d-order", D, "", {"emergence": emergence_row([3_500.0, 4_400.0, 3_900.0, 4_900.0])}),
    ("d-order", D, "", {"emergence": emergence_row([3_500.0, 3_900.0, 4_400.0, None])}),
    ("d-order", D, "", {"emergence": {"paths": []}}),
    ("d-last-late", D, "", {"crossed": [3_600, 4_000, 4_500, 4_900]}),
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
    places = [row for row in rows[target] if row.get("kind", "") == kind]
    places[0].update(values)
    assert judged(name, rows).verdict == "under a reading"
    for row in places:
        row.update(values)
    if name == "abc-below-0.01":  # calm checkpoints all the same
        assert judged(name, rows).verdict == "under a reading"
        places[-1]["clean"] = 0.011
    assert judged(name, rows).verdict == "not reproduced"


def test_every_claim_is_bent() -> None:
    bent_ones = {name for name, *_ in (*BENT, *READING)} | {"llm-all-formulations"}
    assert {f"musat/{name}" for name in bent_ones} == set(KNOWN)


def test_one_model_that_is_above_guessing_everywhere_is_enough() -> None:
    rows = tables()
    rows[ASKED][3]["interval"] = [0.25, 0.6]  # not above, which is not the same as below
    found = judged("llm-all-formulations", rows)
    assert (found.verdict, found.ours) == ("reproduced", "large 5 of 5; small 4 of 5")
    rows[ASKED][-1]["interval"] = [0.2, 0.3]
    found = judged("llm-all-formulations", rows)
    assert (found.verdict, found.ours) == ("not reproduced", "large 4 of 5; small 4 of 5")


def test_answers_that_were_opened_count_apart() -> None:
    rows = tables()
    for row in rows[ASKED]:
        row["model"] = "small"
    for row in rows[ASKED][:5]:
        row["kind"] += "-opened"
    rows[ASKED][7]["accuracy"] = 0.5
    found = judged("llm-solve", rows)
    assert found.ours == (
        "small (opened) 0.94 … 0.94 (likeliest answer 0.96 … 0.96); "
        "small 0.50 … 0.94 (likeliest answer 0.96 … 0.96)"
    )
    assert found.verdict == "under a reading"
    assert "at every D by small (opened);" in found.evidence


def test_paths_must_be_found_to_emerge() -> None:
    rows = tables()
    del rows[D][0]["emergence"]
    found = judged("d-order", rows)
    assert found.verdict == "under a reading"
    assert found.evidence.endswith("; with 2,048 examples")
    assert found.ours == (
        "no path with 262,144 examples; 3,500 < 3,900 < 4,400 < 4,900 with 2,048 examples"
    )
    del rows[D][1]["emergence"]
    assert judged("d-order", rows).verdict == "not reproduced"


def test_a_reading_holds_if_all_its_seeds_do() -> None:
    rows = tables()
    rows[D].append({**rows[D][0], "final": [0.2] * 4})
    found = judged("d-loss", rows)
    assert found.verdict == "under a reading"
    assert found.ours == "0.030, 0.200 with 262,144 examples; 0.030 with 2,048 examples"
    assert found.evidence.endswith("; with 2,048 examples")


def test_the_values_are_those_of_the_rows() -> None:
    rows = tables()
    assert judged("theorem-1", rows).ours == "holds for 3 of 3 D; it is the exact minimum for 2"
    assert judged("nonic-above-0.7", rows).ours == "3 of 3; lowest 0.750"
    assert judged("ic-essential", rows).ours == "best loss 0.055 with, 0.750 without"
    assert judged("later-deeper", rows).ours == "hops learned by 1, 2, … layers: 0, 1, 2"
    assert judged("hops-in-order", rows).ours == (
        "3 of 3 runs; 1 of them passed 0.5 at more than one hop"
    )
    assert judged("hops-in-order-small", rows).ours.startswith("2 of 2 runs; 2 of them")
    assert judged("abc-four-heads", rows).ours == "4, 4, 4"
    assert judged("abc-mostly-idle", rows).ours == "7 of 12, 7 of 12, 7 of 12"
    assert judged("abc-different", rows).ours == "3 different circuits in 3 transformers"
    assert judged("abc-single-removals", rows).ours == "0.30 … 0.80; 9 of 9 within"
    assert judged("abc-first-layers", rows).ours == "0.07 … 0.07; 3 of 3 within"
    assert judged("d-loss", rows).ours == "0.030 with 262,144 examples; 0.030 with 2,048 examples"
    assert judged("d-slow-start", rows).ours.startswith("step 3,600 (epoch 450) with 262,144")
    assert judged("d-last-late", rows).ours.startswith("400, 500, 600 with 262,144 examples; ")
    never = bent(D, 0, crossed=[3_600, 4_000, None, None])
    assert judged("d-hops-in-order", never).ours.startswith(
        "3,600 < 4,000 < never < never with 262,144 examples; 3,600 < "
    )


def nothing_learned() -> Tables:
    """Rows of models that guess, in which no circuit was found; of two depths, nothing at all."""
    rows = tables()
    for target in (IC, NONIC, ORDER, ABC, D):
        for row in rows[target]:
            hops = len(row["final"])
            row.update(final=[0.75] * hops, crossed=[None] * hops)
            row.pop("emergence", None)
    for row in (*rows[ABC], *rows[D]):
        row.update(clean=0.75, ideal=0.75, first_joins_pair=False)
        row.update(useful=[], needed=[], removals=[])
    for row in rows[ASKED]:
        row.update(best=0.25, interval=[0.2, 0.3], kind="kingdoms")
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
        "theorem-1": "not measured",
        "three-heads-suffice": "not measured",
    }
    assert found.verdict == expected.get(name, "not reproduced"), found
    assert found.ours
    assert found.evidence


def findings(results: Results) -> Mapping[str, tuple[Claim, Finding]]:
    return {claim.id: (claim, claim.finding(results)) for claim in CLAIMS}


def test_what_is_missing_names_its_commands(tmp_path: Path) -> None:
    for claim, found in findings(Results(tmp_path)).values():
        assert (found.ours, found.verdict) == ("–", "not measured")
        commands = [f"`hopscope reproduce {target}`" for target in claim.targets]
        assert found.evidence == ", ".join(commands)
    results = saved(tmp_path, {IC: tables()[IC]}, "full")
    _, found = findings(results)["musat/ic-essential"]
    assert found == Finding("–", "not measured", "`hopscope reproduce musat/fig4-nonic`")


def test_a_table_without_rows_is_not_measured(tmp_path: Path) -> None:
    results = saved(tmp_path, {target: [] for target in tables()}, "full")
    for claim, found in findings(results).values():
        assert found.verdict == "not measured"
        assert f"`hopscope reproduce {claim.targets[0]}`" in found.evidence


def test_full_tables_decide(tmp_path: Path) -> None:
    for claim, found in findings(saved(tmp_path, tables(), "full")).values():
        assert found == judged(claim.id.removeprefix("musat/"), tables())


def test_a_smoke_table_decides_nothing(tmp_path: Path) -> None:
    for claim, found in findings(saved(tmp_path, tables(), "smoke")).values():
        assert found.verdict == "not measured"
        assert found.evidence == "smoke protocol: not the paper's models"
        assert found.ours == judged(claim.id.removeprefix("musat/"), tables()).ours


def test_one_smoke_table_of_two_decides_nothing(tmp_path: Path) -> None:
    results = saved(tmp_path, tables(), "full")
    results.path(NONIC).unlink()
    results.save(Table(NONIC, "smoke", tuple(tables()[NONIC])))
    assert findings(results)["musat/ic-essential"][1].verdict == "not measured"
    assert findings(results)["musat/later-deeper"][1].verdict == "reproduced"


def test_a_reduced_table_is_named(tmp_path: Path) -> None:
    full = saved(tmp_path / "full", tables(), "full")
    for claim, found in findings(saved(tmp_path / "reduced", tables(), "reduced")).values():
        whole = claim.finding(full)
        short = [f"{target}: reduced protocol" for target in claim.targets]
        evidence = "; ".join([whole.evidence, *short])
        if claim.only_full:
            assert (found.verdict, whole.verdict) == ("under a reading", "reproduced")
            evidence += ", which cannot confirm it"
        else:
            assert found.verdict == whole.verdict
        assert found.evidence == evidence


def test_a_reduced_table_can_refute_never(tmp_path: Path) -> None:
    assert [claim.id for claim in CLAIMS if claim.only_full] == [
        "musat/nonic-above-0.7",
        "musat/ic-essential",
    ]
    rows = bent(NONIC, 1, final=[0.69])
    _, found = findings(saved(tmp_path, rows, "reduced"))["musat/nonic-above-0.7"]
    assert found.verdict == "not reproduced"


def test_a_table_that_lacks_runs_is_not_judged(tmp_path: Path) -> None:
    results = saved(tmp_path, tables(), "full")
    whole = results.table(NONIC)
    rows = tuple({"run": f"run {number}", **row} for number, row in enumerate(whole.rows))
    results.save(replace(whole, rows=rows, wanted=3))
    assert KNOWN["musat/nonic-above-0.7"].finding(results).verdict == "reproduced"
    results.save(replace(whole, rows=rows, wanted=4))
    assert KNOWN["musat/nonic-above-0.7"].finding(results).verdict == "not measured"


def test_rows_of_another_version_are_told(tmp_path: Path) -> None:
    rows = tables()
    del rows[ABC][1]["needed"]
    found = findings(saved(tmp_path, rows, "full"))
    for name in ("musat/abc-mostly-idle", "musat/abc-four-heads"):
        assert found[name][1].verdict == "not measured"
        assert found[name][1].evidence == (
            f"a row of {tmp_path}/{ABC}.jsonl has no 'needed': another hopscope wrote it; "
            f"`hopscope reproduce {ABC}` measures it anew"
        )
    assert found["musat/abc-first-head"][1].verdict == "reproduced"
