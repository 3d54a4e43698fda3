"""What is printed never steers the terminal; and a command ends in one line, whatever ended it."""

import importlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from calling import Captured, Patch, Said
from rich.cells import cell_len

from hopscope.cli import main as cli
from hopscope.cli import output
from hopscope.cli.main import main, noting_interrupts
from hopscope.cli.tables import table
from hopscope.configs import Experiment
from hopscope.errors import Interrupted, OutputLost
from hopscope.store import Store
from hopscope.training import train

NARROW = (
    "show gallery/demo", "circuit gallery/demo", "compare gallery/demo gallery/planted", "gallery",
    "papers list", "papers claims", "papers claims d-loss", "presets demo", "depth --hops 5",
)  # fmt: skip


def test_no_line_is_wider_than_the_terminal(root: Path, said: Said, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for words in NARROW:
        assert max(map(cell_len, said(*words.split()).splitlines())) <= 60, words


HOSTILE = "a\x1b]0;title\x07\x1b[31m\x9b31m\r\nb\u202ec\u2028\ud800"


def test_what_would_steer_a_terminal_is_shown() -> None:
    shown = output.printable(HOSTILE)
    assert shown.isprintable()
    assert shown == r"a\x1b]0;title\x07\x1b[31m\x9b31m\r\nb\u202ec\u2028\ud800"
    assert output.printable("× – layers\u00a0 §7 日本") == "× – layers\u00a0 §7 日本"


def test_markup_and_names_of_signs_are_text(capsys: Captured) -> None:
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


def test_a_stream_that_knows_few_signs_gets_others(monkeypatch: Patch) -> None:
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


def test_a_closed_pipe_is_no_error_as_a_full_disk_is(
    tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    monkeypatch.setattr(sys, "argv", ["hopscope", "presets"])
    for number, code, lines in ((28, 2, 1), (32, 0, 0)):
        monkeypatch.setattr(sys, "stdout", Full(number))
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == code
        assert capsys.readouterr().err.count("\n") == lines
    saved = tmp_path / "losses.csv"  # asked for beside what nobody reads
    evaluate = ["evaluate", "gallery/demo", "--examples", "8", "--save", str(saved)]
    monkeypatch.setattr(sys, "argv", ["hopscope", *evaluate])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert saved.read_text().count("\n") == 4
    monkeypatch.setattr(sys, "stdout", Full(28))
    with pytest.raises(OutputLost, match="cannot write the output: No space left on device"):
        output.say("x")


def told(monkeypatch: Patch, error: BaseException, ctrl_c: bool = False) -> int:
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


def test_each_end_has_its_line_and_its_exit_code(monkeypatch: Patch, capsys: Captured) -> None:
    stopped = Interrupted("stopped by SIGHUP at step 7")
    stopped.exit_code = 129
    failed = ImportError("numpy failed to import")  # what an import makes of Ctrl-C
    much = "this takes more memory than there is (Unable to allocate): take smaller numbers"
    with pytest.raises(RuntimeError) as torchs:
        torch.empty(2**60)
    for error, ctrl_c, code, line in (
        (KeyboardInterrupt(), False, 130, "hopscope: interrupted\n"),
        (RuntimeError("Query interrupted"), False, 130, "hopscope: interrupted\n"),
        (failed, True, 130, "hopscope: interrupted\n"),
        (stopped, False, 129, "hopscope: stopped by SIGHUP at step 7\n"),
        (MemoryError("Unable to allocate\nmore"), False, 1, f"hopscope: {much}\n"),
    ):
        assert told(monkeypatch, error, ctrl_c) == code
        assert capsys.readouterr().err == line
    assert told(monkeypatch, torchs.value) == 1
    assert "than there is (can't allocate memory: you tried to allocate" in capsys.readouterr().err
    assert told(monkeypatch, failed) == 70
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("ImportError: numpy failed to import\n")


def test_one_that_a_finaliser_swallows_comes_again() -> None:
    class Finalised:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def work() -> None:
        it = Finalised()
        del it
        time.sleep(30)

    begun = time.monotonic()
    with noting_interrupts(), pytest.raises(KeyboardInterrupt):
        work()
    assert time.monotonic() - begun < 20


BEGINS = "print('begins', flush=True)"
"""Says so when the command, which knows what Ctrl-C means, is there: Python itself does not."""
HELP = ("papers", "claims", "--help")


def started(
    *arguments: str, stdout: int | None = subprocess.PIPE, before: str = ""
) -> subprocess.Popen[str]:
    called = f"from hopscope.cli.main import main; import sys; sys.argv[1:] = {arguments!r}"
    return subprocess.Popen(
        [sys.executable, "-c", f"{called}\n{before}\nmain()"],
        stdout=stdout, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Its exit code, and the lines on stderr."""
    _, err = process.communicate(timeout=120)
    return process.returncode, err.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_stops_no_training(root: Path, tiny: Experiment) -> None:
    (root / "tiny.json").write_text(tiny.canonical_json())
    with Path("/dev/full").open("w") as full:
        code, err = ended(started("train", "tiny.json", stdout=full.fileno()))
        assert code == 2
        lost = "cannot write the output: No space left on device"
        assert err == [
            f"hopscope: the training continues without a display ({lost})",
            f"hopscope: {lost}",
        ]
        assert Store().find(tiny.run_name()).manifest.complete
        line = ["hopscope: cannot write the output: No space left on device"]
        for command in (("runs",), ("sql", "select 1 as a"), ("--help",), HELP):
            assert ended(started(*command, stdout=full.fileno())) == (2, line)


@pytest.mark.slow
def test_tables_end_quietly_when_their_reader_has_enough(root: Path, tiny: Experiment) -> None:
    train(tiny)
    for command in (("runs",), ("sql", "select * from range(100000)"), ("papers", "claims"), HELP):
        reading, writing = os.pipe()
        process = started(*command, stdout=writing)
        os.close(writing)
        os.close(reading)
        code, err = ended(process)
        told = [line for line in err if "these results came with version" not in line]
        assert (code, told) == (0, []), command


@pytest.mark.slow
def test_ctrl_c_at_any_moment_is_one_line() -> None:
    for delay in (0.1, 0.7, 1.5, 2.5):
        process = started("attention", "gallery/demo", "--examples", "50000", before=BEGINS)
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        code, err = ended(process)
        assert (code, err) == (130, ["hopscope: interrupted"]), delay


def test_ctrl_c_while_torch_is_imported_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its C++ code calls Python, and would end the process. No other import is waited for."""
    lines = "import signal", "signal.raise_signal(signal.SIGINT)", "whole = True"
    (tmp_path / "interrupted_script.py").write_text("\n".join(lines))
    lines = "__name__ = 'torch.some'", *lines
    (tmp_path / "interrupted_import.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    with cli.noting_interrupts() as came:
        module = importlib.import_module("interrupted_import")
        with pytest.raises(KeyboardInterrupt):
            time.sleep(60)
        with pytest.raises(KeyboardInterrupt):
            importlib.import_module("interrupted_script")
    assert module.whole
    assert came == [signal.SIGINT] * 3
