"""What may come next on a line; and that a shell is told."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from reproducing import Said

from hopscope.cli import complete, completion
from hopscope.configs import Experiment
from hopscope.papers import presets
from hopscope.papers.registry import PAPERS
from hopscope.store import Store, gallery

Next = Callable[..., list[str]]


@pytest.fixture(scope="module")
def script() -> str:
    return complete.write_table(completion.table())


@pytest.fixture
def after(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Next:
    """What may come after some words, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOPSCOPE_STORE", raising=False)
    table = complete.read_table(script.splitlines())
    return lambda *words: complete.candidates(words, table)


def test_what_comes_next(after: Next) -> None:
    for line, expected in {
        "ll": "llm",
        "llm ": "bench export heads mechanism show",
        "llm show --fi": "--figure",
        "completion ": "bash fish zsh",
        "train musat/transformer-a --model.lay": "--model.layers",
        "train demo --device ": "auto cpu cuda",
        "train demo --device = c": "cpu cuda",
        "train chen/paper --model.lay": "",
        "train demo --seeds 0 1 --dev": "--device",
        "circuit export x --format ed": "edges",
        "maps x --figure ": "",  # a file: the shell knows better
        "maps x --examples ": "",
        "maps x --no-such-flag": "",
        "nothing of this": "",
        "--h": "--help",
    }.items():
        assert after(*line.split(" ")) == expected.split(), line


def test_names_of_all_kinds(after: Next) -> None:
    assert after("train", "") == after("presets", "") == sorted(presets())
    assert after("claims", "") == sorted(PAPERS.claims)
    assert after("reproduce", "") == sorted(PAPERS.targets)
    assert after("gallery", "copy", "") == gallery.names()
    assert "smollm2-135m" in after("llm", "bench", "--model", "")


def test_runs_are_those_of_the_store(
    after: Next, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = [f"gallery/{name}" for name in gallery.names()]
    assert after("maps", "") == shipped  # and no word about a store that is not there
    for root, seed in (("runs", 1), ("elsewhere", 2), ("named", 3)):
        Store(root).create(tiny.model_copy(update={"seeds": (seed, seed + 9)}))
    Path("runs/notes").mkdir()
    Path("runs/.new-1-x").mkdir()
    Path("runs/.new-1-x/manifest.json").write_text("{}")
    assert after("maps", "") == sorted([*Store().names(), *shipped])
    monkeypatch.setenv("HOPSCOPE_STORE", "elsewhere")
    assert after("show", "r") == Store("elsewhere").names()
    assert after("show", "--store", "named", "r") == Store("named").names()
    assert after("train", "demo", "--prolong", "r") == Store("elsewhere").names()
    (name,) = Store("elsewhere").names()
    Store("elsewhere").tag(name, "first")
    assert after("show", "fi") == ["first"]
    for text in ("", "[1]", '{"runs": [1]}', '{"runs": {"x": 1}}', '{"runs": {"x": [1]}}'):
        Path("elsewhere/tags.json").write_text(text)
        assert after("show", "fi") == []
    assert after("rm", name, "r") == [name]  # of which there may be several
    assert name not in after("maps", name, "")


def test_a_script_holds_the_table(script: str, said: Said) -> None:
    assert not {"'", "\\", "`"} & set(script)  # which would end a quotation
    for shell in ("bash", "zsh", "fish"):
        out = said("completion", shell)
        assert script in out
        assert "TABLE" not in out


def test_bash_is_told(tmp_path: Path, script: str) -> None:
    (tmp_path / "hopscope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hopscope "$@"\n')
    (tmp_path / "hopscope").chmod(0o755)
    (tmp_path / "script").write_text(completion.SCRIPTS["bash"].replace("TABLE", script))
    code = "source script; COMP_WORDS=(hopscope maps gallery/pl); COMP_CWORD=2; _hopscope\n"
    code += 'echo "${COMPREPLY[@]}"; COMP_WORDS=(hopscope ""); COMP_CWORD=1; _hopscope\n'
    code += 'echo "${COMPREPLY[@]}"'
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        ["bash", "-c", code],
        cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "gallery/planted"
    assert {"maps", "llm", "train"} <= set(second.split())
    assert "complete" not in second.split()
