"""Which claims hold under which reading, from rows."""

from musat_rows import ABC, judged, reading_rows, tables, with_

from hopscope.papers.claim import Finding
from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
from hopscope.papers.musat.claims import CLAIMS
from hopscope.papers.musat.reading_map import comparable, nearest, tried, usual_steps
from hopscope.papers.musat.readings import LONG, PaperReading
from hopscope.papers.musat.recipes import preset
from hopscope.papers.musat.rows import ReadingRow
from hopscope.papers.table import Table

JUDGES = {claim.id: claim.judge for claim in AS_WE_TAKE_IT}
BELOW = "musat/abc-below-0.01"


def readings(*rows: ReadingRow) -> Table:
    return Table("musat/readings", "reduced", rows)


def found(*beside: Table) -> Finding:
    """The verdict on the first claim, where the paper as we take it ends at 0.02."""
    (claim,) = (claim for claim in CLAIMS if claim.id == BELOW)
    rows = [with_(row, final=[0.02] * 3, clean=0.02) for row in tables()[ABC]]
    return claim.judge([Table(ABC, "full", tuple(rows)), *beside])


def test_models_of_one_reading_and_length_belong_together() -> None:
    some, longer = reading_rows("fan-in"), [with_(r, steps=9) for r in reading_rows("fan-in")]
    other = reading_rows("torch")
    known = tried([readings(*some, *other[:2]), readings(*longer)])
    told = [(one.reading, one.steps, len(one.rows)) for one in known]
    assert told == [("fan-in", 6_400, 3), ("torch", 6_400, 2), ("fan-in", 9, 3)]


def test_rows_that_name_no_reading_are_of_the_paper_as_we_take_it() -> None:
    rows = tables()[ABC]
    (one,) = tried([Table(ABC, "full", tuple(rows))])
    assert one.reading == PaperReading().name
    taken = preset("transformer-a")
    assert PaperReading().experiment(0, LONG).task == taken.task
    assert PaperReading().experiment(0, LONG).model == taken.model
    assert PaperReading.of(taken) == PaperReading()


def test_heads_with_a_path_and_without_are_counted_apart() -> None:
    row = with_(reading_rows("fan-in")[0], useful=[[0, 0]], needed=[[0, 0], [1, 0], [2, 0]])
    (one,) = tried([readings(row)])
    assert one.heads == [(1, 2)]


def test_a_claim_is_counted_model_by_model() -> None:
    rows = reading_rows("fan-in")
    rows[1] = with_(rows[1], final=[0.02] * 3, clean=0.02)
    (one,) = tried([readings(*rows)])
    assert one.held(JUDGES[BELOW]) == 2
    assert not one.holds(JUDGES[BELOW])
    assert one.held(JUDGES["musat/abc-four-heads"]) == 3


def test_whether_models_differ_is_asked_of_all_together() -> None:
    (one,) = tried([readings(*reading_rows("fan-in"))])
    assert one.held(JUDGES["musat/abc-different"]) == 3
    (alike,) = tried([readings(*[reading_rows("fan-in")[0]] * 3)])
    assert alike.held(JUDGES["musat/abc-different"]) == 0


def test_a_claim_may_hold_under_a_reading() -> None:
    assert found().verdict == "not reproduced"
    good = found(readings(*reading_rows("torch"), *reading_rows("fan-in")))
    assert good.verdict == "under a reading"
    assert "; it does not hold as we take the paper (gpt2 constant token base-10000); " in (
        good.evidence
    )
    assert (
        "; it holds with every seed under 2 of 2 other readings tried with 3 seeds each "
        "(musat/readings): torch (6,400 steps) / fan-in (6,400 steps); "
    ) in good.evidence


def test_of_many_readings_few_are_named() -> None:
    names = ("torch", "fan-in", "pair", "base-10", "fan-in pair")
    every = [row for name in names for row in reading_rows(name)]
    assert ": torch (6,400 steps) / fan-in (6,400 steps) / pair (6,400 steps) / 2 more; " in (
        found(readings(*every)).evidence
    )


def test_a_reading_that_holds_at_two_lengths_is_named_once() -> None:
    rows = [*reading_rows("torch"), *(with_(row, steps=9_000) for row in reading_rows("torch"))]
    good = found(readings(*rows))
    assert "under 1 of 1 other readings" in good.evidence
    assert "(musat/readings): torch (9,000 steps)" in good.evidence
    assert "more" not in good.evidence


def test_what_holds_at_the_calmest_checkpoint_alone_is_not_said_to_hold() -> None:
    (claim,) = (claim for claim in CLAIMS if claim.id == BELOW)
    rows = [with_(row, final=[0.02] * 3, clean=0.005) for row in tables()[ABC]]
    calm = claim.judge([Table(ABC, "full", tuple(rows)), readings(*reading_rows("torch"))])
    assert calm.verdict == "under a reading"
    assert "as we take the paper" not in calm.evidence


def test_of_what_holds_as_we_take_the_paper_the_other_readings_are_told() -> None:
    (claim,) = (claim for claim in CLAIMS if claim.id == "musat/abc-circuit-loss")
    known = Table(ABC, "full", tuple(tables()[ABC]))
    alone = claim.judge([known])
    assert "reading" not in alone.evidence
    bad = [with_(row, ideal=0.5) for row in reading_rows("torch")]
    both = claim.judge([known, readings(*bad, *reading_rows("fan-in"))])
    assert (both.verdict, both.ours) == ("reproduced", alone.ours)
    assert both.evidence == (
        f"{alone.evidence}; it holds as we take the paper (gpt2 constant token base-10000); it "
        "holds with every seed under 1 of 2 other readings tried with 3 seeds each (musat/readings)"
    )


def test_less_of_the_paper_as_we_take_it_is_no_other_reading() -> None:
    shorter = [with_(row, steps=3_000) for row in reading_rows(PaperReading().name)]
    assert found(readings(*shorter)) == found()


def test_a_reading_of_too_few_models_does_not_count() -> None:
    assert found(readings(*reading_rows("fan-in")[:2])) == found()


def test_that_no_reading_helps_is_said() -> None:
    rows = [with_(row, final=[0.02] * 3, clean=0.02) for row in reading_rows("fan-in")]
    none = found(readings(*rows))
    assert none.verdict == "not reproduced"
    assert none.evidence.endswith(
        "under 0 of 1 other readings tried with 3 seeds each (musat/readings)"
    )


def test_a_reading_of_two_lengths_is_one_reading() -> None:
    short = [with_(row, final=[0.02] * 3, clean=0.02) for row in reading_rows("fan-in")]
    longer = [with_(row, steps=9_000) for row in reading_rows("fan-in")]
    good = found(readings(*short, *longer))
    assert "under 1 of 1 other readings" in good.evidence
    assert good.evidence.endswith("(musat/readings): fan-in (9,000 steps)")
    for steps in (9_000, 3_000):  # the longer ones decide, whichever were tried first
        worse = [with_(row, steps=steps) for row in short]
        better = [with_(row, steps=12_000 - steps) for row in reading_rows("fan-in")]
        both = found(readings(*better, *worse))
        assert both.verdict == ("not reproduced" if steps == 9_000 else "under a reading")
    none = found(readings(*short, *[with_(row, steps=9_000) for row in short]))
    assert none.evidence.endswith(
        "under 0 of 1 other readings tried with 3 seeds each (musat/readings)"
    )


def test_what_luck_could_do_is_asked_of_models_that_were_trained_equally_long() -> None:
    words = "agree as well with probability"
    equal = found(readings(*reading_rows("fan-in")))
    assert equal.evidence.endswith(f"{words} 0.25 (2 readings, 6,400 steps)")  # 2 of 8 ways
    longer = [with_(row, steps=9_000) for row in reading_rows("fan-in")]
    assert words not in found(readings(*longer)).evidence  # it may be their length
    other = [with_(row, steps=9_000, final=[0.02] * 3) for row in reading_rows("torch")]
    both = found(readings(*longer, *other, *reading_rows("cosine")[:2]))
    assert both.evidence.endswith(f"{words} 0.25 (2 readings, 9,000 steps)")


def test_readings_are_compared_at_the_length_that_most_of_them_have() -> None:
    short, longer = reading_rows("fan-in"), [with_(r, steps=9_000) for r in reading_rows("fan-in")]
    ours = [with_(row, steps=9_000) for row in reading_rows("fan-in shuffled")]
    known = tried([readings(*short, *longer, *ours)])
    assert usual_steps(known) == 9_000  # as many readings of the paper, and longer
    known += tried([readings(*reading_rows("torch"))])
    assert [one.reading for one in comparable(known, usual_steps(known))] == ["fan-in", "torch"]


def test_what_holds_anyway_needs_no_reading() -> None:
    assert judged("abc-below-0.01", tables()).verdict == "reproduced"


def test_facts_that_stand_shuffled_are_no_reading() -> None:
    assert found(readings(*reading_rows("fan-in shuffled"))) == found()


def test_the_model_for_which_most_claims_hold_is_the_nearest() -> None:
    better, worse = reading_rows("fan-in")[0], reading_rows("torch")[0]
    worse = with_(worse, final=[0.4] * 3, clean=0.4)
    lower = with_(reading_rows("cosine")[0], final=[0.001] * 3)
    ours = with_(reading_rows("shuffled")[0], final=[0.0001] * 3)
    for rows, expected in (
        ((worse, better), "fan-in"),
        ((worse, better, lower), "cosine"),
        ((worse, ours), "torch"),
    ):
        one, row = nearest(tried([readings(*rows)]), list(JUDGES.values()))
        assert one.reading == expected
        assert row in rows
