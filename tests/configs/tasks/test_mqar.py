import math

import pytest

from hopscope.configs import MQAR, Experiment
from hopscope.errors import ConfigError


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"pairs": 1}, "MQAR.pairs: Input should be greater than or equal to 2, got 1"),
        ({"queries": 0}, "MQAR.queries: Input should be greater than or equal to 1, got 0"),
        ({"queries": 5}, "queries is 5; no pair is asked for twice, so 4 pairs have at most 4"),
        ({"length": 15}, "length is 15; 4 pairs and 4 queries, .* need length >= 16"),
        ({"length": 3}, "length is 3; 4 pairs and 4 queries, .* need length >= 16"),
        ({"length": 11, "queries": 2}, "4 pairs and 2 queries, .* need length >= 12"),
        ({"alphabet": 7}, "alphabet is 7, half of it keys; 4 pairs .* need alphabet >= 8"),
        ({"power": 0}, "MQAR.power: Input should be greater than 0, got 0"),
        ({"power": 1.5}, "MQAR.power: Input should be less than or equal to 1, got 1.5"),
        ({"filler": "zero"}, "'random' or 'blank', got 'zero'"),
        ({"hops": 2}, "MQAR.hops: unknown field"),
    ],
)
def test_sizes_that_cannot_be_are_refused_on_one_line(fields: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        MQAR(**fields)
    assert "\n" not in str(caught.value)


def test_the_smallest_that_can_be() -> None:
    task = MQAR(pairs=4, alphabet=8, length=16)
    assert (task.asked, task.keys, task.slots) == (4, 4, 4)
    assert MQAR(pairs=4, alphabet=8, length=12, queries=2).slots == 2


def test_a_filler_of_its_own_is_one_token_more() -> None:
    assert MQAR(alphabet=10).interface().inputs == 10
    assert MQAR(alphabet=10, filler="blank").interface().inputs == 11


def test_any_value_seen_is_the_best_guess() -> None:
    assert MQAR(pairs=6).guess() == pytest.approx(math.log(6))


def test_a_run_is_named_for_the_task_and_read_back() -> None:
    experiment = Experiment(task=MQAR(pairs=3, queries=2))
    assert experiment.run_name().startswith("mqar-l4h4-")
    assert Experiment.from_json(experiment.canonical_json()) == experiment
