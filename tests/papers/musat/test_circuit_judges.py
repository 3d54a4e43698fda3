"""What an eye would see in maps; what steps that heads share are worth."""

from musat_rows import ABC, PLANTED, D, judged, maps_of, tables, with_

from hopscope.circuits.parts import Estimate, Shared
from hopscope.facts import Role
from hopscope.papers.musat.circuit_judges import seen_by_eye, without_steps


def test_an_eye_sees_heads_that_look_at_another_role() -> None:
    (row, *_) = tables()[ABC]
    assert seen_by_eye(row) == [(2, 0)]
    assert seen_by_eye(with_(row, maps=maps_of([0.5, 0.4, 0.1]))) == []
    itself = [[[list(sources) for sources in head] for head in layer] for layer in row.maps.own]
    for role in range(len(row.maps.roles)):
        itself[0][0][role][role] = 0.9
    assert seen_by_eye(with_(row, maps={**row.maps.model_dump(), "own": itself})) == [(2, 0)]
    assert "would call 11, 11, 11 idle" in judged("abc-mostly-idle", tables()).evidence


def test_steps_that_heads_share_are_told_beside_single_removals() -> None:
    rows = tables()
    assert "share" not in judged("abc-single-removals", rows).evidence
    steps = [
        Shared(
            reader=Role("query"), source=Role("value", fact), heads=((1, 0), (2, 0)),
            cost=Estimate(mean=loss, low=loss, high=loss),
        )
        for fact, loss in ((0, 0.5), (1, 0.25))
    ]  # fmt: skip
    circuit = PLANTED.model_copy(update={"shared": tuple(steps)}).to_dict()
    for target in (ABC, D):
        rows[target][0] = with_(rows[target][0], circuit=circuit)
        assert without_steps(rows[target][0]) == [0.5, 0.25]
    evidence = judged("abc-single-removals", rows).evidence
    assert evidence.endswith("steps that heads share, without all of them: 0.25 … 0.50")
    assert (
        "(circuit 0.050, without shared steps 0.25 … 0.50)"
        in judged("d-single-removals", rows).ours
    )
