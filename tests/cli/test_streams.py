"""Commands in processes of their own, whose output nobody reads, or whose terminal is gone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.store import Store
from hopscope.training import train

CALL = "from hopscope.cli.main import main; main()"
TOLD = "from hopscope.cli.main import main; print('begins', flush=True); main()"
"""Says so when the command, which knows what Ctrl-C means, is there: Python itself does not."""
SLOWLY = """
import time
import hopscope.cli.display as display
display.LINE_SECONDS = 0.0
before = display.LineDisplay.advance
def advance(self, step, latest):
    time.sleep(0.05)
    before(self, step, latest)
display.LineDisplay.advance = advance
"""
"""A line for each step, and time to do something between two of them."""
HELP = ("claims", "--help")


@pytest.fixture(autouse=True)
def file(root: Path, monkeypatch: pytest.MonkeyPatch, tiny: Experiment) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    (root / "tiny.json").write_text(tiny.canonical_json())


def started(
    *arguments: str, stdout: int | None = subprocess.PIPE, call: str = CALL
) -> subprocess.Popen[str]:
    code = f"import sys; sys.argv = ['hopscope', *{arguments!r}]\n{SLOWLY}\n{CALL}"
    if arguments[0] != "train":
        code = f"import sys; sys.argv = ['hopscope', *{arguments!r}]\n{call}"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Its exit code, and the lines on stderr."""
    _, err = process.communicate(timeout=120)
    return process.returncode, err.splitlines()


@pytest.mark.slow
def test_a_training_goes_on_when_its_reader_has_enough(tiny: Experiment) -> None:
    process = started("train", "tiny.json")
    assert process.stdout is not None
    assert "step 0 of 12" in process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    code, err = ended(process)
    assert (code, len(err)) == (0, 1)
    assert "the training goes on, and nothing more is shown of it (Broken pipe)" in err[0]
    assert Store().find(tiny.run_name()).manifest.complete


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_stops_no_training(tiny: Experiment) -> None:
    with Path("/dev/full").open("w") as full:
        code, err = ended(started("train", "tiny.json", stdout=full.fileno()))
        assert code == 2
        assert [line.split(",")[0] for line in err] == [
            "hopscope: the training goes on",
            "hopscope: cannot write the output: No space left on device",
        ]
        assert Store().find(tiny.run_name()).manifest.complete
        line = ["hopscope: cannot write the output: No space left on device"]
        for command in (("runs",), ("sql", "select 1 as a"), ("--help",), HELP):
            assert ended(started(*command, stdout=full.fileno())) == (2, line)


@pytest.mark.slow
def test_tables_end_quietly_when_their_reader_has_enough(tiny: Experiment) -> None:
    train(tiny)
    for command in (("runs",), ("sql", "select * from range(100000)"), ("claims",), HELP):
        reading, writing = os.pipe()
        process = started(*command, stdout=writing)
        os.close(writing)
        os.close(reading)
        code, err = ended(process)
        told = [line for line in err if "these results came with version" not in line]
        assert (code, told) == (0, []), command


@pytest.mark.slow
def test_a_training_whose_terminal_is_closed_leaves_a_checkpoint(
    tiny: Experiment,
) -> None:
    process = started("train", "tiny.json")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    code, err = ended(process)
    assert code == 129
    assert "hopscope: stopped by SIGHUP at step" in err[-1]
    run = Store().find(tiny.run_name())
    assert not run.manifest.complete
    assert run.files("checkpoints/optimiser-")


@pytest.mark.slow
def test_ctrl_c_at_any_moment_is_one_line() -> None:
    for delay in (0.1, 0.7, 1.5, 2.5):
        process = started("maps", "gallery/demo", "--examples", "50000", call=TOLD)
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        code, err = ended(process)
        assert (code, err) == (130, ["hopscope: interrupted"]), delay


def test_names_of_folders_do_not_steer(tiny: Experiment) -> None:
    run = train(tiny).folder
    run.path.rename(run.path.with_name("[bold]a\x1b]0;title\x07b"))
    for command in (("runs",), ("show", "nope"), ("rm", "nope"), ("sql", "select name from runs")):
        process = started(*command)
        out, err = process.communicate(timeout=60)
        said = out + err
        assert "\x1b" not in said, command
        assert r"[bold]a\x1b]0;title\x07b" in said, command
