"""What is printed is shown, and never steers the terminal; nor does a stream that fails."""

import io
import sys

import pytest

from hopscope.cli import output
from hopscope.cli.main import main
from hopscope.cli.tables import table
from hopscope.errors import OutputLost

HOSTILE = "a\x1b]0;title\x07\x1b[31m\x9b31m\r\nb\u202ec\u2028\ud800"


def test_what_would_steer_a_terminal_is_shown() -> None:
    shown = output.printable(HOSTILE)
    assert shown.isprintable()
    assert shown == r"a\x1b]0;title\x07\x1b[31m\x9b31m\r\nb\u202ec\u2028\ud800"
    assert output.printable("× – layers\u00a0 §7 日本") == "× – layers\u00a0 §7 日本"


def test_markup_and_names_of_signs_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["[/foo] x", "[red]bold[/red]", "root:x:0", HOSTILE]
    table(["[b]"], [[cell] for cell in cells])
    output.say("[bold]run", HOSTILE)
    output.warn(f"no run {HOSTILE}")
    said = capsys.readouterr()
    assert said.out.splitlines()[:4] == ["[b]", *cells[:3]]
    assert said.out.splitlines()[5] == "[bold]run"
    for line in (said.out + said.err).splitlines():
        assert line.isprintable()
    assert said.err.count("\n") == 1


def test_a_stream_that_knows_few_signs_gets_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("ascii", "latin-1"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        output.forgive_encodings()
        output.say("loss ≤ 1 … ▁▂")
        sys.stdout.flush()
        assert raw.getvalue().decode(encoding) == "loss ? 1 ? ??\n"


class Full(io.StringIO):
    """A stream on a full device."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, "No space left on device")


def test_a_full_device_is_an_error_and_a_closed_pipe_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hopscope", "presets"])
    for number, code, lines in ((28, 2, 1), (32, 0, 0)):
        monkeypatch.setattr(sys, "stdout", Full(number))
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == code
        assert capsys.readouterr().err.count("\n") == lines
    monkeypatch.setattr(sys, "stdout", Full(28))
    with pytest.raises(OutputLost, match="cannot write the output: No space left on device"):
        output.say("x")


def test_nobody_is_told_where_stderr_is_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no error, and is not said in the place of the output instead."""
    for closed in (Full(28), None):
        monkeypatch.setattr(sys, "stderr", closed)
        output.warn("nobody hears it")
    assert capsys.readouterr().out == ""
