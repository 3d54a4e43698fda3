"""What an eye would see in maps."""

from musat_rows import ABC, judged, maps_of, tables, with_

from hopscope.papers.musat.circuit_claims import seen_by_eye


def test_an_eye_sees_heads_that_look_at_another_role() -> None:
    (row, *_) = tables()[ABC]
    assert seen_by_eye(row) == [(2, 0)]
    assert seen_by_eye(with_(row, maps=maps_of([0.5, 0.4, 0.1]))) == []
    itself = [[[list(sources) for sources in head] for head in layer] for layer in row.maps.own]
    for role in range(len(row.maps.roles)):
        itself[0][0][role][role] = 0.9
    assert seen_by_eye(with_(row, maps={**row.maps.model_dump(), "own": itself})) == [(2, 0)]
    assert "would call 11, 11, 11 idle" in judged("abc-mostly-idle", tables()).evidence
