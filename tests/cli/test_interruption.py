"""Ctrl-C is one line and 130, whatever a library makes of it; a bug is a traceback and 70."""

import signal
import sys
import time
from contextlib import suppress

import pytest

from hopscope.cli import main as cli
from hopscope.cli.interruption import noted_interruption
from hopscope.errors import Interrupted


def told(monkeypatch: pytest.MonkeyPatch, error: BaseException, ctrl_c: bool = False) -> int:
    """The exit code of a command that ends with this error."""

    def command(_: object) -> int:
        if ctrl_c:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        raise error

    monkeypatch.setattr(cli, "run", command)
    monkeypatch.setattr(sys, "argv", ["hopscope"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return int(stop.value.code or 0)


class InterruptException(Exception):
    """What DuckDB raises."""


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), RuntimeError("Query interrupted"), InterruptException("x")]
)
def test_an_interruption_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    assert told(monkeypatch, error) == 130
    assert capsys.readouterr().err == "hopscope: interrupted\n"


def test_what_an_import_makes_of_it_is_one_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(monkeypatch, ImportError("numpy failed to import"), ctrl_c=True) == 130
    assert capsys.readouterr().err == "hopscope: interrupted\n"
    assert told(monkeypatch, ImportError("numpy failed to import")) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("ImportError: numpy failed to import\n")


def test_a_training_says_where_it_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = Interrupted("stopped by SIGHUP at step 7")
    error.exit_code = 129
    assert told(monkeypatch, error) == 129
    assert capsys.readouterr().err == "hopscope: stopped by SIGHUP at step 7\n"


def test_whoever_listened_before_listens_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with noted_interruption() as noted:
        assert signal.getsignal(signal.SIGINT) is not before
        assert not noted.explains(ValueError("x"))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert noted.explains(ValueError("x"))
    assert signal.getsignal(signal.SIGINT) is before


def test_one_that_a_finaliser_swallows_comes_again() -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def work() -> None:
        it = Finalised()
        del it
        time.sleep(30)

    begun = time.monotonic()
    with noted_interruption(), pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - begun < 20


def test_an_interruption_ends_loops_that_go_on_after_any_error() -> None:
    def stopped() -> None:
        raise Interrupted("stopped by SIGINT at step 3")

    def each() -> None:
        with suppress(Exception):
            stopped()

    with pytest.raises(KeyboardInterrupt, match="stopped by SIGINT at step 3"):
        each()
    shown = Interrupted("stopped at step 3")._render_traceback_()
    assert shown == ["Interrupted: stopped at step 3"]  # all that a notebook shows
