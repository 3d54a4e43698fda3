"""Errors end the command with their exit code, and a notebook with a line."""

import inspect

import pytest

import hopscope
from hopscope import errors
from hopscope.errors import ConfigError, Diverged, HopscopeError, Interrupted


def test_every_error_has_its_exit_code() -> None:
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, HopscopeError):
            assert kind.exit_code == (3 if kind is Diverged else 2), kind


def test_an_interruption_is_caught_by_no_loop_over_trainings() -> None:
    assert not issubclass(Interrupted, Exception)
    shown = Interrupted("stopped at step 3")._render_traceback_()
    assert shown == ["Interrupted: stopped at step 3"]


def test_a_notebook_shows_ones_own_line_and_the_text() -> None:
    with pytest.raises(ConfigError) as caught:
        hopscope.load(name="gallery/demo", seed=7)
    *own, said = caught.value._render_traceback_()
    assert said == "ConfigError: seed is 7; gallery/demo has the seeds 0"
    assert own[0].endswith(': hopscope.load(name="gallery/demo", seed=7)')
    assert not any("Study(" in line or "opened(" in line for line in own)
