"""./demo and environment.sh, with a hopscope that only says what it was asked."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECIPE = ("pyproject.toml", "constraints.txt", "hopscope/models/csrc/affine.h")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone whose environment has been built."""
    for name in ("demo", "environment.sh", *RECIPE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    recipe = b"".join((tmp_path / name).read_bytes() for name in RECIPE)
    (tmp_path / ".venv" / ".recipe").write_text(hashlib.sha256(recipe).hexdigest())
    (programs / "python").symlink_to(sys.executable)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"')
    (programs / "hopscope").write_text('#!/bin/sh\necho asked: "$@"\n')
    (programs / "hopscope").chmod(0o700)
    return tmp_path


def test_words_behind_demo_are_for_the_command(clone: Path) -> None:
    done = subprocess.run(
        [clone / "demo", "--seed", "3"], check=True, capture_output=True, text=True
    )
    assert done.stdout == "asked: demo --seed 3\n"


def test_the_shell_in_which_it_is_sourced_lives_on(clone: Path) -> None:
    command = "source ./environment.sh; echo $?"
    done = subprocess.run(
        ["bash", "-c", command], cwd=clone, env=os.environ | {"PYTHON": "false"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "2\n"
    assert "expected Python 3.11 or later: set PYTHON" in done.stderr
