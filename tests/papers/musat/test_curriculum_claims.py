"""Claims about depth and curriculum, over models of several tables."""

from musat_rows import IC, judged, tables, with_

from hopscope.papers.musat.curriculum_claims import CLAIMS, hops_of
from hopscope.papers.table import Table


def test_models_of_more_seeds_count_for_the_depth_law_as_they_come() -> None:
    found = judged("depth-law", tables())
    assert found.ours.startswith(
        "beaten by 0 of 2 that could (95 %: 0.00 … 0.66); met by 2 of 2 that may learn a hop "
    )
    assert found.evidence.endswith("; 3 models: 1 each of 1, 2, 3 layers")
    (claim,) = (claim for claim in CLAIMS if claim.id == "musat/depth-law")
    known = [Table(name, "full", tuple(tables()[name])) for name in (IC, *claim.beside)]
    more = claim.judge(known)
    assert more.ours.startswith("beaten by 0 of 3 that could ")
    assert more.evidence.endswith("; 4 models: 2 of 2 layers, 1 each of 1, 3 layers")
    again = Table("musat/fig4-seeds", "full", (tables()[IC][1],))  # a model that is known already
    assert claim.judge([known[0], again]) == claim.judge(known[:1])
    lucky = with_(tables()[IC][0], seed=1, final=[0.1, 0.1])
    known[1] = Table("musat/fig4-seeds", "full", (lucky,))
    assert claim.judge(known).verdict == "not reproduced"


def test_models_of_more_seeds_may_learn_without_curriculum() -> None:
    rows = tables()
    seeds = "musat/fig4-nonic-seeds"
    for loss, verdict in ((0.74, "reproduced"), (0.4, "not reproduced")):
        rows[seeds] = [with_(rows[seeds][0], final=[loss])]
        for name in ("musat/nonic-above-0.7", "musat/ic-essential"):
            (claim,) = (claim for claim in CLAIMS if claim.id == name)
            names = (*claim.targets, *claim.beside)
            known = [Table(name, "full", tuple(rows[name])) for name in names]
            assert claim.judge(known).verdict == verdict


def test_less_training_in_which_nothing_is_learned_refutes_nothing() -> None:
    rows = tables()
    stuck = tuple(with_(row, final=[0.74, 0.74], crossed=[None, None]) for row in rows[IC])
    for protocol, verdict in (("reduced", "not measured"), ("full", "not reproduced")):
        for name in ("musat/ic-essential", "musat/later-harder", "musat/later-deeper"):
            (claim,) = (claim for claim in CLAIMS if claim.id == name)
            others = [Table(target, "full", tuple(rows[target])) for target in claim.targets[1:]]
            assert claim.judge([Table(IC, protocol, stuck), *others]).verdict == verdict
    (claim,) = (claim for claim in CLAIMS if claim.id == "musat/hops-in-order")
    assert claim.judge([Table(IC, "full", stuck)]).verdict == "not measured"  # no order is seen


def test_a_model_without_curriculum_knows_the_hop_that_it_is_asked_for() -> None:
    row = with_(tables()[IC][0], hops=5, curriculum=False, final=[0.1])
    assert hops_of(row) == 5
    assert hops_of(with_(row, curriculum=True)) == 1
