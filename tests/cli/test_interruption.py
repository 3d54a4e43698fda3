"""Ctrl-C is one line and 130, whatever a library makes of it; a bug is a traceback and 70."""

import signal
import sys
import time

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


def test_each_end_has_its_line_and_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Interrupted("stopped by SIGHUP at step 7")
    stopped.exit_code = 129
    failed = ImportError("numpy failed to import")  # what an import makes of Ctrl-C
    for error, ctrl_c, code, line in (
        (KeyboardInterrupt(), False, 130, "hopscope: interrupted\n"),
        (RuntimeError("Query interrupted"), False, 130, "hopscope: interrupted\n"),
        (InterruptException("x"), False, 130, "hopscope: interrupted\n"),
        (failed, True, 130, "hopscope: interrupted\n"),
        (stopped, False, 129, "hopscope: stopped by SIGHUP at step 7\n"),
    ):
        assert told(monkeypatch, error, ctrl_c) == code
        assert capsys.readouterr().err == line
    assert told(monkeypatch, failed) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("ImportError: numpy failed to import\n")


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
