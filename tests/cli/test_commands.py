"""The table of commands from one end to the other: help, pages, and what a shell completes."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import Captured, Patch, Said, Say

import hopscope.configs
from hopscope.cli import complete, completion, reference
from hopscope.cli.commands import COMMANDS, GROUPS, HIDDEN, actions, always_there, function_of
from hopscope.cli.fields import CONFIGS, meanings, page
from hopscope.cli.flags import arguments_of
from hopscope.cli.main import run
from hopscope.configs import Config, Experiment, Model, Retrieval, Training
from hopscope.errors import ConfigError
from hopscope.papers import presets
from hopscope.papers.registry import PAPERS
from hopscope.store import Store, gallery

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_is_whole(table: complete.Table, capsys: Captured) -> None:
    for name, command in COMMANDS.items():
        assert callable(function_of(command))
        form = always_there(command)
        assert form.__doc__
        assert not form.__doc__.startswith(f"{form.__name__}(")  # what Python writes
        words = name.split(" ")
        for count, word in enumerate(words):
            assert complete.candidates([*words[:count], word[:2]], table).count(word) == 1, name
        arguments = arguments_of(command)
        for argument in arguments:
            assert argument.help.split(" (")[0], (name, argument)
            assert "None" not in argument.value
            assert not argument.value.startswith(("{[", "[["))
            for flag in argument.flags:
                assert flag in complete.candidates([*words, flag[:3]], table)
        with contextlib.suppress(SystemExit):
            run([*words, "--help"])
        assert f"usage: hopscope {name}" in capsys.readouterr().out


def test_help_has_every_name_once(capsys: Captured) -> None:
    assert sum(len(group.commands) for group in GROUPS) == len(COMMANDS)
    assert not {*COMMANDS} & {*HIDDEN}
    assert all((DOCS / group.page).exists() for group in GROUPS)
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert max(map(len, out.splitlines())) <= 100
    for head in {name.split(" ")[0] for name in COMMANDS if " " in name} - {*COMMANDS}:
        assert run([head, "--help"]) == 0
        out = capsys.readouterr().out
        assert all(f"\n  {action.name} " in out for action in actions(head))


def test_pages_are_what_commands_and_configs_say() -> None:
    """`python -m hopscope.cli.reference docs/reference.md` renews the one; fields likewise."""
    assert (DOCS / "reference.md").read_text() == reference.page()
    assert (DOCS / "fields.md").read_text() == page()


def test_other_words_mean_the_same(said: Said) -> None:
    for words, same in {
        "gallery": "gallery list", "help": "--help", "help llm": "llm --help", "-V": "--version",
    }.items():  # fmt: skip
        shown = said(*words.split())
        assert shown == said(*same.split())
        assert "hopscope" in shown


WITHOUT_FIELDS = {"Config", "FactTask", "VectorTask", "Recipe", "Interface"}
"""Bases, and what follows from a task: nobody writes them."""


def test_every_field_of_every_config_says_what_it_means() -> None:
    public = [getattr(hopscope.configs, name) for name in hopscope.configs.__all__]
    there = {each for each in public if isinstance(each, type) and issubclass(each, Config)}
    assert {each for each in there if each.__name__ not in WITHOUT_FIELDS} == {*CONFIGS}
    for config in CONFIGS:
        assert all(text.endswith((".", "?", ")")) for text in meanings(config).values()), config


Next = Callable[..., list[str]]


@pytest.fixture(scope="module")
def script() -> str:
    """What the completion scripts hold."""
    return complete.write_table(completion.table())


@pytest.fixture(scope="module")
def table(script: str) -> complete.Table:
    return complete.read_table(script.splitlines())


@pytest.fixture
def after(table: complete.Table, root: Path, monkeypatch: Patch) -> Next:
    """What may come after some words, in a folder of its own."""
    monkeypatch.delenv("HOPSCOPE_STORE")
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


def test_runs_are_those_of_the_store(after: Next, tiny: Experiment, monkeypatch: Patch) -> None:
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
    asked = "".join(
        f'COMP_WORDS=(hopscope {words}); COMP_CWORD={number}; _hopscope; echo "${{COMPREPLY[@]}}"\n'
        for words, number in (("maps gallery/pl", 2), ('""', 1))
    )
    (tmp_path / "script").write_text(completion.SCRIPTS["bash"].replace("TABLE", script) + asked)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        ["bash", "script"],
        cwd=tmp_path, env=os.environ | path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "gallery/planted"
    assert {"maps", "llm", "train"} <= set(second.split())
    assert "complete" not in second.split()


@pytest.mark.slow
def test_the_demo_is_one_page(root: Path, hopscope: Say, monkeypatch: Patch) -> None:
    from hopscope.papers import demo
    from hopscope.papers.preset import Preset

    easy = Experiment(
        task=Retrieval(hops=1, chains=2, position="pair", base=10),
        model=Model(layers=2, heads=2, d_model=32, init="fan-in"),
        training=Training(
            steps=400, batch=32, lr=4e-3, warmup=50, schedule="cosine", checkpoint_every=100,
            validation_examples=64,
        ),
    )  # fmt: skip
    monkeypatch.setattr(demo, "preset", lambda: Preset("demo", "easy", easy, {}))
    code, out, _ = hopscope("demo")
    assert code == 0
    for words in ("guessing", "value 0 → query", "emerged at step"):
        assert words in out
    (page,) = (root / "reports").iterdir()
    assert str(page.relative_to(root)) in out
    assert page.read_text().count("<svg ") == 5


def test_help_for_nobody_is_no_mistake(monkeypatch: Patch) -> None:
    """Where the output is closed, Python has no stream for it."""
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as stop:
        run(["claims", "--help"])
    assert not stop.value.code
    with pytest.raises(ConfigError, match="Unrecognized options: --zzz"):
        run(["claims", "--zzz"])
