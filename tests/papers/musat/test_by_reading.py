"""Claims on transformer D, under each reading of what it was trained on."""

from musat_rows import D, bent, judged, tables, with_


def test_a_reading_holds_if_all_its_seeds_do() -> None:
    rows = tables()
    rows[D].append(with_(rows[D][0], seed=1, final=[0.2] * 4))
    found = judged("d-loss", rows)
    assert found.verdict == "under a reading"
    assert found.ours == (
        "262,144 examples: holds for 1 of 2 models (95 %: 0.09 … 0.91); seed 0: 0.030; "
        "seed 1: 0.200; 2,048 examples: holds for 1 of 1 models (95 %: 0.21 … 1.00); seed 0: 0.030"
    )
    assert "; holds with 2,048 examples; " in found.evidence
    assert found.evidence.endswith("probability 1")  # no way to deal is worse


def test_initial_weights_are_a_reading_of_their_own() -> None:
    rows = bent(D, 0, final=[0.2] * 4)
    rows[D].append(with_(tables()[D][0], init="fan-in"))
    del rows[D][1]
    found = judged("d-loss", rows)
    assert found.verdict == "under a reading"
    weights = "262,144 examples and initial weights of 1/√inputs"
    assert f"; holds with {weights}; " in found.evidence
    assert found.evidence.endswith("would agree as well with probability 1")  # single models


def test_a_model_of_two_lengths_counts_once_as_the_longer() -> None:
    rows = tables()
    shorter = with_(rows[D][0], steps=4_000, final=[0.2] * 4)
    rows[D].insert(0, shorter)
    assert judged("d-loss", rows).ours == judged("d-loss", tables()).ours
    rows[D][0] = with_(shorter, steps=8_000)
    assert judged("d-loss", rows).ours.startswith(
        "262,144 examples: holds for 0 of 1 models (95 %: 0.00 … 0.79); seed 0: 0.200; "
    )
