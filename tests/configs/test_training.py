"""What happens at which step, known before the start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.configs import Training
from hopscope.configs.training import FINAL_STEPS


def test_checkpoints_are_known_before_the_start() -> None:
    training = Training(steps=12, checkpoint_every=5, checkpoint_at=(3, 10, 12))
    assert training.checkpoint_steps() == (0, 3, 5, 10, 12)


@given(st.integers(1, 500), st.integers(1, 200), st.integers(1, 200))
def test_the_last_steps_and_every_checkpoint_are_validated(
    steps: int, every: int, checkpoint_every: int
) -> None:
    training = Training(steps=steps, validate_every=every, checkpoint_every=checkpoint_every)
    validated = training.validation_steps()
    assert set(training.checkpoint_steps()) <= validated
    assert set(range(max(0, steps - FINAL_STEPS) + 1, steps + 1)) <= validated
    assert set(range(0, steps, every)) <= validated
    assert max(validated) == steps


def test_the_rate_warms_up_and_follows_its_schedule() -> None:
    constant = Training(steps=100, lr=1e-3, warmup=4)
    assert [constant.rate(step) for step in (0, 1, 3, 4, 99)] == pytest.approx(
        [0.25e-3, 0.5e-3, 1e-3, 1e-3, 1e-3]
    )
    cosine = Training(steps=104, lr=1e-3, warmup=4, schedule="cosine")
    assert cosine.rate(4) == pytest.approx(1e-3)
    assert cosine.rate(54) == pytest.approx(0.5e-3)
    assert cosine.rate(104) == pytest.approx(0)


def test_what_lies_behind_the_last_step_is_said() -> None:
    assert Training(steps=100, warmup=100, checkpoint_at=(100,)).warnings() == []
    assert Training(steps=100, warmup=101, lr=1e-3).warnings() == [
        "warm-up takes 101 steps and the training has 100: it ends before its rate is 0.001"
    ]
